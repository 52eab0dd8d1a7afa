//! Reports what a control loop observes and does: the loop sends one [`Step`] per observation or action to a
//! channel.
//!
//! Guarantees:
//! - A step contains an object and its revision as the loop observed them, never a state that the loop only
//!   expects.
//! - A report waits while [`STEPS_MAX`] steps are queued. A report never fails: if the receiver was dropped,
//!   the step is discarded and the loop continues.
//!
//! The module does not print the steps.

use kube_core::Resource;
use kube_informer::{Object, object::ResourceVersion};
use std::{fmt, sync::Arc};
use tokio::{sync::mpsc, time::Instant};

/// Maximum number of queued steps, of about 200 bytes each. A burst of pods in all loops fits.
pub(crate) const STEPS_MAX: usize = 1_024;

/// One of the control loops of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Loop {
    Deployment,
    ReplicaSet,
    Scheduler,
    NodeAgent,
}

/// The kind of a [`Step`]. The variants are ordered by their first occurrence in the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A client other than the loops wrote an object, such as the demo's Deployment.
    Wish,
    /// The deployment controller observed a new Deployment.
    DeploymentSeen,
    /// The deployment controller observed the ReplicaSet that it created.
    ReplicaSetCreated,
    /// The replica set controller observed a new ReplicaSet.
    ReplicaSetSeen,
    /// The replica set controller observed a pod that it created.
    PodCreated,
    /// The scheduler observed a new pod without a node.
    PodQueued,
    /// A node agent observed a new pod that is not bound to a node.
    NotMine,
    /// The scheduler found no node with enough capacity for a pod.
    NoNodeFits,
    /// The scheduler observed a pod that it bound to a node.
    PodBound,
    /// A node agent observed a pod that was bound to its node.
    PodStarts,
    /// A node agent observed a pod status that it wrote: the pod is running and ready.
    PodRuns,
    /// The replica set controller found that it has no pod to create or delete.
    Content,
    /// The replica set controller observed a ReplicaSet status that it wrote.
    ReplicaSetStatus,
    /// A node agent got a pod from the server, because the pod's container has ended.
    PodEnds,
    /// A node agent observed a pod status that it wrote: the pod has failed.
    PodFailed,
    /// The replica set controller observed that a pod has failed.
    FailureSeen,
    /// The replica set controller observed the deletion of a pod that it deleted.
    PodDeleted,
    /// The deployment controller observed a Deployment status that it wrote: some replicas are not ready.
    NotAllReady,
    /// The deployment controller observed a Deployment status that it wrote: all replicas are ready.
    AllReady,
}

/// One observation or action of a control loop.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Instant,
    /// Name of the reporting loop, such as `node-agent/node-1`.
    pub(crate) who: Arc<str>,
    pub(crate) kind: Kind,
    /// The observed object in kubectl's notation, such as `pod/web-1`.
    pub(crate) object: String,
    /// The object's resource version as the loop observed it.
    pub(crate) revision: ResourceVersion,
    pub(crate) text: String,
}

/// The sender with which one control loop reports its steps.
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

    /// Returns the loop's name in arguments and output.
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

    /// Sends a step with the observed `object`. Waits while the channel is full.
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
