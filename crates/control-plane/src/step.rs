//! The steps of the control loops: what a loop has observed or done.
//!
//! Guarantees:
//! - A step contains an object and its revision as the loop observed them. It never contains a state that the
//!   loop only expects.
//! - A loop waits while the channel of its steps is full. If the receiver was dropped, the step is discarded and the
//!   loop continues.

use kube_core::Resource;
use kube_informer::{Object, object::ResourceVersion};
use std::{fmt, sync::Arc};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

/// The type of a control loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Loop {
    /// `deployment`: rolls out templates with ReplicaSets (`RollingUpdate` and `Recreate`), with revisions and their
    /// history, pauses and conditions.
    Deployment,
    /// `replica-set`: creates and deletes pods, and updates the status.
    ReplicaSet,
    /// `job`: runs the pods of Jobs, with completions, indexes, back-off, deadlines, suspension, and the deletion of
    /// finished Jobs.
    Job,
    /// `disruption`: writes into the status of a `PodDisruptionBudget` how many pods may be evicted.
    Disruption,
    /// `scheduler`: binds pods to nodes.
    Scheduler,
    /// `node-agent`, one per node: simulates the containers of the pods of its node.
    NodeAgent,
}

/// The kind of a [`Step`].
///
/// If waiting steps have the same revision, the demo prints them in the order of the variants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// A client wrote an object to which the loops react, such as the demo's Deployment.
    Wish,
    /// The deployment controller received the `Added` event of a Deployment.
    DeploymentSeen,
    /// The deployment controller received the `Added` event of a ReplicaSet that a Deployment controls.
    ReplicaSetCreated,
    /// The replica set controller received the `Added` event of a ReplicaSet.
    ReplicaSetSeen,
    /// The replica set controller received the `Added` event of a ReplicaSet's pod.
    PodCreated,
    /// The scheduler received the `Added` event of a pod without a node.
    PodQueued,
    /// A node agent received, and ignores, the `Added` event of a pod without a node.
    NotMine,
    /// The scheduler found no node with enough capacity for a pod.
    NoNodeFits,
    /// The scheduler received the first event that shows a pod as bound to a node.
    PodBound,
    /// A node agent received the first event that shows a pod as bound to the agent's node.
    PodStarts,
    /// A node agent received the first event that shows a pod as running and ready.
    PodRuns,
    /// The replica set controller found the desired number of pods of a ReplicaSet, and changes none.
    Content,
    /// The replica set controller received an `Updated` event that reports a new status of a ReplicaSet.
    ReplicaSetStatus,
    /// A node agent found that the container of a pod ended, and read the pod from the API server.
    PodEnds,
    /// A node agent received the first event that shows a pod as ended (phase `Failed` or `Succeeded`).
    PodFailed,
    /// The replica set controller received the first event that shows a pod as `Failed` or `Succeeded`.
    FailureSeen,
    /// The replica set controller received the deletion event of a ReplicaSet's pod.
    PodDeleted,
    /// The deployment controller received a Deployment's status in which not all replicas are ready.
    NotAllReady,
    /// The deployment controller received a Deployment's status in which all replicas are ready.
    AllReady,
}

/// One observation or action of a control loop.
#[derive(Clone, Debug)]
pub struct Step {
    /// When the loop reported the step.
    pub at: Instant,
    /// Name of the reporting loop, such as `node-agent/node-1`.
    pub who: Arc<str>,
    /// What the loop observed or did.
    pub kind: Kind,
    /// Kind and name, such as `pod/web-1`, of the object that the loop observed or changed.
    pub object: String,
    /// Resource version of this object when the loop observed it.
    pub revision: ResourceVersion,
    /// The step in words, such as `queues it`.
    pub text: String,
}

/// Sends the steps of the control loop named `who` to a channel.
#[derive(Clone)]
pub(crate) struct Teller {
    who: Arc<str>,
    steps: mpsc::Sender<Step>,
    stopping: watch::Receiver<bool>,
}

// === impl Loop ===

impl Loop {
    /// All loops.
    pub const ALL: &[Loop] = &[
        Loop::Deployment,
        Loop::ReplicaSet,
        Loop::Job,
        Loop::Disruption,
        Loop::Scheduler,
        Loop::NodeAgent,
    ];

    /// Returns the loop with this name, or with its name in kube-controller-manager.
    pub fn named(name: &str) -> Option<Loop> {
        match name.strip_suffix("-controller").unwrap_or(name) {
            "replicaset" => Some(Loop::ReplicaSet),
            name => Loop::ALL.iter().copied().find(|it| it.as_str() == name),
        }
    }

    /// Returns whether kube-controller-manager has the loop.
    pub(crate) fn is_of_manager(self) -> bool {
        matches!(
            self,
            Loop::Deployment | Loop::ReplicaSet | Loop::Job | Loop::Disruption
        )
    }

    /// Returns the name of the loop type in arguments and output, such as `replica-set`.
    pub fn as_str(self) -> &'static str {
        match self {
            Loop::Deployment => "deployment",
            Loop::ReplicaSet => "replica-set",
            Loop::Job => "job",
            Loop::Disruption => "disruption",
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

// === impl Step ===

impl Step {
    /// Returns the step of `who` that has observed or changed `object` now.
    pub fn new<K>(
        who: impl Into<Arc<str>>,
        kind: Kind,
        object: &Object<K>,
        text: impl Into<String>,
    ) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        Self {
            at: Instant::now(),
            who: who.into(),
            kind,
            object: format!("{}/{}", K::kind(&()).to_lowercase(), object.name()),
            revision: object.revision().clone(),
            text: text.into(),
        }
    }
}

// === impl Teller ===

impl Teller {
    pub(crate) fn new(
        who: impl Into<Arc<str>>,
        steps: mpsc::Sender<Step>,
        stopping: watch::Receiver<bool>,
    ) -> Self {
        Self {
            who: who.into(),
            steps,
            stopping,
        }
    }

    /// Sends a step with the observed `object`. Waits while the channel is full, but not after the begin of a shutdown.
    ///
    /// # Cancel safety
    /// If the future is dropped, the step may be lost.
    pub(crate) async fn tell<K>(&self, kind: Kind, object: &Object<K>, text: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        let step = Step::new(Arc::clone(&self.who), kind, object, text);
        // The send fails if there is no receiver. The step is discarded.
        let mut stopping = self.stopping.clone();
        tokio::select! {
            biased;
            _ = self.steps.send(step) => {}
            // The result is an error if the control plane was dropped.
            _ = stopping.wait_for(|stops| *stops) => {}
        }
    }
}
