//! Allocates the cluster IPs and node ports of services, and keeps them when a service changes.
//!
//! The cluster has one family of addresses, IPv4. The rules are those of `registry/core/service` in Kubernetes, with one
//! difference: a cluster IP that a client sets can be outside of the range.
//!
//! Guarantees: a new service has an address that no other service has. An address that a change needs is chosen by the uid
//! of the service, so two concurrent changes of services practically never choose the same one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};

use crate::go_json::to_text;
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::State;
use crate::status::{ApiError, FieldError};

type Members = Map<String, Value>;

/// First address that is allocated: those before it are for addresses that clients set.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([10, 96, 1, 0]);

/// Number of addresses that can be allocated: `10.96.1.0` to `10.96.255.254`.
const ADDRESSES: u32 = 0xff00 - 1;

/// First node port, as in Kubernetes.
const FIRST_PORT: i64 = 30_000;

/// Number of node ports: 30000 to 32767, as in Kubernetes.
const PORTS: i64 = 2_768;

/// Field of the port of health checks.
const HEALTH_PORT: &str = "spec.healthCheckNodePort";

/// What the other services have.
#[derive(Default)]
struct Used {
    addresses: BTreeSet<String>,
    ports: BTreeSet<i64>,
}

/// Allocates what a new service needs.
///
/// # Errors
///
/// Returns a 422 error if a requested address or port is in use, or if the requested families are not available.
pub(super) fn allocate(
    state: &State,
    services: &Resource,
    service: &mut Object,
) -> Result<(), ApiError> {
    let mut spec = members(service);
    pair_addresses(&mut spec, None);
    let used = Used::of(state, services, service.text("uid"));
    let changed = fill(&mut spec, None, &used, service.text("uid"));
    changed.map_err(|error| rejected(services, service, error))?;
    service.set("spec", Some(Value::Object(spec)));
    Ok(())
}

/// Keeps what a changed service has, and allocates or drops what its new type needs or does not need.
///
/// # Errors
///
/// Returns the same errors as [`allocate`].
pub(super) fn reallocate(
    state: &State,
    services: &Resource,
    old: &Object,
    service: &mut Object,
) -> Result<(), ApiError> {
    let (before, mut spec) = (members(old), members(service));
    keep_allocated(&before, &mut spec);
    pair_addresses(&mut spec, Some(&before));
    let used = Used::of(state, services, old.text("uid"));
    let changed = fill(&mut spec, Some(&before), &used, old.text("uid"));
    changed.map_err(|error| rejected(services, service, error))?;
    drop_unneeded(&before, &mut spec);
    service.set("spec", Some(Value::Object(spec)));
    Ok(())
}

fn rejected(services: &Resource, service: &Object, error: FieldError) -> ApiError {
    ApiError::invalid(&services.kind, service.text("name"), &[error])
}

fn members(service: &Object) -> Members {
    let spec = service.get("spec").and_then(Value::as_object);
    spec.cloned().unwrap_or_default()
}

