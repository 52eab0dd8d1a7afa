//! Validates resource quotas and limit ranges.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Resources are in the order
//! of their names, which is random in Kubernetes.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use super::Hooks;
use super::container::{check_quantity, parsed};
use super::field::{Field, IMMUTABLE};
use super::report::Report;
use super::resource_name::{
    can_overcommit, check_container_resource, check_resource_name, is_extended, is_of_quotas,
};
use crate::go_json::to_text;
use crate::name_syntax::key_faults;
use crate::object::Object;
use crate::quantity::Quantity;
use crate::quote::Quoted;

pub(super) const QUOTA: Hooks = Hooks::checked_by(check_quota);
pub(super) const LIMIT_RANGE: Hooks = Hooks::checked_by(|range, _, report| {
    check_limits(&Field::of(range, "spec"), report);
});

/// The scopes of pods that a selector can only require to exist.
const OF_PODS: [&str; 5] = [
    "BestEffort",
    "NotBestEffort",
    "Terminating",
    "NotTerminating",
    "CrossNamespacePodAffinity",
];

/// The resources of pods that a quota with another scope than `BestEffort` can limit.
const COMPUTE: [&str; 7] = [
    "pods",
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];

/// The resources that are counted.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// The kinds of objects that a limit range can limit, without others that have a domain.
const LIMITED: [&str; 3] = ["Pod", "Container", "PersistentVolumeClaim"];

const SCOPE: &str = "unsupported scope";
const SCOPE_OF_RESOURCE: &str = "unsupported scope applied to resource";
const CONFLICT: &str = "conflicting scopes";

fn check_quota(quota: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(quota, "spec");
    for (name, quantity) in spec.at("hard").entries() {
        check_resource_name(name, &quantity.path, report);
        if !name.contains('/') && !is_of_quotas(name) {
            let why = "must be a standard resource for quota";
            report.invalid(&quantity.path, Quoted(name), why);
        }
        check_quantity(&quantity, report);
        check_integer(name, &quantity, report);
    }
    check_scopes(&spec, report);
    check_scope_selector(&spec, report);
    let Some(old) = old else { return };
    let old = Field::of(old, "spec");
    let names = |spec: &Field<'_, '_>| {
        let scopes = spec.value["scopes"].as_array();
        let names = scopes.into_iter().flatten().filter_map(Value::as_str);
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    if names(&spec) != names(&old) {
        spec.at("scopes").invalid(report, IMMUTABLE);
    }
}

fn check_integer(name: &str, quantity: &Field<'_, '_>, report: &mut Report) {
    let is_integer = parsed(quantity).is_none_or(|quantity| quantity.as_integer().is_some());
    if !is_integer && (COUNTED.contains(&name) || is_extended(name)) {
        quantity.invalid(report, "must be an integer");
    }
}

fn is_scope(scope: &str) -> bool {
    OF_PODS.contains(&scope) || ["PriorityClass", "VolumeAttributesClass"].contains(&scope)
}

/// Returns whether a quota with a scope can limit a resource.
fn applies_to(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            ["persistentvolumeclaims", "requests.storage"].contains(&resource)
        }
        _ => !is_scope(scope) || COMPUTE.contains(&resource),
    }
}

fn check_scopes(spec: &Field<'_, '_>, report: &mut Report) {
    let scopes = spec.at("scopes");
    for scope in scopes.items() {
        if !is_scope(scope.text()) {
            scopes.invalid(report, SCOPE);
        }
        for _ in unlimited(spec, scope.text()) {
            scopes.invalid(report, SCOPE_OF_RESOURCE);
        }
    }
    for _ in conflicts(scopes.items().map(|scope| scope.text())) {
        scopes.invalid(report, CONFLICT);
    }
}

/// Returns the resources in a quota that a scope does not apply to.
fn unlimited<'v>(spec: &Field<'_, 'v>, scope: &str) -> impl Iterator<Item = &'v str> {
    let limited = spec.value["hard"].as_object().into_iter().flatten();
    let names = limited.map(|(name, _)| name.as_str());
    names.filter(move |name| is_of_quotas(name) && !applies_to(scope, name))
}

