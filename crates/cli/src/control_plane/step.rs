//! Reports of a loop: one [`Step`] for each thing that it observes or does.
//!
//! Guarantees:
//! - a step contains the object and the revision that the loop observed, never an expected one;
//! - reporting waits while more than [`STEPS_MAX`] steps are queued, and never fails: a loop works the same without a
//!   receiver.

use kube_core::Resource;
use kube_informer::{Object, object::ResourceVersion};
use std::{fmt, sync::Arc};
use tokio::{sync::mpsc, time::Instant};

/// Maximum queued steps: a burst of pods in all loops, about 200 bytes each.
pub(crate) const STEPS_MAX: usize = 1_024;

/// The independent loops of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loop {
    Deployment,
    ReplicaSet,
    Scheduler,
    NodeAgent,
}

/// The kinds of steps, ordered by their first occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Another client wrote an object that the loops observe.
    Wish,
    /// The deployment controller sees a Deployment.
    DeploymentSeen,
    /// The deployment controller sees the replica set that it created.
    ReplicaSetCreated,
    /// The replica set controller sees a replica set.
    ReplicaSetSeen,
    /// The replica set controller sees a pod that it created.
    PodCreated,
    /// The scheduler sees a pod without a node.
    PodQueued,
    /// A node agent sees a pod of another node.
    NotMine,
    /// The scheduler found no node for a pod.
    NoNodeFits,
    /// The scheduler sees a pod that it bound.
    PodBound,
    /// A node agent sees a pod that was bound to its node.
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
    /// The replica set controller sees the deletion of a pod that it deleted.
    PodDeleted,
    /// The deployment controller sees the status that it wrote: some replicas are not ready.
    NotAllReady,
    /// The deployment controller sees the status that it wrote: all replicas are ready.
    AllReady,
}

/// One thing that a loop observed or did.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Instant,
    /// The reporting loop, such as `node-agent/node-1`.
    pub(crate) who: Arc<str>,
    pub(crate) kind: Kind,
    /// The object in kubectl's notation, such as `pod/web-1`.
    pub(crate) object: String,
    /// The observed revision of the object.
    pub(crate) revision: ResourceVersion,
    pub(crate) text: String,
}

/// Reports the steps of one loop.
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

    /// The name in arguments and output.
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

    /// Reports a step for an object as observed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the step may be lost.
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
        // The receiver is gone: the demo is over, and the loop is about to stop.
        let _ = self.steps.send(step).await;
    }
}