fn text<'a>(spec: &'a Members, name: &str) -> &'a str {
    spec.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn texts(spec: &Members, name: &str) -> Vec<String> {
    let list = spec.get(name).and_then(Value::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn set_texts(spec: &mut Members, name: &str, texts: &[String]) {
    if texts.is_empty() {
        spec.remove(name);
    } else {
        spec.insert(name.to_owned(), json!(texts));
    }
}

fn needs_address(spec: &Members) -> bool {
    text(spec, "type") != "ExternalName"
}

/// Returns whether the ports have node ports, or are those of a load balancer that has none.
fn has_ports_of_nodes(spec: &Members) -> bool {
    matches!(text(spec, "type"), "NodePort" | "LoadBalancer")
}

/// Returns whether ports without node ports get some.
fn allocates_ports(spec: &Members) -> bool {
    has_ports_of_nodes(spec)
        && (text(spec, "type") == "NodePort"
            || spec.get("allocateLoadBalancerNodePorts") != Some(&json!(false)))
}

fn needs_health_port(spec: &Members) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

fn ports(spec: &Members) -> impl Iterator<Item = &Members> {
    let ports = spec.get("ports").and_then(Value::as_array);
    ports.into_iter().flatten().filter_map(Value::as_object)
}

fn ports_mut(spec: &mut Members) -> impl Iterator<Item = &mut Members> {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    ports.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn number(members: &Members, name: &str) -> i64 {
    members.get(name).and_then(Value::as_i64).unwrap_or(0)
}

fn node_ports(spec: &Members) -> BTreeSet<i64> {
    let ports = ports(spec).map(|port| number(port, "nodePort"));
    ports.filter(|port| *port != 0).collect()
}

/// Copies what was allocated, if a client omits it (`patchAllocatedValues`).
fn keep_allocated(old: &Members, new: &mut Members) {
    if needs_address(old) && needs_address(new) {
        if text(new, "clusterIP").is_empty() {
            new.insert("clusterIP".to_owned(), json!(text(old, "clusterIP")));
        }
        if texts(new, "clusterIPs").is_empty() {
            set_texts(new, "clusterIPs", &texts(old, "clusterIPs"));
        }
    }
    if allocates_ports(old) && allocates_ports(new) {
        let kept: BTreeSet<i64> = node_ports(old)
            .intersection(&node_ports(new))
            .copied()
            .collect();
        for port in ports_mut(new) {
            let same = ports(old).filter(|known| text(known, "name") == text(port, "name"));
            let of_old = same.last().map_or(0, |known| number(known, "nodePort"));
            if number(port, "nodePort") == 0 && of_old != 0 && !kept.contains(&of_old) {
                port.insert("nodePort".to_owned(), json!(of_old));
            }
        }
    }
    if needs_health_port(old) && needs_health_port(new) && number(new, "healthCheckNodePort") == 0 {
        let port = number(old, "healthCheckNodePort");
        new.insert("healthCheckNodePort".to_owned(), json!(port));
    }
}

/// Makes `clusterIP` and `clusterIPs` agree, if a client sets only one of them (`normalizeClusterIPs`).
fn pair_addresses(spec: &mut Members, old: Option<&Members>) {
    let address = text(spec, "clusterIP").to_owned();
    let addresses = texts(spec, "clusterIPs");
    let Some(old) = old else {
        if !address.is_empty() && addresses.is_empty() {
            set_texts(spec, "clusterIPs", &[address]);
        }
        return;
    };
    let (old_address, old_addresses) = (text(old, "clusterIP"), texts(old, "clusterIPs"));
    if address == old_address {
        if addresses.is_empty() {
            set_texts(spec, "clusterIPs", &old_addresses);
        }
    } else if addresses == old_addresses {
        let cleared = !old_address.is_empty() && address.is_empty();
        let own = if cleared { Vec::new() } else { vec![address] };
        set_texts(spec, "clusterIPs", &own);
    }
}

/// Sets the families, and allocates the address and the ports that the service lacks.
fn fill(
    spec: &mut Members,
    old: Option<&Members>,
    used: &Used,
    uid: &str,
) -> Result<(), FieldError> {
    if needs_address(spec) {
        set_families(spec, old)?;
        if old.is_none_or(|old| !needs_address(old)) {
            set_address(spec, used, uid)?;
        }
    } else {
        // Kubernetes removes it when it reads the service.
        spec.remove("internalTrafficPolicy");
    }
    let known = old.map(|old| (node_ports(old), number(old, "healthCheckNodePort")));
    let (known, known_health) = known.unwrap_or_default();
    let mut taken = used.ports.clone();
    if has_ports_of_nodes(spec) {
        set_node_ports(spec, &known, &mut taken)?;
    }
    if needs_health_port(spec) {
        let sent = number(spec, "healthCheckNodePort");
        let port = match sent {
            0 => free_port(&taken, HEALTH_PORT)?,
            sent if sent == known_health => sent,
            sent => checked_port(sent, &taken, HEALTH_PORT)?,
        };
        spec.insert("healthCheckNodePort".to_owned(), json!(port));
    }
    Ok(())
}

/// Sets the families of addresses and their policy (`initIPFamilyFields`).
fn set_families(spec: &mut Members, old: Option<&Members>) -> Result<(), FieldError> {
    let is_open = text(spec, "clusterIP") == "None"
        && spec
            .get("selector")
            .and_then(Value::as_object)
            .is_none_or(Members::is_empty);
    if text(spec, "ipFamilyPolicy").is_empty() {
        let of_old = old
            .map(|old| text(old, "ipFamilyPolicy"))
            .unwrap_or_default();
        let policy = match of_old {
            "" if is_open => "RequireDualStack",
            "" => "SingleStack",
            policy => policy,
        };
        spec.insert("ipFamilyPolicy".to_owned(), json!(policy));
    }
    let policy = text(spec, "ipFamilyPolicy").to_owned();
    let mut families = texts(spec, "ipFamilies");
    let addresses = texts(spec, "clusterIPs");
    let headed = addresses.iter().take_while(|address| *address != "None");
    for address in headed.skip(families.len()) {
        families.push(
            if address.contains(':') {
                "IPv6"
            } else {
                "IPv4"
            }
            .to_owned(),
        );
    }
    if families.is_empty() {
        families.push("IPv4".to_owned());
    }
    if is_open {
        if families.len() < 2 && policy != "SingleStack" {
            let other = if families[0] == "IPv4" {
                "IPv6"
            } else {
                "IPv4"
            };
            families.push(other.to_owned());
        }
    } else if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        return Err(FieldError::invalid(
            "spec.ipFamilyPolicy",
            to_text(&policy),
            why,
        ));
    } else if let Some(at) = families.iter().position(|family| family != "IPv4") {
        let field = format!("spec.ipFamilies[{at}]");
        let why = "not configured on this cluster";
        return Err(FieldError::invalid(field, to_text(&families[at]), why));
    }
    set_texts(spec, "ipFamilies", &families);
    Ok(())
}

/// Allocates the cluster IP, or checks the requested one.
fn set_address(spec: &mut Members, used: &Used, uid: &str) -> Result<(), FieldError> {
    let sent = texts(spec, "clusterIPs");
    let address = match sent.first().map(String::as_str) {
        Some("None") => return Ok(()),
        None | Some("") => used.free_address(uid).ok_or_else(|| {
            let why = "failed to allocate IP: range is full";
            FieldError::invalid("spec.clusterIPs", "[]", why)
        })?,
        Some(address) if used.addresses.contains(address) => {
            let why = format!("failed to allocate IP {address}: provided IP is already allocated");
            return Err(FieldError::invalid("spec.clusterIPs", to_text(&sent), &why));
        }
        Some(address) => address.to_owned(),
    };
    spec.insert("clusterIP".to_owned(), json!(address));
    spec.insert("clusterIPs".to_owned(), json!([address]));
    Ok(())
}

/// Allocates the node ports, or checks the requested ones (`initNodePorts`).
///
/// Ports with the same number, such as one of TCP and one of UDP, have the same node port.
fn set_node_ports(
    spec: &mut Members,
    known: &BTreeSet<i64>,
    taken: &mut BTreeSet<i64>,
) -> Result<(), FieldError> {
    let allocates = allocates_ports(spec);
    let requested: Vec<(i64, i64)> = ports(spec)
        .map(|port| (number(port, "port"), number(port, "nodePort")))
        .collect();
    let mut done: Vec<(i64, i64)> = Vec::new();
    for (at, port) in ports_mut(spec).enumerate() {
        let (own, sent) = requested[at];
        if sent == 0 && !allocates {
            continue;
        }
        let shared = done.iter().find(|(number, _)| *number == own);
        let wanted = match (sent, shared) {
            (0, Some((_, port))) => *port,
            (0, None) => {
                let mut later = requested
                    .iter()
                    .filter(|(number, port)| *number == own && *port != 0);
                later.next().map_or(0, |(_, port)| *port)
            }
            (sent, _) => sent,
        };
        let field = format!("spec.ports[{at}].nodePort");
        let node_port = if wanted == 0 {
            free_port(taken, &field)?
        } else if known.contains(&wanted) || done.iter().any(|(_, port)| *port == wanted) {
            wanted
        } else {
            checked_port(wanted, taken, &field)?
        };
        taken.insert(node_port);
        done.push((own, node_port));
        port.insert("nodePort".to_owned(), json!(node_port));
    }
    Ok(())
}

/// Returns the first free node port.
fn free_port(taken: &BTreeSet<i64>, field: &str) -> Result<i64, FieldError> {
    let mut ports = FIRST_PORT..FIRST_PORT + PORTS;
    let free = ports.find(|port| !taken.contains(port));
    free.ok_or_else(|| {
        let why = "failed to allocate a nodePort: range is full";
        FieldError::invalid(field.to_owned(), 0, why)
    })
}

fn checked_port(port: i64, taken: &BTreeSet<i64>, field: &str) -> Result<i64, FieldError> {
    let last = FIRST_PORT + PORTS - 1;
    if !(FIRST_PORT..=last).contains(&port) {
        let why = format!(
            "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{last}"
        );
        return Err(FieldError::invalid(field.to_owned(), port, &why));
    }
    if taken.contains(&port) {
        let why = "provided port is already allocated";
        return Err(FieldError::invalid(field.to_owned(), port, why));
    }
    Ok(port)
}

/// Drops what the new type of a service does not have, if a client has not changed it (`dropTypeDependentFields`).
fn drop_unneeded(old: &Members, new: &mut Members) {
    let is_same = |new: &Members, name: &str| old.get(name) == new.get(name);
    if needs_address(old) && !needs_address(new) {
        if is_same(new, "clusterIP") && is_same(new, "clusterIPs") {
            new.remove("clusterIP");
            new.remove("clusterIPs");
        }
        for name in ["ipFamilies", "ipFamilyPolicy"] {
            if is_same(new, name) {
                new.remove(name);
            }
        }
    }
    let drops_ports = has_ports_of_nodes(old) && !has_ports_of_nodes(new);
    if drops_ports && node_ports(old).is_superset(&node_ports(new)) {
        for port in ports_mut(new) {
            port.remove("nodePort");
        }
    }
    let is_balancer = |spec: &Members| text(spec, "type") == "LoadBalancer";
    for (name, is_dropped) in [
        (
            "healthCheckNodePort",
            needs_health_port(old) && !needs_health_port(new),
        ),
        (
            "allocateLoadBalancerNodePorts",
            is_balancer(old) && !is_balancer(new),
        ),
        ("loadBalancerClass", is_balancer(old) && !is_balancer(new)),
        (
            "externalTrafficPolicy",
            is_external(old) && !is_external(new),
        ),
    ] {
        if is_dropped && is_same(new, name) {
            new.remove(name);
        }
    }
}

/// Returns whether a service is accessible from outside of the cluster.
fn is_external(spec: &Members) -> bool {
    has_ports_of_nodes(spec)
        || (text(spec, "type") == "ClusterIP" && !texts(spec, "externalIPs").is_empty())
}

// === impl Used ===

impl Used {
    /// Returns what all services have, except the one with this uid.
    fn of(state: &State, services: &Resource, uid: &str) -> Used {
        let mut used = Used::default();
        for entry in state.newest_below(services.collection, "") {
            let value = |label| services.strategy.fields.value_of(&entry.fields, label);
            let has_ports = matches!(value("spec.type"), Some("NodePort" | "LoadBalancer"));
            let service = has_ports.then(|| Object::stored(entry.object(services)));
            if service
                .as_ref()
                .is_some_and(|service| service.text("uid") == uid)
            {
                continue;
            }
            used.addresses
                .extend(value("spec.clusterIP").map(str::to_owned));
            if let Some(service) = service {
                let spec = members(&service);
                used.ports.extend(node_ports(&spec));
                used.ports.insert(number(&spec, "healthCheckNodePort"));
            }
        }
        used
    }

    /// Returns the first free address from a place that the uid determines.
    fn free_address(&self, uid: &str) -> Option<String> {
        let place = uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        let mut all = (0..ADDRESSES).map(|step| {
            let offset = (place % ADDRESSES + step) % ADDRESSES;
            Ipv4Addr::from_bits(FIRST_ADDRESS + offset).to_string()
        });
        all.find(|address| !self.addresses.contains(address))
    }
}
