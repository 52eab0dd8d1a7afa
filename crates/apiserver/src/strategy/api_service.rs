//! Validates the registrations of API groups with an aggregated server.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/apiregistration/validation` in `kube-aggregator`.

use super::Hooks;
use super::field::Field;
use super::report::Report;
use crate::name_syntax::{NameRule, dns_1035_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks::checked_by(|service, _, report| check(service, report));

fn check(service: &Object, report: &mut Report) {
    let (metadata, spec) = (Field::of(service, "metadata"), Field::of(service, "spec"));
    let (group, version) = (spec.at("group"), spec.at("version"));
    let name = metadata.at("name");
    let expected = format!("{}.{}", version.text(), group.text());
    if NameRule::PathSegment.faults(name.text()).is_empty() && !name.is(&expected) {
        let expected = Quoted(&expected);
        name.invalid(
            report,
            format!("must be `spec.version+\".\"+spec.group`: {expected}"),
        );
    }
    if group.is_empty() && !version.is("v1") {
        let why = "only v1 may have an empty group and it better be legacy kube";
        report.required(&group.path, why);
    }
    if !group.is_empty() {
        group.check_text(report, |group| NameRule::Subdomain.faults(group));
    }
    version.check_text(report, dns_1035_faults);
    for (name, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = spec.at(name);
        if !(1..=max).contains(&priority.number()) {
            let why = format!("must be positive and less than {max}");
            report.invalid(&priority.path, priority.number(), why);
        }
    }
    check_backend(&spec, report);
}

fn check_backend(spec: &Field<'_, '_>, report: &mut Report) {
    let (service, bundle) = (spec.at("service"), spec.at("caBundle"));
    let insecure = spec.at("insecureSkipTLSVerify");
    let is_insecure = *insecure.value == true;
    if !service.exists() {
        if !bundle.is_empty() {
            let text = bundle.text().trim_end_matches('=');
            let shown = format!("{} bytes", text.len() * 3 / 4);
            let why = "local APIServices may not have a caBundle";
            report.invalid(&bundle.path, Quoted(&shown), why);
        }
        if is_insecure {
            let why = "local APIServices may not have insecureSkipTLSVerify";
            insecure.invalid(report, why);
        }
        return;
    }
    for name in ["namespace", "name"] {
        let field = service.at(name);
        if field.is_empty() {
            field.required(report);
        }
    }
    let port = service.at("port");
    if !(1..=65_535).contains(&port.number()) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        port.invalid(report, why);
    }
    if is_insecure && !bundle.is_empty() {
        insecure.invalid(report, "may not be true if caBundle is present");
    }
}