/// Returns the pairs of scopes that exclude each other.
fn conflicts<'v>(scopes: impl Iterator<Item = &'v str>) -> impl Iterator<Item = [&'static str; 2]> {
    let scopes: BTreeSet<&str> = scopes.collect();
    let pairs = [
        ["BestEffort", "NotBestEffort"],
        ["Terminating", "NotTerminating"],
    ];
    let pairs = pairs.into_iter();
    pairs.filter(move |pair| pair.iter().all(|scope| scopes.contains(scope)))
}

fn check_scope_selector(spec: &Field<'_, '_>, report: &mut Report) {
    let selector = spec.at("scopeSelector");
    let expressions = selector.at("matchExpressions");
    let [name_path, operator_path, values_path] =
        ["scopeName", "operator", "values"].map(|name| expressions.path.child(name));
    for expression in expressions.items() {
        let (scope, operator) = (expression.at("scopeName"), expression.at("operator"));
        let values = expression.at("values");
        if !is_scope(scope.text()) {
            report.invalid(&name_path, scope.shown(), SCOPE);
        }
        for _ in unlimited(spec, scope.text()) {
            let shown = shown_scope_selector(&expressions);
            report.invalid(&expressions.path, shown, SCOPE_OF_RESOURCE);
        }
        if OF_PODS.contains(&scope.text()) && !operator.is("Exists") {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            report.invalid(&operator_path, operator.shown(), why);
        }
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                report.required(&values_path, why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                report.invalid(&values_path, values.shown(), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                report.invalid(
                    &operator_path,
                    operator.shown(),
                    "not a valid selector operator",
                );
            }
        }
    }
    let scopes = expressions.value.as_array().into_iter().flatten();
    let names = scopes.filter_map(|expression| expression["scopeName"].as_str());
    for _ in conflicts(names) {
        let scopes = spec.at("scopes");
        report.invalid(&expressions.path, scopes.shown(), CONFLICT);
    }
}

/// Returns a selector as Kubernetes' internal type.
fn shown_scope_selector(expressions: &Field<'_, '_>) -> String {
    let shown: Vec<String> = expressions
        .items()
        .map(|expression| {
            let [scope, operator] = ["scopeName", "operator"]
                .map(|name| Quoted(expression.at(name).text()).to_string());
            let values = to_text(&expression.value["values"]);
            format!("{{\"ScopeName\":{scope},\"Operator\":{operator},\"Values\":{values}}}")
        })
        .collect();
    format!("{{\"MatchExpressions\":[{}]}}", shown.join(","))
}

fn check_limits(spec: &Field<'_, '_>, report: &mut Report) {
    let limits = spec.at("limits");
    let mut kinds = BTreeSet::new();
    for limit in limits.items() {
        let kind = limit.at("type");
        check_kind(&kind, report);
        if !kinds.insert(kind.text()) {
            kind.duplicate(report);
        }
        check_limit(&limit, report);
    }
}

fn check_kind(kind: &Field<'_, '_>, report: &mut Report) {
    let faults = key_faults(kind.text());
    let is_known = kind.text().contains('/') || LIMITED.contains(&kind.text());
    if faults.is_empty() && !is_known {
        kind.invalid(report, "must be a standard limit type or fully qualified");
    }
    for fault in faults {
        kind.invalid(report, fault);
    }
}

