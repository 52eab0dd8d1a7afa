//! Allocates the cluster IPs and node ports of services, and keeps them when a service changes.
//!
//! The cluster has one family of addresses, IPv4. The rules are those of `registry/core/service` in Kubernetes, with one
//! difference: a cluster IP that a client sets can be outside of the range.
//!
//! Guarantees:
//! - no two services have the same address or node port, unless direct calls have set them. The functions get the locked
//!   state, and the caller stores the service before it unlocks the state;
//! - a direct call only receives what its service lacks. It is not checked, and an ill-typed service is left as it is.

mod ports;
mod used;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::write::Origin;
use crate::go_json::to_text;
use crate::object::Object;
use crate::resource::Resource;
use crate::services::Held;
use crate::shared::State;
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;
use crate::typed;

use crate::services::spec::{
    self, Members, allocates_node_ports, has_node_ports, is_balancer, is_without_selector, members,
    needs_address, needs_health_port, node_ports, number, ports_mut, set_texts, text, texts,
};
use ports::set_ports;
use used::Used;

/// Why a service can't have what it asks for or needs.
enum Rejected {
    Fields(Vec<FieldError>),
    /// The cause of an error of the server.
    Internal(String),
    NoAddress,
}

/// Allocates what a new service needs.
///
/// # Errors
///
/// Returns a 422 error if a requested address or port is in use, or if the requested families are not available. Returns
/// a 500 error, as Kubernetes does, if no address or port is free, or if a requested port of health checks is in use.
pub(super) fn allocate(
    state: &mut State,
    services: &Resource,
    service: &mut Object,
    origin: Origin,
) -> Result<(), ApiError> {
    if is_ill_typed(services, service, origin) {
        return Ok(());
    }
    let mut spec = members(service);
    pair_addresses(&mut spec, None, origin);
    let used = Used {
        all: state.allocated(services),
        own: Held::default(),
    };
    fill(&mut spec, None, (&used, service.text("uid")), origin)
        .map_err(|rejected| rejected.into_error(services, service))?;
    service.set("spec", Some(Value::Object(spec)));
    Ok(())
}

/// Keeps what a changed service has, and allocates or drops what its new type needs or does not need.
///
/// # Errors
///
/// Returns the same errors as [`allocate`].
pub(super) fn reallocate(
    state: &mut State,
    services: &Resource,
    (entry, old): (&Entry, &Object),
    service: &mut Object,
    origin: Origin,
) -> Result<(), ApiError> {
    if is_ill_typed(services, service, origin) {
        return Ok(());
    }
    let (before, mut spec) = (members(old), members(service));
    keep_allocated(&before, &mut spec);
    pair_addresses(&mut spec, Some(&before), origin);
    let used = Used {
        all: state.allocated(services),
        own: Held::of(services, entry),
    };
    fill(&mut spec, Some(&before), (&used, old.text("uid")), origin)
        .map_err(|rejected| rejected.into_error(services, service))?;
    if origin == Origin::Request {
        drop_unneeded(&before, &mut spec);
    }
    service.set("spec", Some(Value::Object(spec)));
    Ok(())
}

/// Returns whether a direct call has values of wrong types. Those of requests were rejected before.
fn is_ill_typed(services: &Resource, service: &Object, origin: Origin) -> bool {
    origin != Origin::Request
        && typed::decode(service.clone().into_value(), services.value_type())
            .fault
            .is_some()
}

