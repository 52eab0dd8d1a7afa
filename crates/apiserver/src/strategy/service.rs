//! Defines the strategy of services: validates them, and clears the status of a load balancer of one that is none.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes.
//!
//! The module `verb::service_address` allocates addresses and ports. This module does not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::container::PROTOCOLS;
use super::field::Field;
use super::labels::check_labels;
use super::port::{check_port_number, port_name_faults};
use super::report::Report;
use super::{Hooks, Part, warnings};
use crate::name_syntax::{NameRule, label_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const HOOKS: Hooks = Hooks {
    check,
    warn: Some(warnings::of_service),
    prepare_update: clear_balancer,
    ..Hooks::NONE
};

/// Clears the status of a load balancer, as Kubernetes does although the load balancer can still exist.
fn clear_balancer(service: &mut Object, _old: &Object, part: Part) {
    let spec = service.get("spec").unwrap_or(&Value::Null);
    if let (Part::Main, Some(mut status)) = (part, service.sound_part("status"))
        && spec["type"] != "LoadBalancer"
    {
        status["loadBalancer"] = json!({});
        service.set("status", Some(status));
    }
}

/// Checks the ports, the type and the affinity of a service. Not checked: addresses, ranges of sources, and traffic
/// policies.
fn check(service: &Object, old: Option<&Object>, report: &mut Report) {
    let spec = Field::of(service, "spec");
    let (kind, ports) = (spec.at("type"), spec.at("ports"));
    let addresses = spec.at("clusterIPs");
    let is_headless = spec.at("clusterIP").is("None") || addresses.value[0] == "None";
    if ports.is_empty() && !is_headless && !kind.is("ExternalName") {
        ports.required(report);
    }
    match kind.text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless => {
            let field = Field {
                path: addresses.path.index(0),
                value: &json!("None"),
            };
            field.invalid(
                report,
                format!("may not be set to 'None' for {kind} services"),
            );
        }
        "ExternalName" => check_external_name(&spec, report),
        _ => {}
    }
    check_ports(&ports, report);
    check_labels(&spec.at("selector"), report);
    let affinity = spec.at("sessionAffinity");
    affinity.check_one_of(report, &["ClientIP", "None"]);
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    kind.check_one_of(report, &kinds);
    if kind.is("ClusterIP") {
        for port in ports.items() {
            let port = port.at("nodePort");
            if port.number() != 0 {
                port.forbidden(report, "may not be used when `type` is 'ClusterIP'");
            }
        }
    }
    check_duplicates(&ports, old.is_none(), report);
}

fn check_external_name(spec: &Field<'_, '_>, report: &mut Report) {
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let field = spec.at(name);
        let is_paired = name == "clusterIPs" && !spec.at("clusterIP").is_empty();
        if is_paired || !field.is_empty() {
            field.forbidden(report, "may not be set for ExternalName services");
        }
    }
    let name = spec.at("externalName");
    match name.text().strip_suffix('.').unwrap_or(name.text()) {
        "" => name.required(report),
        domain => {
            for fault in NameRule::Subdomain.faults(domain) {
                report.invalid(&name.path, Quoted(domain), fault);
            }
        }
    }
}

fn check_ports(ports: &Field<'_, '_>, report: &mut Report) {
    let needs_names = ports.items().count() > 1;
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if needs_names && name.is_empty() {
            name.required(report);
        } else if !name.is_empty() {
            name.check_text(report, label_faults);
            if !names.insert(name.text()) {
                name.duplicate(report);
            }
        }
        check_port_number(&port.at("port"), report);
        port.at("protocol").check_one_of(report, &PROTOCOLS);
        let target = port.at("targetPort");
        if target.value.is_string() {
            target.check_text(report, port_name_faults);
        } else {
            check_port_number(&target, report);
        }
    }
}

/// Checks that no two ports with one protocol have the same node port or the same port.
fn check_duplicates(ports: &Field<'_, '_>, is_new: bool, report: &mut Report) {
    let mut known = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol"), port.at("nodePort"));
        // Two ports of a new service can have one node port only if they have one number. The allocation checks it.
        let shared = if is_new { port.at("port").number() } else { 0 };
        let is_known = !known.insert((protocol.text(), number.number(), shared));
        if number.number() != 0 && is_known {
            number.duplicate(report);
        }
    }
    let mut known = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.at("protocol"), port.at("port"));
        if !known.insert((protocol.text(), number.number())) {
            // Kubernetes shows its internal type.
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                protocol.shown(),
                number.number()
            );
            report.duplicate(&port.path, shown);
        }
    }
}
