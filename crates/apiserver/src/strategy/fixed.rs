//! Validates small kinds, most fields of which can't change: classes of ingresses, storage, runtimes and priorities,
//! storage drivers, disruption budgets, and templates of pods.
//!
//! Guarantees: the errors and their order are those of Kubernetes.

use std::collections::BTreeSet;

use super::field::Field;
use super::int_or_percent;
use super::labels::check_selector;
use super::pod_spec::check_template;
use super::report::Report;
use super::{Hooks, warnings};
use crate::go_json::to_text;
use crate::name_syntax::{NameRule, key_faults, label_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const CSI_DRIVER: Hooks = Hooks::checked_by(check_driver);
pub(super) const INGRESS_CLASS: Hooks = Hooks::checked_by(check_ingress_class);
pub(super) const PRIORITY_CLASS: Hooks = Hooks::checked_by(check_priority_class);
pub(super) const RUNTIME_CLASS: Hooks = Hooks::checked_by(check_runtime_class);
pub(super) const STORAGE_CLASS: Hooks = Hooks::checked_by(check_storage_class);
pub(super) const DISRUPTION_BUDGET: Hooks = Hooks::checked_by(check_budget);
pub(super) const POD_TEMPLATE: Hooks = Hooks {
    warn: Some(warnings::of_pod_template),
    ..Hooks::checked_by(|template, _, report| {
        check_template(&Field::of(template, "template"), report);
    })
};

/// The priority classes that each cluster has.
pub(crate) const SYSTEM_CLASSES: [(&str, i64); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Shortest validity in seconds of a token for a storage driver: ten minutes.
const TOKEN_SECONDS_MIN: i64 = 600;
/// Longest validity in seconds of a token for a storage driver: 2^32 s.
const TOKEN_SECONDS_MAX: i64 = 1 << 32;

/// The highest priority that a class of a user can have (`HighestUserDefinablePriority`).
const PRIORITY_MAX: i64 = 1_000_000_000;

fn check_driver(driver: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(driver, "spec");
    spec.at("fsGroupPolicy")
        .check_one_of(report, &["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.at("tokenRequests");
    let mut audiences = BTreeSet::new();
    for request in requests.items() {
        let (audience, seconds) = (request.at("audience"), request.at("expirationSeconds"));
        if !audiences.insert(audience.text()) {
            audience.duplicate(report);
        } else if seconds.exists() && seconds.number() < TOKEN_SECONDS_MIN {
            seconds.invalid(report, "may not specify a duration less than 10 minutes");
        } else if seconds.number() > TOKEN_SECONDS_MAX {
            let why = "may not specify a duration larger than 2^32 seconds";
            seconds.invalid(report, why);
        }
    }
    let modes = spec.at("volumeLifecycleModes");
    for mode in modes.items() {
        let known = ["Persistent", "Ephemeral"];
        if !known.contains(&mode.text()) {
            report.unsupported(&modes.path, mode.shown(), &known);
        }
    }
    let period = spec.at("nodeAllocatableUpdatePeriodSeconds");
    if period.exists() && period.number() < 10 {
        period.invalid(report, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.at("serviceAccountTokenInSecrets");
    if in_secrets.exists() && requests.is_empty() {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        in_secrets.invalid(report, why);
    }
    let Some(old) = old else { return };
    let old = Field::of(old, "spec");
    let attach = Field {
        // The name is wrong, as in Kubernetes.
        path: spec.path.child("attachedRequired"),
        value: &spec.value["attachRequired"],
    };
    attach.check_unchanged(report, &old.at("attachRequired"));
    modes.check_unchanged(report, &old.at("volumeLifecycleModes"));
}

fn check_ingress_class(class: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(class, "spec");
    let controller = spec.at("controller");
    if let Some(old) = old {
        let old = Field::of(old, "spec");
        controller.check_unchanged(report, &old.at("controller"));
    }
    if controller.is_empty() {
        return controller.required(report);
    }
    let (domain, path) = controller.text().split_once('/').unwrap_or_default();
    if domain.is_empty() || path.is_empty() {
        let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        return controller.invalid(report, why);
    }
    for fault in NameRule::Subdomain.faults(domain) {
        report.invalid(&controller.path, Quoted(domain), fault);
    }
}

fn check_priority_class(class: &Object, old: Option<&Object>, report: &mut Report) {
    let value = Field::of(class, "value");
    let policy = Field::of(class, "preemptionPolicy");
    if let Some(old) = old {
        if value.number() != Field::of(old, "value").number() {
            value.forbidden(report, "may not be changed in an update.");
        }
        return policy.check_unchanged(report, &Field::of(old, "preemptionPolicy"));
    }
    let name = class.text("name");
    let metadata = Field::of(class, "metadata");
    if name.starts_with("system-") {
        if let Some(why) = system_class_fault(name, value.number()) {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {why}"
            );
            metadata.at("name").forbidden(report, why);
        }
    } else if value.number() > PRIORITY_MAX {
        let why = format!("maximum allowed value of a user defined priority is {PRIORITY_MAX}");
        value.forbidden(report, why);
    }
    if policy.exists() {
        policy.check_one_of(report, &["PreemptLowerPriority", "Never"]);
    }
}

fn system_class_fault(name: &str, value: i64) -> Option<String> {
    let known = SYSTEM_CLASSES.iter().find(|(known, _)| *known == name);
    match known {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, expected)) if *expected != value => {
            Some(format!("value of {name} PriorityClass must be {expected}"))
        }
        Some(_) => None,
    }
}

fn check_runtime_class(class: &Object, old: Option<&Object>, report: &mut Report) {
    let handler = Field::of(class, "handler");
    match old {
        Some(old) => handler.check_unchanged(report, &Field::of(old, "handler")),
        None if handler.is_empty() => handler.required(report),
        None => handler.check_text(report, label_faults),
    }
}

fn check_storage_class(class: &Object, old: Option<&Object>, report: &mut Report) {
    let field = |name| Field::of(class, name);
    if let Some(old) = old {
        for name in [
            "parameters",
            "provisioner",
            "reclaimPolicy",
            "volumeBindingMode",
        ] {
            field(name).check_unchanged(report, &Field::of(old, name));
        }
        return;
    }
    let provisioner = field("provisioner");
    if provisioner.is_empty() {
        provisioner.required(report);
    } else {
        provisioner.check_text(report, |name| key_faults(&name.to_lowercase()));
    }
    field("reclaimPolicy").check_one_of(report, &["Delete", "Retain"]);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    field("volumeBindingMode").check_one_of(report, &modes);
}

fn check_budget(budget: &Object, _old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(budget, "spec");
    let limits = [spec.at("minAvailable"), spec.at("maxUnavailable")];
    if limits.iter().all(Field::exists) {
        // Kubernetes shows its internal type.
        let [least, most, selector, policy] = [
            "minAvailable",
            "maxUnavailable",
            "selector",
            "unhealthyPodEvictionPolicy",
        ]
        .map(|name| to_text(&spec.value[name]));
        let shown = format!(
            "{{\"MinAvailable\":{least},\"Selector\":{selector},\"MaxUnavailable\":{most},\"UnhealthyPodEvictionPolicy\":{policy}}}"
        );
        let why = "minAvailable and maxUnavailable cannot be both set";
        report.invalid(&spec.path, shown, why);
    }
    for limit in limits.iter().filter(|limit| limit.exists()) {
        int_or_percent::check(limit, report);
        int_or_percent::check_at_most_all(limit, report);
    }
    check_selector(&spec.at("selector"), report);
    let policy = spec.at("unhealthyPodEvictionPolicy");
    if policy.exists() {
        policy.check_one_of(report, &["AlwaysAllow", "IfHealthyBudget"]);
    }
}
