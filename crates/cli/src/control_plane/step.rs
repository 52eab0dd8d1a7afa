//! What a loop tells of itself: one [`Step`] per thing it has seen or done.
//!
//! Guarantees:
//! - a step names the object and the revision at which the loop saw it, never one it only expects;
//! - telling waits while more than [`STEPS_MAX`] steps are untold, and never fails: a loop works the same when nobody listens.

use kube_core::Resource;
use kube_informer::{Object, object::ResourceVersion};
use std::{fmt, sync::Arc};
use tokio::{sync::mpsc, time::Instant};

/// Steps that may wait for the listener: a burst of pods in every loop at once, some 200 bytes each.
pub(crate) const STEPS_MAX: usize = 1_024;

/// The independent loops of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loop {
    Deployment,
    ReplicaSet,
    Scheduler,
    NodeAgent,
}

/// The kinds of steps, in the order in which the first of each follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Somebody who is no loop wrote an object that the loops will see.
    Wish,
    /// The deployment controller sees a Deployment.
    DeploymentSeen,
    /// The deployment controller sees the replica set that it made.
    ReplicaSetCreated,
    /// The replica set controller sees a replica set.
    ReplicaSetSeen,
    /// The replica set controller sees a pod that it made.
    PodCreated,
    /// The scheduler sees a pod without a node.
    PodQueued,
    /// A node agent sees a pod that is not its own.
    NotMine,
    /// The scheduler has found no node for a pod.
    NoNodeFits,
    /// The scheduler sees a pod that it bound.
    PodBound,
    /// A node agent sees a pod become its own.
    PodStarts,
    /// A node agent sees the status that it wrote: running and ready.
    PodRuns,
    /// The replica set controller finds nothing to create or delete.
    Content,
    /// The replica set controller sees the status that it wrote.
    ReplicaSetStatus,
    /// A node agent has read a pod whose container has ended.
    PodEnds,
    /// A node agent sees the status that it wrote: failed.
    PodFailed,
    /// The replica set controller sees that a pod has failed.
    FailureSeen,
    /// The replica set controller sees that the pod it deleted is gone.
    PodDeleted,
    /// The deployment controller sees the status that it wrote: some replicas are not ready.
    NotAllReady,
    /// The deployment controller sees the status that it wrote: all replicas are ready.
    AllReady,
}

/// One thing that a loop has seen or done.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Instant,
    /// Who tells it, such as `node-agent/node-1`.
    pub(crate) who: Arc<str>,
    pub(crate) kind: Kind,
    /// The object as kubectl writes it, such as `pod/web-1`.
    pub(crate) object: String,
    /// The object's revision as it was seen.
    pub(crate) revision: ResourceVersion,
    pub(crate) text: String,
}

/// Tells the steps of one loop.
#[derive(Clone)]
pub(crate) struct Teller {
    who: Arc<str>,
    steps: mpsc::Sender<Step>,
}

// === impl Loop ===

impl Loop {
    pub(crate) const ALL: [Loop; 4] = [
        Loop::Deployment,
        Loop::ReplicaSet,
        Loop::Scheduler,
        Loop::NodeAgent,
    ];

    /// The name that is typed and shown.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Loop::Deployment => "deployment",
            Loop::ReplicaSet => "replica-set",
            Loop::Scheduler => "scheduler",
            Loop::NodeAgent => "node-agent",
        }
    }
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

// === impl Teller ===

impl Teller {
    pub(crate) fn new(who: impl Into<Arc<str>>, steps: mpsc::Sender<Step>) -> Self {
        Self {
            who: who.into(),
            steps,
        }
    }

    /// Tells a step about an object as it was seen.
    ///
    /// # Cancel safety
    /// Dropped before it has ended, the step may be untold.
    pub(crate) async fn tell<K>(&self, kind: Kind, object: &Object<K>, text: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        let step = Step {
            at: Instant::now(),
            who: Arc::clone(&self.who),
            kind,
            object: format!("{}/{}", K::kind(&()).to_lowercase(), object.name()),
            revision: object.revision().clone(),
            text: text.into(),
        };
        // Nobody listens any more: the story is over, and the loop is about to be stopped.
        let _ = self.steps.send(step).await;
    }
}
