//! Computes the cells of pods that depend on the states of containers.
//!
//! Guarantees: the cells match `printPod` of Kubernetes' printers.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{human_duration, list, string};
use crate::object::Object;

/// The state of a pod as `kubectl get` shows it.
#[derive(Default)]
pub(super) struct PodState {
    ready: usize,
    total: usize,
    restarts: Restarts,
    pub(super) reason: String,
}

/// The restarts of containers, and the end of the last one.
#[derive(Clone, Copy, Default)]
struct Restarts {
    times: i64,
    last: Option<Timestamp>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.times += status["restartCount"].as_i64().unwrap_or(0);
        let end = status["lastState"]["terminated"]["finishedAt"].as_str();
        self.last = self.last.max(end.and_then(|end| end.parse().ok()));
    }
}

impl PodState {
    pub(super) fn of(pod: &Object) -> PodState {
        let phase = string(pod, "/status/phase");
        let reason = string(pod, "/status/reason");
        let conditions = list(pod, "/status/conditions");
        let mut state = PodState {
            total: list(pod, "/spec/containers").len(),
            reason: if reason.is_empty() {
                phase.clone()
            } else {
                reason.clone()
            },
            ..PodState::default()
        };
        let is_gated =
            |it: &Value| it["type"] == "PodScheduled" && it["reason"] == "SchedulingGated";
        if conditions.iter().any(is_gated) {
            "SchedulingGated".clone_into(&mut state.reason);
        }
        let has = |name: &str| {
            let mut conditions = conditions.iter();
            conditions.any(|it| it["type"] == name && it["status"] == "True")
        };
        let (sidecars, initializing) = state.add_init_containers(pod);
        if !initializing || has("Initialized") {
            state.restarts = sidecars;
            state.add_containers(&list(pod, "/status/containerStatuses"), has("Ready"));
        }
        let has_ended = phase == "Succeeded" || phase == "Failed";
        if pod.is_deleting() && reason == "NodeLost" {
            "Unknown".clone_into(&mut state.reason);
        } else if pod.is_deleting() && !has_ended {
            "Terminating".clone_into(&mut state.reason);
        }
        state
    }

    /// Returns the restarts of the containers that run beside the others, and whether the pod is initializing.
    fn add_init_containers(&mut self, pod: &Object) -> (Restarts, bool) {
        let containers = list(pod, "/spec/initContainers");
        let is_sidecar = |it: &Value| it["restartPolicy"] == "Always";
        self.total += containers.iter().filter(|it| is_sidecar(it)).count();
        let mut sidecars = Restarts::default();
        for (at, status) in list(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            self.restarts.add(status);
            let mut named = containers.iter().filter(|it| it["name"] == status["name"]);
            let runs_beside = named.any(is_sidecar);
            if runs_beside {
                sidecars.add(status);
            }
            let ended = &status["state"]["terminated"];
            if ended.is_object() && exit_code(ended) == 0 {
                continue;
            }
            if runs_beside && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waits_for = text(&status["state"]["waiting"], "reason");
            self.reason = if ended.is_object() {
                format!("Init:{}", ending(ended))
            } else if waits_for.is_empty() || waits_for == "PodInitializing" {
                format!("Init:{at}/{}", containers.len())
            } else {
                format!("Init:{waits_for}")
            };
            return (sidecars, true);
        }
        (sidecars, false)
    }

