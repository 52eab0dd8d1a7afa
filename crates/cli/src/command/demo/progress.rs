//! Tracks the progress of the demo, based on the steps that the control loops report.
//!
//! A step is one observation or action of a loop. A milestone requires one kind of step for a number of
//! objects, for example a binding for each pod. The demo succeeds when it has reached all milestones.
//!
//! The milestones have a fixed order. If the user leaves out a loop, the first milestone of that loop and all
//! later milestones are not required.
//!
//! Guarantees: an object counts only once per kind of step.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kube_informer_control_plane::{
    Loop,
    step::{Kind, Step},
};

/// The goal of the demo: all replicas are ready after `failures` pods have failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) replicas: u32,
    pub(super) failures: u32,
    /// Whether the loops write to the server, instead of only observing.
    pub(super) acts: bool,
    /// The loop that is left out, or `None` if all loops run.
    pub(super) without: Option<Loop>,
}

/// A condition for the success of the demo: a loop must report one kind of step for a number of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Milestone {
    owner: Loop,
    kind: Kind,
    times: Times,
    what: &'static str,
}

/// Number of objects that a [`Milestone`] requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    Once,
    /// The milestone requires one object. If the control loops only observe the server, or if the Deployment
    /// has no replicas, the milestone requires none.
    OnceActing,
    Replicas,
    Failures,
    /// The milestone requires one pod per replica, and a replacement for each pod that is meant to fail.
    All,
}

/// All milestones, in the order in which the demo reaches them.
#[rustfmt::skip]
const MILESTONES: [Milestone; 14] = [
    milestone(Loop::Deployment, Kind::DeploymentSeen, Times::Once, "the Deployment is seen"),
    milestone(Loop::Deployment, Kind::ReplicaSetCreated, Times::Once, "a ReplicaSet is made"),
    milestone(Loop::ReplicaSet, Kind::ReplicaSetSeen, Times::Once, "the ReplicaSet is seen"),
    milestone(Loop::ReplicaSet, Kind::PodCreated, Times::Replicas, "pods are made"),
    milestone(Loop::Scheduler, Kind::PodQueued, Times::Replicas, "pods are queued"),
    milestone(Loop::Scheduler, Kind::PodBound, Times::Replicas, "pods are bound to a node"),
    milestone(Loop::NodeAgent, Kind::PodStarts, Times::Replicas, "pods are started"),
    milestone(Loop::NodeAgent, Kind::PodRuns, Times::Replicas, "pods run"),
    milestone(Loop::ReplicaSet, Kind::Content, Times::OnceActing, "the ReplicaSet loop sees its pods and has nothing to do"),
    milestone(Loop::NodeAgent, Kind::PodFailed, Times::Failures, "pods fail"),
    milestone(Loop::ReplicaSet, Kind::PodDeleted, Times::Failures, "failed pods are deleted"),
    milestone(Loop::ReplicaSet, Kind::PodCreated, Times::All, "failed pods are replaced"),
    milestone(Loop::NodeAgent, Kind::PodRuns, Times::All, "replacements run"),
    milestone(Loop::Deployment, Kind::AllReady, Times::Once, "the Deployment says that all replicas are ready"),
];

/// A milestone that the demo has not reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    milestone: Milestone,
    has: usize,
    wanted: usize,
}

/// The progress of the demo.
///
/// `seen` contains the objects of all reported steps, by kind of step.
#[derive(Debug)]
pub(super) struct Progress {
    goal: Goal,
    seen: BTreeMap<Kind, BTreeSet<String>>,
    /// Whether the Deployment's status reports all replicas as ready.
    ready: bool,
    /// Pods that the scheduler can't bind to a node, each with the reason.
    pending: BTreeMap<String, String>,
}

const fn milestone(owner: Loop, kind: Kind, times: Times, what: &'static str) -> Milestone {
    Milestone {
        owner,
        kind,
        times,
        what,
    }
}

impl Goal {
    fn wanted(self, times: Times) -> usize {
        let number = match times {
            Times::Once => 1,
            Times::OnceActing => u32::from(self.acts && self.replicas > 0),
            Times::Replicas => self.replicas,
            Times::Failures => self.failures,
            Times::All => self.replicas + self.failures,
        };
        number as usize
    }
}

// === impl Progress ===

impl Progress {
    pub(super) fn new(goal: Goal) -> Self {
        Self {
            goal,
            seen: BTreeMap::new(),
            ready: false,
            pending: BTreeMap::new(),
        }
    }

    pub(super) fn take(&mut self, step: &Step) {
        match step.kind {
            Kind::AllReady => self.ready = true,
            Kind::NotAllReady => self.ready = false,
            Kind::NoNodeFits => {
                self.pending.insert(step.object.clone(), step.text.clone());
            }
            Kind::PodBound | Kind::PodDeleted => {
                self.pending.remove(&step.object);
            }
            _ => {}
        }
        let objects = self.seen.entry(step.kind).or_default();
        objects.insert(step.object.clone());
    }

    /// Returns the number of objects with a reported step of `kind`.
    ///
    /// For [`Kind::AllReady`], returns 1 if all replicas are ready now, and otherwise 0.
    pub(super) fn count(&self, kind: Kind) -> usize {
        match kind {
            Kind::AllReady => usize::from(self.ready),
            kind => self.seen.get(&kind).map_or(0, BTreeSet::len),
        }
    }

    /// Returns the first required milestone that has not been reached.
    pub(super) fn missing(&self) -> Option<Missing> {
        for milestone in MILESTONES {
            if Some(milestone.owner) == self.goal.without {
                return None;
            }
            let has = self.count(milestone.kind);
            let wanted = self.goal.wanted(milestone.times);
            if has < wanted {
                return Some(Missing {
                    milestone,
                    has,
                    wanted,
                });
            }
        }
        None
    }

