//! Defines the strategy of services: one that is no load balancer has no status of one.
//!
//! The module `verb::service_address` allocates addresses and ports. This module does not.

use serde_json::{Value, json};

use super::{Hooks, Part};
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
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
