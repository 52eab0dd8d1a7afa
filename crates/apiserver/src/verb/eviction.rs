//! Handles POST on `pods/eviction`: deletes a pod, if its disruption budget allows that.
//!
//! Guarantees: the checks, their order and the errors are those of `pkg/registry/core/pod/storage/eviction.go` in
//! Kubernetes. The budget is decremented from its newest state, so concurrent evictions can't exceed it.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::Call;
use super::delete::delete;
use super::delete_object::DeleteOptions;
use super::update::change;
use super::write::{How, Subject, Tracking};
use crate::kinds::Subresource;
use crate::object::Object;
use crate::reply::Reply;
use crate::route::Target;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::strategy::{Part, selector_selects};

/// Maximum number of evicted pods that the controller of a budget has not seen yet (`MaxDisruptedPodSize`).
const DISRUPTED_MAX: usize = 2_000;

/// Reason of the cause of an error about a budget.
const CAUSE: &str = "DisruptionBudget";

/// The manager of the fields that the server itself writes.
const SERVER: &str = "kube-apiserver";

/// What a budget means for an eviction.
enum Verdict {
    /// No budget protects the pod.
    Free,
    /// The pod is not healthy, and its budget does not protect it as long as it does not change.
    Unhealthy(String),
    /// The budget with this name has to be decremented.
    Counted(String),
}

impl Call {
    pub(super) fn evict(&self, target: &Target, served: &Subresource) -> Result<Reply, ApiError> {
        let how = self.how(Part::Main)?;
        let eviction = self.sent_to(served)?;
        evict(&self.shared, Self::subject(target)?, &eviction, how)?;
        let status = Reply::success(StatusCode::CREATED, None);
        self.show_document(target, StatusCode::CREATED, &status)
    }
}

fn evict(
    shared: &Shared,
    subject: Subject<'_>,
    eviction: &Value,
    how: How<'_>,
) -> Result<(), ApiError> {
    let text = |name: &str| eviction["metadata"][name].as_str().unwrap_or_default();
    subject.check_namespace(text("namespace"))?;
    if text("name") != subject.name {
        let message = "name in URL does not match name in Eviction object";
        return Err(ApiError::bad_request(message));
    }
    let mut options = match &eviction["deleteOptions"] {
        Value::Null => DeleteOptions::default(),
        options => DeleteOptions::parse(options)?,
    };
    options.dry_run |= how.dry_run;
    loop {
        let (entry, pod) = subject.newest(shared)?;
        let revision = entry.revision.to_string();
        let at_this_revision = || {
            let mut options = options.clone();
            options.revision.get_or_insert_with(|| revision.clone());
            options
        };
        let is_conflict = |error: &ApiError| error.code() == 409 && options.revision.is_none();
        if needs_no_budget(&pod) {
            // A precondition of the client that does not hold now does not hold later.
            options.check(subject, &pod, entry.revision)?;
            let chosen = if is_over(&pod) {
                options.clone()
            } else {
                at_this_revision()
            };
            match mark_and_delete(shared, subject, chosen, how) {
                // The pod has changed meanwhile.
                Err(error) if is_conflict(&error) => continue,
                done => return done,
            }
        }
        return match verdict(shared, subject, &pod)? {
            Verdict::Free => mark_and_delete(shared, subject, options, how),
            Verdict::Unhealthy(budget) => {
                let done = mark_and_delete(shared, subject, at_this_revision(), how);
                done.map_err(|error| {
                    if is_conflict(&error) {
                        unprocessed(&budget)
                    } else {
                        error
                    }
                })
            }
            Verdict::Counted(budget) => {
                decrement(shared, subject, &budget, options.dry_run)?;
                mark_and_delete(shared, subject, options, how)
            }
        };
    }
}

fn phase(pod: &Object) -> Value {
    pod.part("status")["phase"].clone()
}

/// Returns whether a pod has ended, or is being deleted.
fn is_over(pod: &Object) -> bool {
    pod.is_deleting() || matches!(phase(pod).as_str(), Some("Succeeded" | "Failed"))
}

/// Returns whether the eviction of a pod disrupts nothing (`canIgnorePDB`).
fn needs_no_budget(pod: &Object) -> bool {
    is_over(pod) || phase(pod) == "Pending"
}