fn check_limit(limit: &Field<'_, '_>, report: &mut Report) {
    let kind = limit.at("type").text();
    let mut names = BTreeSet::new();
    for member in [
        "max",
        "min",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ] {
        let quantities = limit.at(member);
        let is_default = member.starts_with("default");
        if is_default && kind == "Pod" {
            if !quantities.is_empty() {
                let why = "may not be specified when `type` is 'Pod'";
                quantities.forbidden(report, why);
            }
            continue;
        }
        let storage = |member: &str| !limit.value[member]["storage"].is_null();
        let is_last = member == "maxLimitRequestRatio";
        if is_last && kind == "PersistentVolumeClaim" && !storage("min") && !storage("max") {
            let why =
                "either minimum or maximum storage value is required, but neither was provided";
            report.required(&limit.path.child("limits"), why);
        }
        for (name, quantity) in quantities.entries() {
            check_limited(kind, name, &quantity, report);
            names.insert(name);
        }
    }
    for name in names {
        check_order(limit, name, report);
    }
}

fn check_limited(kind: &str, name: &str, quantity: &Field<'_, '_>, report: &mut Report) {
    if matches!(kind, "Pod" | "Container") {
        check_container_resource(name, &quantity.path, report);
    } else {
        check_resource_name(name, &quantity.path, report);
    }
}

/// Checks that the minimum, the defaults and the maximum of one resource are in this order.
fn check_order(limit: &Field<'_, '_>, name: &str, report: &mut Report) {
    let maps = [
        "min",
        "max",
        "default",
        "defaultRequest",
        "maxLimitRequestRatio",
    ]
    .map(|member| limit.at(member));
    let [min, max, default, request, ratio] = [0, 1, 2, 3, 4].map(|at: usize| Field {
        path: maps[at].path.key(name),
        value: &maps[at].value[name],
    });
    let is_pod = limit.at("type").is("Pod");
    // The smaller one, the greater one, the one with the error, and the one that the error shows.
    let rows = [
        (&min, &max, &min, &min, ["min", "max"]),
        (
            &min,
            &request,
            &request,
            &request,
            ["min", "default request"],
        ),
        (
            &request,
            &max,
            &request,
            &request,
            ["default request", "max"],
        ),
        (
            &request,
            &default,
            &request,
            &request,
            ["default request", "default limit"],
        ),
        (&min, &default, &default, &min, ["min", "default"]),
        (&default, &max, &default, &max, ["default", "max"]),
    ];
    let of_pods = if is_pod { 1 } else { rows.len() };
    for (less, more, wrong, shown, names) in rows.into_iter().take(of_pods) {
        if order(less, more).is_some_and(Ordering::is_gt) {
            let [name_of_less, name_of_more] = names;
            let (less, more) = (less.text(), more.text());
            let why =
                format!("{name_of_less} value {less} is greater than {name_of_more} value {more}");
            report.invalid(&wrong.path, shown.shown(), why);
        }
    }
    check_ratio(&ratio, [&min, &max], report);
    let differ = order(&default, &request).is_some_and(Ordering::is_ne);
    if !is_pod && differ && !can_overcommit(name) {
        let (default, wanted) = (default.text(), request.text());
        let why = format!(
            "default value {default} must equal to defaultRequest value {wanted} in {name}"
        );
        request.invalid(report, why);
    }
}

/// Compares two quantities, if both exist.
fn order(one: &Field<'_, '_>, other: &Field<'_, '_>) -> Option<Ordering> {
    Some(parsed(one)?.compare(parsed(other)?))
}

fn check_ratio(ratio: &Field<'_, '_>, limits: [&Field<'_, '_>; 2], report: &mut Report) {
    let Some(most) = parsed(ratio) else { return };
    if most.compare(Quantity::from_integer(1)).is_lt() {
        ratio.invalid(report, format!("ratio {} is less than 1", ratio.text()));
    }
    if let [Some(min), Some(max)] = limits.map(parsed) {
        // Kubernetes divides thousandths, if they are integers of 64 bits.
        let [most, min, max] = [most, min, max].map(|quantity| quantity.as_float() * 1000.0);
        let quotient = max.round() / min.round();
        if most.round() / 1000.0 > quotient {
            let why = format!(
                "ratio {} is greater than max/min = {quotient:.6}",
                ratio.text()
            );
            ratio.invalid(report, why);
        }
    }
}
