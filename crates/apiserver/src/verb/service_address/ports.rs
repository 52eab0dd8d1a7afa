//! Allocates the node ports of a service.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::Rejected;
use super::used::Used;
use crate::services::spec::{
    Members, allocates_node_ports, has_node_ports, needs_health_port, node_ports, number, ports,
    ports_mut,
};
use crate::status::FieldError;

/// First node port, as in Kubernetes.
const FIRST_PORT: i64 = 30_000;

/// Last node port, as in Kubernetes.
const LAST_PORT: i64 = 32_767;

/// Member with the port of health checks.
const HEALTH_PORT: &str = "healthCheckNodePort";

/// The node ports of one service.
struct Ports<'a> {
    used: &'a Used<'a>,
    checks: bool,
    /// What the service has had.
    known: BTreeSet<i64>,
    /// What the service has had or asks for, which is not chosen for another of its ports.
    reserved: BTreeSet<i64>,
    /// What the service has now.
    own: BTreeSet<i64>,
}

/// Allocates the node ports that a service lacks. If `checks` is set, also checks those that it asks for.
///
/// # Errors
///
/// Returns an error if there is no free port, or if a port is in use.
pub(super) fn set_ports(
    spec: &mut Members,
    old: Option<&Members>,
    used: &Used<'_>,
    checks: bool,
) -> Result<(), Rejected> {
    let known = old.map(node_ports).unwrap_or_default();
    let health = [Some(&*spec), old].map(|spec| spec.map_or(0, |spec| number(spec, HEALTH_PORT)));
    let reserved = known
        .iter()
        .copied()
        .chain(node_ports(spec))
        .chain(health)
        .collect();
    let mut allocator = Ports {
        used,
        checks,
        known,
        reserved,
        own: BTreeSet::new(),
    };
    if has_node_ports(spec) {
        allocator.set(spec, old.is_none())?;
    }
    if needs_health_port(spec) {
        allocator.set_health_port(spec, old.is_some_and(needs_health_port))?;
    }
    Ok(())
}

impl Ports<'_> {
    /// Sets the node ports of the ports (`initNodePorts`, `updateNodePorts`).
    ///
    /// Ports of a new service with the same number, such as one of TCP and one of UDP, have the same node port.
    fn set(&mut self, spec: &mut Members, is_new: bool) -> Result<(), Rejected> {
        let allocates = allocates_node_ports(spec);
        let mut requested = BTreeMap::new();
        for port in ports(spec) {
            let sent = number(port, "nodePort");
            if is_new && sent != 0 {
                requested.entry(number(port, "port")).or_insert(sent);
            }
        }
        let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
        for (at, port) in ports_mut(spec).enumerate() {
            let (number, sent) = (number(port, "port"), number(port, "nodePort"));
            if sent == 0 && !allocates {
                continue;
            }
            let field = || format!("spec.ports[{at}].nodePort");
            let wanted = match shared.get(&number).or_else(|| requested.get(&number)) {
                Some(shared) if sent == 0 => *shared,
                _ => sent,
            };
            let node_port = match wanted {
                0 => self.next("a nodePort")?,
                // A new service can have one node port for two ports only if they have the same number.
                wanted if is_new && shared.get(&number) == Some(&wanted) => wanted,
                wanted
                    if !is_new && (self.known.contains(&wanted) || self.own.contains(&wanted)) =>
                {
                    wanted
                }
                wanted => self.claim(wanted).map_err(|why| {
                    let error = FieldError::invalid(field(), wanted, &why);
                    Rejected::Fields(vec![error])
                })?,
            };
            self.own.insert(node_port);
            if is_new {
                shared.entry(number).or_insert(node_port);
            }
            port.insert("nodePort".to_owned(), json!(node_port));
        }
        Ok(())
    }

    /// Sets the port of health checks (`allocHealthCheckNodePort`). `is_known` is whether the service had one before.
    fn set_health_port(&mut self, spec: &mut Members, is_known: bool) -> Result<(), Rejected> {
        let port = match number(spec, HEALTH_PORT) {
            0 => self.next("a HealthCheck NodePort 0")?,
            sent if is_known => sent,
            sent => self.claim(sent).map_err(|why| {
                let port =
                    format!("failed to allocate requested HealthCheck NodePort {sent}: {why}");
                Rejected::Internal(port)
            })?,
        };
        spec.insert(HEALTH_PORT.to_owned(), json!(port));
        Ok(())
    }

    /// Returns the first free port.
    fn next(&self, what: &str) -> Result<i64, Rejected> {
        let mut ports = FIRST_PORT..=LAST_PORT;
        let is_free = |port: &i64| {
            !self.used.has_port(*port) && !self.reserved.contains(port) && !self.own.contains(port)
        };
        let free = ports.find(is_free);
        free.ok_or_else(|| Rejected::Internal(format!("failed to allocate {what}: range is full")))
    }

    /// Checks a port that the service asks for.
    fn claim(&self, port: i64) -> Result<i64, String> {
        if !self.checks {
            return Ok(port);
        }
        if !(FIRST_PORT..=LAST_PORT).contains(&port) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
            ));
        }
        if self.used.has_port(port) || self.own.contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        Ok(port)
    }
}
