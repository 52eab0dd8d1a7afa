//! Validates horizontal pod autoscalers: numbers, the target, and that one of no replicas has a fitting metric.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/autoscaling/validation` in Kubernetes. Not checked:
//! other values of metrics, and behavior.

use super::Hooks;
use super::field::Field;
use super::report::Report;
use crate::name_syntax::NameRule;
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks {
    check_status,
    ..Hooks::checked_by(check)
};

fn check(autoscaler: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(autoscaler, "spec");
    let old = old.map(|old| Field::of(old, "spec"));
    check_numbers(&spec, old.as_ref(), report);
    check_target(&spec.at("scaleTargetRef"), old.as_ref(), report);
    check_metrics(&spec, report);
}

fn check_numbers(spec: &Field<'_, '_>, old: Option<&Field<'_, '_>>, report: &mut Report) {
    let (least, most) = (spec.at("minReplicas"), spec.at("maxReplicas"));
    // 0 needs the feature gate `HPAScaleToZero`, which is off by default.
    let bound = i64::from(old.is_none_or(|old| old.value["minReplicas"] != 0));
    if least.exists() && least.number() < bound {
        least.invalid(report, format!("must be greater than or equal to {bound}"));
    }
    if most.number() == 0 {
        report.required(&most.path, "must be set and greater than 0");
    } else if most.number() < 0 {
        most.invalid(report, "must be greater than or equal to 1");
    }
    if least.exists() && most.number() < least.number() {
        let why = "must be greater than or equal to `minReplicas`";
        report.invalid(&most.path, most.number(), why);
    }
}

/// Checks the reference to the scaled object (`ValidateCrossVersionObjectReference`).
fn check_target(target: &Field<'_, '_>, old: Option<&Field<'_, '_>>, report: &mut Report) {
    for name in ["kind", "name"] {
        let field = target.at(name);
        if field.is_empty() {
            field.required(report);
        } else {
            field.check_text(report, |text| NameRule::PathSegment.faults(text));
        }
    }
    let kind_is_unchanged = old.is_some_and(|old| {
        let old = old.at("scaleTargetRef");
        ["apiVersion", "kind"].map(|name| old.at(name).text())
            == ["apiVersion", "kind"].map(|name| target.at(name).text())
    });
    if kind_is_unchanged {
        return;
    }
    let version = target.at("apiVersion");
    let group = match version.text().split('/').collect::<Vec<_>>()[..] {
        [_] => "",
        [group, _] => group,
        _ => {
            let fault = format!("unexpected GroupVersion string: {}", version.text());
            return version.invalid(report, fault);
        }
    };
    if group.is_empty() && !target.at("kind").is("ReplicationController") {
        report.invalid(
            &version.path,
            Quoted(version.text()),
            "apiVersion must specify API group",
        );
    }
}

/// Checks that an autoscaler that may remove all replicas has a metric that does not need replicas.
fn check_metrics(spec: &Field<'_, '_>, report: &mut Report) {
    let metrics = spec.at("metrics");
    let needs_none =
        |metric: Field<'_, '_>| ["Object", "External"].contains(&metric.at("type").text());
    if spec.value["minReplicas"] == 0 && !metrics.items().any(needs_none) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbidden(report, why);
    }
}

fn check_status(autoscaler: &Object, _: Option<&Object>, report: &mut Report) {
    let status = Field::of(autoscaler, "status");
    for count in ["currentReplicas", "desiredReplicas"] {
        status.at(count).check_not_negative(report);
    }
}
