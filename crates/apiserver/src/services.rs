//! Knows which cluster IPs and node ports the services have.
//!
//! Guarantees: [`Allocated`] counts what the newest services have, durable or not. It is read from the services when it
//! is first needed, and follows each write afterwards, so choosing an address does not read all services.
//!
//! The `verb` module decides what a service gets. This module does not.

pub(crate) mod spec;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::object::Object;
use crate::resource::Resource;
use crate::storage::Entry;

use spec::{members, node_ports, number};

/// What one service has.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) address: String,
    /// The node ports of the ports, and that of health checks.
    pub(crate) ports: Vec<i64>,
}

/// What all services have, with the number of services that have it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Allocated {
    addresses: BTreeMap<String, usize>,
    ports: BTreeMap<i64, usize>,
}

// === impl Held ===

impl Held {
    pub(crate) fn of(services: &Resource, entry: &Entry) -> Held {
        let value_of = |field| {
            let fields = services.strategy.fields;
            fields.value_of(&entry.fields, field).unwrap_or_default()
        };
        let mut ports = Vec::new();
        if matches!(value_of("spec.type"), "NodePort" | "LoadBalancer") {
            let spec = members(&Object::stored(entry.object(services)));
            ports.extend(node_ports(&spec));
            ports.push(number(&spec, "healthCheckNodePort"));
        }
        let address = value_of("spec.clusterIP").to_owned();
        Held { address, ports }
    }
}

// === impl Allocated ===

impl Allocated {
    pub(crate) fn of<'a>(
        services: &Resource,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Allocated {
        let mut allocated = Allocated::default();
        for entry in entries {
            allocated.follow(services, None, Some(entry));
        }
        allocated
    }

    /// Follows the change of a service from `old` to `new`, or its creation or removal.
    pub(crate) fn follow(&mut self, services: &Resource, old: Option<&Entry>, new: Option<&Entry>) {
        if let Some(old) = old.map(|entry| Held::of(services, entry)) {
            release(&mut self.addresses, &old.address);
            for port in old.ports {
                release(&mut self.ports, &port);
            }
        }
        if let Some(new) = new.map(|entry| Held::of(services, entry)) {
            *self.addresses.entry(new.address).or_default() += 1;
            for port in new.ports {
                *self.ports.entry(port).or_default() += 1;
            }
        }
    }

    /// Returns whether a service other than one that has `own` has the address.
    pub(crate) fn has_address(&self, address: &str, own: &Held) -> bool {
        let count = self.addresses.get(address).copied().unwrap_or(0);
        count > usize::from(own.address == address)
    }

    /// Returns whether a service other than one that has `own` has the node port.
    pub(crate) fn has_port(&self, port: i64, own: &Held) -> bool {
        let of_own = own.ports.iter().filter(|held| **held == port).count();
        self.ports.get(&port).copied().unwrap_or(0) > of_own
    }
}

fn release<Q: Ord + ?Sized, K: Ord + Borrow<Q>>(counts: &mut BTreeMap<K, usize>, held: &Q) {
    if let Some(count) = counts.get_mut(held) {
        *count -= 1;
        if *count == 0 {
            counts.remove(held);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::Server;

    /// Checks that what was followed is what the services have.
    fn check(server: &Server) {
        let registry = server.shared().registry();
        let services = registry.by_path("", "v1", "services").unwrap();
        let mut state = server.shared().lock();
        let read = Allocated::of(services, state.newest_below(services.collection, ""));
        assert_eq!(*state.allocated(services), read);
    }

    #[test]
    fn what_services_have_follows_each_write_and_a_restart_at_an_older_revision() {
        let server = Server::builder().build();
        let first = server.revision();
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut removed, mut restarts) = (0, 0);
        for _ in 0..300 {
            let name = format!("s{}", rng.u32(..8));
            let kind = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];
            let service = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "type": kind[rng.usize(..4)], "externalTrafficPolicy": "Local",
                    "ports": [{"port": 80}, {"port": 81, "nodePort": 31000 + rng.u32(..3)}]}
            });
            // A write of a service that exists, or does not exist, changes nothing.
            match rng.u32(..8) {
                0..4 => drop(server.create(service)),
                4..6 => drop(server.update(service)),
                6 => {
                    let deleted = server.delete("v1", "services", &format!("default/{name}"));
                    removed += u32::from(deleted.is_ok());
                }
                _ => {
                    let back = server.revision().saturating_sub(rng.u64(..4));
                    // The store forgets the revisions before a restart.
                    let restarted = server.faults().restart_at(back.max(first));
                    restarts += u32::from(restarted.is_ok());
                }
            }
            check(&server);
        }
        assert!(removed > 0 && restarts > 0);
    }
}
