//! Validates slices of endpoints.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/discovery/validation` in Kubernetes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Hooks;
use super::container::PROTOCOLS;
use super::field::Field;
use super::ip::{check_endpoint, check_ip, is_v4};
use super::report::Report;
use crate::name_syntax::{NameRule, key_faults, label_faults, value_faults};
use crate::object::Object;
use crate::quote::Quoted;

pub(super) const SLICE: Hooks = Hooks {
    prepare: drop_topology,
    ..Hooks::checked_by(check_slice)
};

const ADDRESSES_MAX: usize = 100;
const ENDPOINTS_MAX: usize = 1000;
const HINTS_MAX: usize = 8;
const PORTS_MAX: usize = 20_000;

/// Removes the field that had labels of nodes before version v1 (`dropTopologyOnV1`).
fn drop_topology(slice: &mut Object) {
    let endpoints = slice.members_mut().get_mut("endpoints");
    let endpoints = endpoints.and_then(Value::as_array_mut);
    for endpoint in endpoints.into_iter().flatten() {
        if let Some(members) = endpoint.as_object_mut() {
            members.remove("deprecatedTopology");
        }
    }
}

fn check_slice(slice: &Object, old: Option<&Object>, report: &mut Report) {
    let kind = Field::of(slice, "addressType");
    kind.check_required_one_of(report, &["FQDN", "IPv4", "IPv6"]);
    check_ports(&Field::of(slice, "ports"), report);
    let endpoints = Field::of(slice, "endpoints");
    // Kubernetes accepts endpoints that have not changed. Most slices that are written have changed ones.
    if old.is_none_or(|old| Field::of(old, "endpoints").value != endpoints.value) {
        check_endpoints(&endpoints, kind.text(), report);
    }
    if let Some(old) = old {
        kind.check_unchanged(report, &Field::of(old, "addressType"));
    }
}

/// Adds an error if a list has too many items, and returns whether it has.
fn is_too_long(list: &Field<'_, '_>, max: usize, report: &mut Report) -> bool {
    let found = list.value.as_array().map_or(0, Vec::len);
    if found > max {
        report.too_many(&list.path, found, max);
    }
    found > max
}

fn check_ports(ports: &Field<'_, '_>, report: &mut Report) {
    if is_too_long(ports, PORTS_MAX, report) {
        return;
    }
    let mut names = BTreeSet::new();
    for port in ports.items() {
        let (name, protocol) = (port.at("name"), port.at("appProtocol"));
        if !name.is_empty() {
            name.check_text(report, label_faults);
        }
        if !names.insert(name.text()) {
            name.duplicate(report);
        }
        port.at("protocol").check_one_of(report, &PROTOCOLS);
        if protocol.exists() {
            protocol.check_text(report, key_faults);
        }
    }
}

fn check_endpoints(endpoints: &Field<'_, '_>, kind: &str, report: &mut Report) {
    if is_too_long(endpoints, ENDPOINTS_MAX, report) {
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.at("addresses");
        if addresses.is_empty() {
            report.required(&addresses.path, "must contain at least 1 address");
        }
        is_too_long(&addresses, ADDRESSES_MAX, report);
        for address in addresses.items() {
            check_address(&addresses, &address, kind, report);
        }
        let node = endpoint.at("nodeName");
        if node.exists() {
            node.check_text(report, |name| NameRule::Subdomain.faults(name));
        }
        let host = endpoint.at("hostname");
        if host.exists() {
            host.check_text(report, label_faults);
        }
        let hints = endpoint.at("hints");
        if !is_too_long(&hints.at("forZones"), HINTS_MAX, report) {
            check_names(&hints.at("forZones"), value_faults, report);
            if !is_too_long(&hints.at("forNodes"), HINTS_MAX, report) {
                let faults = |name: &str| NameRule::Subdomain.faults(name);
                check_names(&hints.at("forNodes"), faults, report);
            }
        }
    }
}

/// Checks the names in a list of hints.
fn check_names(hints: &Field<'_, '_>, faults: impl Fn(&str) -> Vec<String>, report: &mut Report) {
    let mut names = BTreeSet::new();
    for hint in hints.items() {
        let name = hint.at("name");
        if !names.insert(name.text()) {
            name.duplicate(report);
        }
        name.check_text(report, &faults);
    }
}

fn check_address(
    addresses: &Field<'_, '_>,
    address: &Field<'_, '_>,
    kind: &str,
    report: &mut Report,
) {
    let is_four = match kind {
        "IPv4" => true,
        "IPv6" => false,
        "FQDN" => return check_domain(address, report),
        _ => return,
    };
    let Some(ip) = check_ip(address, report) else {
        return;
    };
    let canonical = ip.to_string();
    if !is_four && address.text() != canonical {
        let why = format!("must be in canonical form ({})", Quoted(&canonical));
        return address.invalid(report, why);
    }
    if is_v4(ip) != is_four {
        let why = format!("must be an {kind} address");
        report.invalid(&addresses.path, address.shown(), why);
    }
    check_endpoint(address, ip, report);
}

/// Checks a domain name with at least two labels (`IsFullyQualifiedDomainName`).
fn check_domain(address: &Field<'_, '_>, report: &mut Report) {
    let text = address.text();
    if text.is_empty() {
        return address.required(report);
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let faults = NameRule::Subdomain.faults(name);
    if !faults.is_empty() {
        return report.invalid(&address.path, Quoted(name), faults.join(","));
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return report.invalid(&address.path, Quoted(name), why);
    }
    for label in name.split('.') {
        let faults = label_faults(label);
        if !faults.is_empty() {
            return report.invalid(&address.path, Quoted(label), faults.join(","));
        }
    }
}
