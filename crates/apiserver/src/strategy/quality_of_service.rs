//! Determines the QoS class of a pod.
//!
//! Guarantees: the class is that of `ComputePodQOS` in Kubernetes.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::object::Object;
use crate::quantity::Quantity;

/// Names of the compute resources that determine the class.
pub(super) const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Returns the class that the resources of a pod determine.
pub(super) fn of(pod: &Object) -> &'static str {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    let mut are_limited = true;
    for resources in resources(spec) {
        add(&resources["requests"], &mut requests);
        let count = add(&resources["limits"], &mut limits);
        are_limited &= count == COMPUTE.len();
    }
    if requests.is_empty() && limits.is_empty() {
        return "BestEffort";
    }
    let is_same = |(name, request): (&&str, &Quantity)| {
        let limit = limits.get(name);
        limit.is_some_and(|limit: &Quantity| limit.compare(*request).is_eq())
    };
    let are_same = requests.len() == limits.len() && requests.iter().all(is_same);
    if are_limited && are_same {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Returns the resources of the pod, or those of its containers.
fn resources(spec: &Value) -> Vec<&Value> {
    if spec["resources"].is_object() {
        return vec![&spec["resources"]];
    }
    let lists = ["containers", "initContainers"].map(|list| spec[list].as_array());
    let containers = lists.into_iter().flatten().flatten();
    containers
        .map(|container| &container["resources"])
        .collect()
}

/// Adds positive quantities to the sums. Returns how many there are.
fn add(quantities: &Value, sums: &mut BTreeMap<&'static str, Quantity>) -> usize {
    let mut count = 0;
    for name in COMPUTE {
        let quantity = quantities[name].as_str().map(Quantity::parse);
        let Some(Ok(quantity)) = quantity else {
            continue;
        };
        if quantity.sign() > 0 {
            count += 1;
            let sum = sums.get(name).map_or(quantity, |sum| sum.add(quantity));
            sums.insert(name, sum);
        }
    }
    count
}
