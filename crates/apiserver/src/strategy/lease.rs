//! Validates leases.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/coordination/validation` in Kubernetes. The fields of
//! coordinated leader election, which is off by default, are not checked.

use super::Hooks;
use super::field::Field;
use super::report::Report;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks::checked_by(check);

fn check(lease: &Object, _old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(lease, "spec");
    let duration = spec.at("leaseDurationSeconds");
    if duration.exists() && duration.number() <= 0 {
        duration.invalid(report, "must be greater than 0");
    }
    spec.at("leaseTransitions").check_not_negative(report);
}