fn is_ready(pod: &Object) -> bool {
    let status = pod.part("status");
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns what the budget of a pod means for its eviction.
fn verdict(shared: &Shared, subject: Subject<'_>, pod: &Object) -> Result<Verdict, ApiError> {
    let registry = shared.registry();
    let Some(budgets) = registry.by_path("policy", "v1", "poddisruptionbudgets") else {
        return Ok(Verdict::Free);
    };
    let below = format!("{}/", subject.namespace.unwrap_or_default());
    let state = shared.lock();
    let entries: Vec<_> = state
        .newest_below(budgets.collection, &below)
        .cloned()
        .collect();
    drop(state);
    let labels = pod.meta("labels").cloned().unwrap_or_else(|| json!({}));
    let budgets = entries
        .iter()
        .map(|entry| Object::stored(entry.object(budgets)));
    let mut selecting = budgets.filter(|budget| {
        let spec = budget.part("spec");
        spec["selector"].is_object() && selector_selects(&spec["selector"], &labels)
    });
    let Some(budget) = selecting.next() else {
        return Ok(Verdict::Free);
    };
    if selecting.next().is_some() {
        let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(ApiError::new(500, "", message));
    }
    let name = budget.text("name").to_owned();
    if is_ready(pod) {
        return Ok(Verdict::Counted(name));
    }
    let status = budget.part("status");
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let is_enough =
        count("currentHealthy") >= count("desiredHealthy") && count("desiredHealthy") > 0;
    let always = budget.part("spec")["unhealthyPodEvictionPolicy"] == "AlwaysAllow";
    Ok(if always || is_enough {
        Verdict::Unhealthy(name)
    } else {
        Verdict::Counted(name)
    })
}

/// Takes one disruption from a budget, and records the pod in its status (`checkAndDecrement`).
fn decrement(
    shared: &Shared,
    pod: Subject<'_>,
    budget: &str,
    dry_run: bool,
) -> Result<(), ApiError> {
    let registry = shared.registry();
    let budgets = registry.by_path("policy", "v1", "poddisruptionbudgets");
    let subject = Subject {
        resource: budgets.ok_or_else(ApiError::no_such_path)?,
        namespace: pod.namespace,
        name: budget,
    };
    let how = How {
        tracking: Tracking::By(SERVER),
        ..How::request(Part::Status, dry_run)
    };
    let now = shared.settings.clock.now().to_string();
    let changed = change(shared, subject, how, |budget| {
        check_budget(budget)?;
        let mut changed = budget.clone();
        let mut status = budget.part("status");
        let left = status["disruptionsAllowed"].as_i64().unwrap_or(0) - 1;
        status["disruptionsAllowed"] = json!(left);
        if left == 0 {
            forbid_more(&mut status, &now);
        }
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][pod.name] = json!(now);
        changed.set("status", Some(status));
        Ok(changed)
    });
    changed.map(drop)
}

fn check_budget(budget: &Object) -> Result<(), ApiError> {
    let (name, status) = (budget.text("name"), budget.part("status"));
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let forbidden = |why: &str| ApiError::denied(("policy", "poddisruptionbudget"), name, why);
    if count("observedGeneration") < budget.number("generation").unwrap_or(0) {
        return Err(unprocessed(name));
    }
    if count("disruptionsAllowed") < 0 {
        return Err(forbidden("pdb disruptions allowed is negative"));
    }
    let disrupted = status["disruptedPods"].as_object().map_or(0, Map::len);
    if disrupted > DISRUPTED_MAX {
        return Err(forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if count("disruptionsAllowed") > 0 {
        return Ok(());
    }
    let conditions = status["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let condition = conditions.find(|condition| condition["type"] == "DisruptionAllowed");
    let said = condition
        .filter(|condition| condition["status"] == "False")
        .and_then(|condition| {
            let text = |name: &str| condition[name].as_str().unwrap_or_default();
            let (reason, message) = (text("reason"), text("message"));
            (!message.is_empty()).then_some((reason, message))
        });
    let (current, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let rejects = format!("The disruption budget {name} does not allow evicting pods currently");
    let why = match said {
        Some(("SyncFailed", message)) => format!("{rejects} because it failed sync: {message}"),
        _ if current <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        ),
        Some((reason, message)) => format!("{rejects} ({reason}): {message}"),
        None => rejects,
    };
    Err(rejected(&why))
}

/// Returns the error for a budget that its controller has not processed yet.
fn unprocessed(budget: &str) -> ApiError {
    let why = format!("The disruption budget {budget} is still being processed by the server.");
    rejected(&why).retry_in(10)
}

fn rejected(why: &str) -> ApiError {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    ApiError::new(429, "TooManyRequests", message).caused_by(CAUSE, why, "")
}

/// Sets the condition `DisruptionAllowed` of a budget to false (`UpdateDisruptionAllowedCondition`).
fn forbid_more(status: &mut Value, now: &str) {
    let observed = status["observedGeneration"].clone();
    let condition = json!({
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": observed,
        "reason": "InsufficientPods",
        "message": "",
    });
    set_condition(status, condition, ("lastTransitionTime", now));
}

/// Sets a condition of a status. Its time changes only with its status.
fn set_condition(status: &mut Value, mut condition: Value, (time, now): (&str, &str)) {
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else {
        return;
    };
    let known = conditions
        .iter_mut()
        .find(|known| known["type"] == condition["type"]);
    condition[time] = match &known {
        Some(known) if known["status"] == condition["status"] => known[time].clone(),
        _ => json!(now),
    };
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// Adds the condition `DisruptionTarget` to a pod, and deletes the pod.
fn mark_and_delete(
    shared: &Shared,
    subject: Subject<'_>,
    mut options: DeleteOptions,
    how: How<'_>,
) -> Result<(), ApiError> {
    if !options.dry_run {
        let now = shared.settings.clock.now().to_string();
        let marked = change(shared, subject, How::request(Part::Status, false), |pod| {
            options.check(
                subject,
                pod,
                pod.text("resourceVersion").parse().unwrap_or(0),
            )?;
            let mut changed = pod.clone();
            let mut status = pod.part("status");
            let condition = json!({
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            });
            set_condition(&mut status, condition, ("lastTransitionTime", &now));
            changed.set("status", Some(status));
            Ok(changed)
        })?;
        // The mark is a change of the server itself.
        options.revision = options.revision.map(|_| marked.revision.to_string());
    }
    let how = How {
        dry_run: options.dry_run,
        ..how
    };
    delete(shared, subject, &options, how).map(drop)
}