    /// Returns why the scheduler can't bind a pod to a node, or `None` if there is no such pod.
    pub(super) fn pending(&self) -> Option<&str> {
        self.pending.values().next().map(String::as_str)
    }

    /// Describes the effect of a disabled control loop, for example `without the scheduler, 3 pods get no
    /// node`.
    ///
    /// Returns `None` if all loops run.
    pub(super) fn standstill(&self) -> Option<String> {
        let count = |kind| self.count(kind);
        Some(match self.goal.without? {
            Loop::Deployment => "without its loop, the Deployment gets no ReplicaSet".to_owned(),
            Loop::ReplicaSet => "without its loop, the ReplicaSet gets no pods".to_owned(),
            Loop::Scheduler => {
                let pods = count(Kind::PodCreated);
                format!("without the scheduler, {pods} pods get no node")
            }
            Loop::NodeAgent => {
                let pods = count(Kind::PodBound);
                format!("without the node agent, {pods} pods have a node and stay Pending")
            }
            // Not a loop of the demo.
            _ => return None,
        })
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Missing {
            milestone: Milestone { owner, what, .. },
            has,
            wanted,
        } = self;
        write!(
            f,
            "{what} ({has} of {wanted}), which is the task of the {owner} loop"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn told(progress: &mut Progress, kind: Kind, objects: &[&str]) {
        for object in objects {
            progress.take(&Step {
                at: Instant::now(),
                who: "x".into(),
                kind,
                object: (*object).to_owned(),
                revision: 1.into(),
                text: "why".to_owned(),
            });
        }
    }

    fn progress(replicas: u32, failures: u32, without: Option<Loop>) -> Progress {
        Progress::new(Goal {
            replicas,
            failures,
            acts: true,
            without,
        })
    }

    fn until_running(progress: &mut Progress, pods: &[&str]) {
        told(progress, Kind::DeploymentSeen, &["d"]);
        told(progress, Kind::ReplicaSetCreated, &["r"]);
        told(progress, Kind::ReplicaSetSeen, &["r"]);
        for kind in [
            Kind::PodCreated,
            Kind::PodQueued,
            Kind::PodBound,
            Kind::PodStarts,
            Kind::PodRuns,
            Kind::Content,
        ] {
            told(progress, kind, pods);
        }
    }

    #[test]
    fn the_first_missing_milestone_is_reported_with_its_loop() {
        let mut progress = progress(2, 0, None);
        until_running(&mut progress, &["a"]);
        told(&mut progress, Kind::PodCreated, &["a"]);
        let missing = progress.missing().unwrap().to_string();
        assert_eq!(
            missing,
            "pods are made (1 of 2), which is the task of the replica-set loop"
        );
    }

    #[test]
    fn the_demo_does_not_end_before_failed_pods_are_replaced() {
        let mut progress = progress(1, 1, None);
        until_running(&mut progress, &["a"]);
        told(&mut progress, Kind::AllReady, &["d"]);
        assert!(
            progress
                .missing()
                .unwrap()
                .to_string()
                .starts_with("pods fail")
        );
        told(&mut progress, Kind::PodFailed, &["a"]);
        told(&mut progress, Kind::NotAllReady, &["d"]);
        told(&mut progress, Kind::PodDeleted, &["a"]);
        until_running(&mut progress, &["b"]);
        assert!(
            progress.missing().is_some(),
            "the replacements are not ready yet"
        );
        told(&mut progress, Kind::AllReady, &["d"]);
        assert_eq!(progress.missing(), None);
    }

    #[test]
    fn the_replica_set_loop_must_become_idle_if_it_acts_and_has_pods() {
        let reach = |goal: Goal| {
            let mut progress = Progress::new(goal);
            until_running(&mut progress, &["a"]);
            progress.seen.remove(&Kind::Content);
            told(&mut progress, Kind::AllReady, &["d"]);
            progress.missing().map(|missing| missing.to_string())
        };
        let goal = Goal {
            replicas: 1,
            failures: 0,
            acts: true,
            without: None,
        };
        let missing = "the ReplicaSet loop sees its pods and has nothing to do (0 of 1), which is the task of the replica-set loop";
        assert_eq!(reach(goal).as_deref(), Some(missing));
        assert_eq!(
            reach(Goal {
                acts: false,
                ..goal
            }),
            None
        );
        assert_eq!(
            reach(Goal {
                replicas: 0,
                ..goal
            }),
            None
        );
    }

    #[test]
    fn without_a_loop_only_the_milestones_before_its_first_step_are_required() {
        for without in super::super::LOOPS {
            let mut progress = progress(1, 1, Some(without));
            assert_eq!(progress.missing().is_none(), without == Loop::Deployment);
            until_running(&mut progress, &["a"]);
            assert_eq!(progress.missing(), None, "{without}");
            assert!(progress.standstill().unwrap().starts_with("without"));
        }
    }

    #[test]
    fn a_pod_that_fits_on_no_node_is_the_reason_until_it_is_bound() {
        let mut progress = progress(1, 0, None);
        told(&mut progress, Kind::DeploymentSeen, &["d"]);
        told(&mut progress, Kind::ReplicaSetCreated, &["r"]);
        told(&mut progress, Kind::ReplicaSetSeen, &["r"]);
        told(&mut progress, Kind::PodCreated, &["a"]);
        told(&mut progress, Kind::PodQueued, &["a"]);
        told(&mut progress, Kind::NoNodeFits, &["a"]);
        assert_eq!(progress.pending(), Some("why"));
        until_running(&mut progress, &["a"]);
        told(&mut progress, Kind::AllReady, &["d"]);
        assert_eq!(progress.pending(), None);
    }
}