/// Copies what was allocated, if a client omits it (`patchAllocatedValues`).
fn keep_allocated(old: &Members, new: &mut Members) {
    if needs_address(old) && needs_address(new) {
        let address = text(old, "clusterIP");
        if text(new, "clusterIP").is_empty() && !address.is_empty() {
            new.insert("clusterIP".to_owned(), json!(address));
        }
        if texts(new, "clusterIPs").is_empty() {
            set_texts(new, "clusterIPs", &texts(old, "clusterIPs"));
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(new) {
        let (in_old, in_new) = (node_ports(old), node_ports(new));
        let by_name: BTreeMap<&str, i64> = spec::ports(old)
            .map(|port| (text(port, "name"), number(port, "nodePort")))
            .collect();
        for port in ports_mut(new) {
            let of_old = by_name.get(text(port, "name")).copied().unwrap_or(0);
            let is_kept = in_old.contains(&of_old) && in_new.contains(&of_old);
            if number(port, "nodePort") == 0 && of_old != 0 && !is_kept {
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
fn pair_addresses(spec: &mut Members, old: Option<&Members>, origin: Origin) {
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
    } else if addresses == old_addresses && origin == Origin::Request {
        let cleared = !old_address.is_empty() && address.is_empty();
        let own = if cleared { Vec::new() } else { vec![address] };
        set_texts(spec, "clusterIPs", &own);
    }
}

/// Sets the families, and allocates the address and the ports that the service lacks.
fn fill(
    spec: &mut Members,
    old: Option<&Members>,
    (used, uid): (&Used<'_>, &str),
    origin: Origin,
) -> Result<(), Rejected> {
    let checks = origin == Origin::Request;
    if needs_address(spec) {
        let errors = set_families(spec, old);
        if checks && !errors.is_empty() {
            return Err(Rejected::Fields(errors));
        }
    } else if checks {
        // Kubernetes removes it when it reads the service.
        spec.remove("internalTrafficPolicy");
    }
    let had_none = old.is_none_or(|old| !needs_address(old) || text(old, "clusterIP").is_empty());
    let filled = if had_none && needs_address(spec) {
        set_address(spec, (used, uid), checks)
    } else {
        Ok(())
    };
    let filled = filled.and_then(|()| set_ports(spec, old, used, checks));
    if checks { filled } else { Ok(()) }
}

/// Sets the families of addresses and their policy (`initIPFamilyFields`), and returns what is wrong with them.
fn set_families(spec: &mut Members, old: Option<&Members>) -> Vec<FieldError> {
    if text(spec, "ipFamilyPolicy").is_empty() {
        let of_old = old.map(|old| text(old, "ipFamilyPolicy"));
        let policy = match of_old.unwrap_or_default() {
            "" if is_without_selector(spec) => "RequireDualStack",
            "" => "SingleStack",
            policy => policy,
        };
        spec.insert("ipFamilyPolicy".to_owned(), json!(policy));
    }
    let is_single = text(spec, "ipFamilyPolicy") == "SingleStack";
    let mut families = texts(spec, "ipFamilies");
    if is_single && old.is_some_and(|old| texts(old, "ipFamilies") == families) {
        families.truncate(1);
    }
    let mut errors = infer_families(spec, &mut families);
    if families.is_empty() {
        families.push("IPv4".to_owned());
    }
    if is_without_selector(spec) {
        if families.len() < 2 && !is_single {
            let is_first = families[0] == "IPv4";
            families.push(if is_first { "IPv6" } else { "IPv4" }.to_owned());
        }
    } else if errors.is_empty() {
        errors = unavailable(spec, &families);
    }
    set_texts(spec, "ipFamilies", &families);
    errors
}

/// Appends the families of the addresses that have none, and returns what is wrong with the addresses and families.
fn infer_families(spec: &Members, families: &mut Vec<String>) -> Vec<FieldError> {
    let (policy, addresses) = (text(spec, "ipFamilyPolicy"), texts(spec, "clusterIPs"));
    let mut errors = Vec::new();
    for (count, what) in [
        (addresses.len(), "cluster IPs"),
        (families.len(), "IP families"),
    ] {
        if policy == "SingleStack" && count == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            errors.push(FieldError::invalid(
                "spec.ipFamilyPolicy",
                to_text(&policy),
                &why,
            ));
        }
    }
    let headed = addresses.iter().take_while(|address| *address != "None");
    for (at, address) in headed.enumerate().skip(families.len()) {
        let is_available = !address.contains(':');
        families.push(if is_available { "IPv4" } else { "IPv6" }.to_owned());
        if !is_available {
            let (field, why) = (
                format!("spec.clusterIPs[{at}]"),
                "IPv6 is not configured on this cluster",
            );
            errors.push(FieldError::invalid(field, to_text(&addresses), why));
        }
    }
    errors
}

/// Returns an error for each family that the cluster does not have.
fn unavailable(spec: &Members, families: &[String]) -> Vec<FieldError> {
    let policy = text(spec, "ipFamilyPolicy");
    let mut errors = Vec::new();
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(
            "spec.ipFamilyPolicy",
            to_text(&policy),
            why,
        ));
    }
    let others = families
        .iter()
        .enumerate()
        .filter(|(_, family)| *family != "IPv4");
    errors.extend(others.map(|(at, family)| {
        let (field, why) = (
            format!("spec.ipFamilies[{at}]"),
            "not configured on this cluster",
        );
        FieldError::invalid(field, to_text(family), why)
    }));
    errors
}

/// Allocates the cluster IP. If `checks` is set, also checks the requested one.
fn set_address(
    spec: &mut Members,
    (used, uid): (&Used<'_>, &str),
    checks: bool,
) -> Result<(), Rejected> {
    let mut addresses = texts(spec, "clusterIPs");
    let sent = addresses.first().cloned().unwrap_or_default();
    if sent == "None" {
        return Ok(());
    }
    if sent.is_empty() {
        let free = used.free_address(uid).ok_or(Rejected::NoAddress)?;
        addresses.splice(..addresses.len().min(1), [free]);
        set_texts(spec, "clusterIPs", &addresses);
    } else if checks && used.has_address(&sent) {
        let why = format!("failed to allocate IP {sent}: provided IP is already allocated");
        let error = FieldError::invalid("spec.clusterIPs", to_text(&addresses), &why);
        return Err(Rejected::Fields(vec![error]));
    }
    if checks || text(spec, "clusterIP").is_empty() {
        spec.insert("clusterIP".to_owned(), json!(addresses[0]));
    }
    Ok(())
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
    let drops_ports = has_node_ports(old) && !has_node_ports(new);
    if drops_ports && node_ports(old).is_superset(&node_ports(new)) {
        for port in ports_mut(new) {
            port.remove("nodePort");
        }
    }
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
            typed::is_external(old) && !typed::is_external(new),
        ),
    ] {
        if is_dropped && is_same(new, name) {
            new.remove(name);
        }
    }
}

// === impl Rejected ===

impl Rejected {
    fn into_error(self, services: &Resource, service: &Object) -> ApiError {
        let name = service.text("name");
        match self {
            Rejected::Fields(errors) => ApiError::invalid(&services.kind, name, &errors),
            Rejected::Internal(why) => ApiError::internal(&why),
            Rejected::NoAddress => ApiError::internal(&format!(
                "failed to allocate a serviceIP for Service {name:?}: range is full"
            )),
        }
    }
}