    fn add_containers(&mut self, statuses: &[Value], is_ready: bool) {
        let (mut is_running, mut failure) = (false, None);
        for status in statuses.iter().rev() {
            self.restarts.add(status);
            let ended = &status["state"]["terminated"];
            let waits_for = text(&status["state"]["waiting"], "reason");
            if !waits_for.is_empty() {
                waits_for.clone_into(&mut self.reason);
            } else if ended.is_object() {
                self.reason = ending(ended);
                if exit_code(ended) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && status["state"]["running"].is_object() {
                is_running = true;
                self.ready += 1;
            }
        }
        if self.reason == "Completed" {
            self.reason = match failure {
                _ if is_running && is_ready => "Running".to_owned(),
                Some(failure) => failure,
                None if is_running => "NotReady".to_owned(),
                None => return,
            };
        }
    }

    pub(super) fn ready(&self) -> String {
        format!("{}/{}", self.ready, self.total)
    }

    /// Returns the number of restarts, as in `3 (5m ago)`, with the time since the last end of a container if
    /// it is known.
    pub(super) fn restarts(&self, now: Timestamp) -> String {
        let Restarts { times, last } = self.restarts;
        match last.filter(|_| times != 0) {
            Some(end) => {
                let ago = human_duration(now.as_second() - end.as_second());
                format!("{times} ({ago} ago)")
            }
            None => times.to_string(),
        }
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

fn exit_code(ended: &Value) -> i64 {
    ended["exitCode"].as_i64().unwrap_or(0)
}

fn ending(ended: &Value) -> String {
    match (text(ended, "reason"), ended["signal"].as_i64()) {
        ("", Some(signal)) if signal != 0 => format!("Signal:{signal}"),
        ("", _) => format!("ExitCode:{}", exit_code(ended)),
        (reason, _) => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the cells Ready, Status and Restarts.
    fn cells(spec: &Value, status: &Value) -> [String; 3] {
        let pod = json!({"metadata": {"name": "a"}, "spec": spec, "status": status});
        let state = PodState::of(&Object::stored(
            pod.as_object().cloned().unwrap_or_default(),
        ));
        let restarts = state.restarts(Timestamp::UNIX_EPOCH);
        [state.ready(), state.reason, restarts]
    }

    #[test]
    fn init_containers_decide_the_status_until_they_have_ended() {
        let spec = json!({
            "containers": [{"name": "a"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
        });
        let done =
            json!({"name": "i", "restartCount": 2, "state": {"terminated": {"exitCode": 0}}});
        let sidecar = json!({"name": "s", "started": true, "ready": true, "restartCount": 1, "state": {"running": {}}});
        let waiting = json!({"name": "a", "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}});
        let of = |inits: Value| {
            let status = json!({"phase": "Pending", "initContainerStatuses": inits, "containerStatuses": [waiting]});
            cells(&spec, &status)
        };
        let failed =
            |ended: Value| json!({"name": "i", "restartCount": 3, "state": {"terminated": ended}});
        for (inits, expected) in [
            (
                json!([{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]),
                ["0/2", "Init:0/2", "0"],
            ),
            (
                json!([{"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}]),
                ["0/2", "Init:ErrImagePull", "0"],
            ),
            (
                json!([failed(json!({"exitCode": 3}))]),
                ["0/2", "Init:ExitCode:3", "3"],
            ),
            (
                json!([failed(json!({"exitCode": 3, "signal": 9}))]),
                ["0/2", "Init:Signal:9", "3"],
            ),
            (
                json!([failed(json!({"exitCode": 3, "reason": "Error"}))]),
                ["0/2", "Init:Error", "3"],
            ),
            (
                json!([done, {"name": "s", "state": {"running": {}}}]),
                ["0/2", "Init:1/2", "2"],
            ),
            (json!([done, sidecar]), ["1/2", "PodInitializing", "1"]),
        ] {
            assert_eq!(of(inits.clone()), expected, "{inits}");
        }
    }

    #[test]
    fn a_completed_container_beside_a_running_one_depends_on_readiness() {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let done =
            json!({"name": "a", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}});
        let failed =
            json!({"name": "b", "state": {"terminated": {"exitCode": 1, "reason": "Error"}}});
        let runs = json!({"name": "b", "ready": true, "state": {"running": {}}});
        for (statuses, conditions, expected) in [
            (
                json!([done, runs]),
                json!([{"type": "Ready", "status": "True"}]),
                ["1/2", "Running", "0"],
            ),
            (json!([done, runs]), json!([]), ["1/2", "NotReady", "0"]),
            (json!([done, failed]), json!([]), ["0/2", "Error", "0"]),
            (json!([done]), json!([]), ["0/2", "Completed", "0"]),
            (
                json!([]),
                json!([{"type": "PodScheduled", "reason": "SchedulingGated"}]),
                ["0/2", "SchedulingGated", "0"],
            ),
        ] {
            let status = json!({"phase": "Running", "containerStatuses": statuses, "conditions": conditions});
            assert_eq!(cells(&spec, &status), expected, "{status}");
        }
    }
    #[test]
    fn a_deleted_pod_is_terminating_until_it_has_ended_or_its_node_is_lost() {
        for (status, expected) in [
            (json!({"phase": "Running"}), "Terminating"),
            (json!({"phase": "Succeeded"}), "Succeeded"),
            (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
            (json!({"phase": "Running", "reason": "NodeLost"}), "Unknown"),
        ] {
            let metadata = json!({"name": "a", "deletionTimestamp": "2027-01-15T08:00:00Z"});
            let pod = json!({"metadata": metadata, "status": status});
            let pod = Object::stored(pod.as_object().cloned().unwrap_or_default());
            assert_eq!(PodState::of(&pod).reason, expected, "{status}");
        }
    }
}
