//! Validates ingresses.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/networking/validation` in Kubernetes.

use super::Hooks;
use super::field::Field;
use super::ip::parse_ip;
use super::port::{check_port_number, port_name_faults};
use super::report::{Path, Report};
use crate::name_syntax::{NameRule, label_faults, wildcard_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks::checked_by(check);

/// Annotation with the name of the class, which is older than the field.
const CLASS: &str = "kubernetes.io/ingress.class";

/// Parts that a path of a type with a meaning can't have.
const FORBIDDEN_PARTS: [&str; 5] = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_ENDS: [&str; 2] = ["/..", "/."];

fn check(ingress: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(ingress, "spec");
    let (default, rules) = (spec.at("defaultBackend"), spec.at("rules"));
    if rules.is_empty() && !default.exists() {
        let why = "either `defaultBackend` or `rules` must be specified";
        report.invalid(&spec.path, rules.shown(), why);
    }
    if default.exists() {
        check_backend(&default, report);
    }
    for rule in rules.items() {
        check_rule(&rule, report);
    }
    for tls in spec.at("tls").items() {
        for host in tls.at("hosts").items() {
            host.check_text(report, host_faults);
        }
        let secret = tls.at("secretName");
        if !secret.is_empty() {
            secret.check_text(report, |name| NameRule::Subdomain.faults(name));
        }
    }
    let class = spec.at("ingressClassName");
    if class.exists() {
        class.check_text(report, |name| NameRule::Subdomain.faults(name));
    }
    let annotations = ingress.meta("annotations");
    let annotated = annotations.and_then(|all| all.get(CLASS)?.as_str());
    if let Some(annotated) = annotated
        && old.is_none()
        && class.exists()
        && !class.is(annotated)
    {
        let why = "must match `ingressClassName` when both are specified";
        let path = Path::root("annotations");
        report.invalid(&path.child(CLASS), Quoted(annotated), why);
    }
}

fn host_faults(host: &str) -> Vec<String> {
    if host.contains('*') {
        wildcard_faults(host)
    } else {
        NameRule::Subdomain.faults(host)
    }
}

fn check_rule(rule: &Field<'_, '_>, report: &mut Report) {
    let (host, http) = (rule.at("host"), rule.at("http"));
    if !host.is_empty() {
        if parse_ip(host.text()).is_some() {
            host.invalid(report, "must be a DNS name, not an IP address");
        }
        host.check_text(report, host_faults);
    }
    if !http.exists() {
        return;
    }
    let paths = http.at("paths");
    if paths.is_empty() {
        paths.required(report);
    }
    for path in paths.items() {
        check_path(&path, report);
    }
}

fn check_path(rule: &Field<'_, '_>, report: &mut Report) {
    let (kind, path) = (rule.at("pathType"), rule.at("path"));
    let is_absolute = path.text().starts_with('/');
    match kind.text() {
        _ if !kind.exists() => {
            return report.required(&kind.path, "pathType must be specified");
        }
        "Exact" | "Prefix" => {
            if !is_absolute {
                path.invalid(report, "must be an absolute path");
            }
            for part in FORBIDDEN_PARTS {
                if path.text().contains(part) {
                    path.invalid(report, format!("must not contain '{part}'"));
                }
            }
            for end in FORBIDDEN_ENDS {
                if path.text().ends_with(end) {
                    path.invalid(report, format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !path.is_empty() && !is_absolute {
                path.invalid(report, "must be an absolute path");
            }
        }
        _ => kind.unsupported(report, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    check_backend(&rule.at("backend"), report);
}

fn check_backend(backend: &Field<'_, '_>, report: &mut Report) {
    let (resource, service) = (backend.at("resource"), backend.at("service"));
    let fault = match (resource.exists(), service.exists()) {
        (true, true) => "cannot set both resource and service backends",
        (true, false) => return check_resource(&resource, report),
        (false, true) => return check_service(backend, &service, report),
        (false, false) => "resource or service backend is required",
    };
    report.invalid(&backend.path, "\"\"", fault);
}

fn check_service(backend: &Field<'_, '_>, service: &Field<'_, '_>, report: &mut Report) {
    let (name, port) = (service.at("name"), service.at("port"));
    if name.is_empty() {
        name.required(report);
    } else {
        name.check_text(report, label_faults);
    }
    let (name, number) = (port.at("name"), port.at("number"));
    match (!name.is_empty(), number.number() != 0) {
        (true, true) => {
            let why = "cannot set both port name & port number";
            report.invalid(&backend.path, "\"\"", why);
        }
        (true, false) => name.check_text(report, port_name_faults),
        (false, true) => check_port_number(&number, report),
        (false, false) => report.required(&backend.path, "port name or number is required"),
    }
}

/// Checks a reference to an object in the namespace (`TypedLocalObjectReference`).
fn check_resource(resource: &Field<'_, '_>, report: &mut Report) {
    let group = resource.at("apiGroup");
    if group.exists() {
        group.check_text(report, |group| NameRule::Subdomain.faults(group));
    }
    for name in ["kind", "name"] {
        let field = resource.at(name);
        if field.is_empty() {
            field.required(report);
        } else {
            field.check_text(report, |text| NameRule::PathSegment.faults(text));
        }
    }
}
