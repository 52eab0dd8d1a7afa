//! Validates leases.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/coordination/validation` in Kubernetes.

use serde_json::Value;

use super::Hooks;
use super::field::Field;
use super::report::Report;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare: drop_disabled,
    ..Hooks::checked_by(check)
};

/// Drops the fields of coordinated leader election, which is off by default.
fn drop_disabled(lease: &mut Object) {
    const DISABLED: [&str; 2] = ["preferredHolder", "strategy"];
    let is_set = |spec: &&Value| DISABLED.iter().any(|name| spec.get(name).is_some());
    let Some(Value::Object(mut spec)) = lease.get("spec").filter(is_set).cloned() else {
        return;
    };
    spec.retain(|name, _| !DISABLED.contains(&name.as_str()));
    lease.set("spec", Some(Value::Object(spec)));
}

fn check(lease: &Object, _old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(lease, "spec");
    let duration = spec.at("leaseDurationSeconds");
    if duration.exists() && duration.number() <= 0 {
        duration.invalid(report, "must be greater than 0");
    }
    spec.at("leaseTransitions").check_not_negative(report);
}
