//! Creates the objects with which a server starts: the system objects of Kubernetes, and the seeds.
//!
//! Seeds are the initial objects that are passed to the builder.
//!
//! Guarantees:
//! - The seeds have the revisions 1, 2, … in the order in which they were passed.
//! - The definitions and the system objects have revision 1. The first seed has revision 1 too. A server without
//!   seeds starts at revision 1.
//! - A seed replaces the system object of the same kind, namespace and name.
//! - If the server rejects objects in namespaces that do not exist, the namespace of each seed exists. The
//!   module creates the namespaces that are not seeds themselves, as system objects.
//!
//! The module does not recreate a system object that a client deletes. It creates the content of the first namespaces, and
//! `verb::namespace_content` that of later ones.

mod roles;

use std::collections::BTreeSet;
use std::mem;

use serde_json::{Value, json};

use crate::access::Authorization;
use crate::server::Server;
use crate::strategy::{MANDATORY_LEVELS, MANDATORY_SCHEMAS, SYSTEM_CLASSES};
use crate::verb::namespace_content::content;

/// Namespaces that exist in every cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Name of the Service and its endpoints through which pods reach the API server.
const SERVICE: &str = "kubernetes";

/// Cluster IP of the Service `kubernetes`: the first address of kubeadm's Service range 10.96.0.0/12.
const CLUSTER_IP: &str = "10.96.0.1";

/// IP address of the API server in the endpoints of the Service `kubernetes`.
///
/// It is a documentation address (RFC 5737), because Kubernetes rejects loopback addresses in endpoints.
const ENDPOINT_IP: &str = "192.0.2.1";

const SERVICE_PORT: u16 = 443;
const SECURE_PORT: u16 = 6443;

/// Describes the objects with which a new server starts.
pub(crate) struct Bootstrap {
    /// The `CustomResourceDefinition`s, which are stored before the seeds.
    pub(crate) definitions: Vec<Value>,
    pub(crate) seeds: Vec<Value>,
    /// Whether the system objects include the Service `kubernetes` and its endpoints.
    pub(crate) kubernetes_service: bool,
}

impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap {
            definitions: Vec::new(),
            seeds: Vec::new(),
            kubernetes_service: true,
        }
    }
}

impl Bootstrap {
    /// Stores the definitions, the system objects and then the seeds in the new `server`.
    ///
    /// # Panics
    ///
    /// Panics if the server rejects one of them.
    pub(crate) fn fill(mut self, server: &Server) {
        for (nth, definition) in mem::take(&mut self.definitions).into_iter().enumerate() {
            server.restart_counting(0);
            if let Err(error) = server.seed(definition) {
                panic!("definition {nth} can't be stored: {error}");
            }
        }
        for object in self.system_objects(server) {
            server.restart_counting(0);
            if let Err(error) = server.seed(object) {
                panic!("an object that the seeds need can't be stored: {error}");
            }
        }
        server.restart_counting(u64::from(self.seeds.is_empty()));
        for (nth, seed) in self.seeds.into_iter().enumerate() {
            if let Err(error) = server.seed(seed) {
                panic!("seed {nth} can't be stored: {error}");
            }
        }
    }

    /// Returns the system objects and the namespaces of the seeds, without the objects that a seed replaces.
    ///
    /// Includes the namespaces of the seeds only if the server rejects objects in namespaces that do not
    /// exist.
    fn system_objects(&self, server: &Server) -> Vec<Value> {
        let mut objects: Vec<Value> = NAMESPACES.into_iter().map(namespace).collect();
        if server.shared().settings.enforce_namespaces {
            let names = named_by(server, &self.seeds).into_iter();
            objects.extend(
                names
                    .filter(|name| !NAMESPACES.contains(name))
                    .map(namespace),
            );
        }
        if let Some(root_ca) = server.shared().settings.root_ca {
            let seeds = self.seeds.iter().filter(|seed| seed["kind"] == "Namespace");
            let namespaces: BTreeSet<String> =
                objects.iter().chain(seeds).filter_map(name).collect();
            objects.extend(namespaces.iter().flat_map(|name| content(name, root_ca)));
        }
        if self.kubernetes_service {
            objects.extend(kubernetes_service());
        }
        objects.extend(priority_classes());
        objects.extend(flow_control());
        if server.shared().settings.authorization == Authorization::Rbac {
            objects.extend(roles::all());
        }
        let places: BTreeSet<_> = self.seeds.iter().filter_map(place).collect();
        objects.retain(|object| place(object).is_none_or(|place| !places.contains(&place)));
        objects
    }
}

/// Returns the names of the namespaces of `seeds`.
///
/// Ignores seeds of cluster-scoped kinds. Includes seeds of kinds that the server does not serve yet, because a
/// definition among the seeds may add the kind.
fn named_by<'a>(server: &Server, seeds: &'a [Value]) -> BTreeSet<&'a str> {
    let registry = server.shared().registry();
    let is_namespaced = |seed: &&Value| {
        let text = |member: &str| seed[member].as_str().unwrap_or_default();
        let resource = registry.by_kind(text("apiVersion"), text("kind"));
        resource.is_none_or(|resource| resource.is_namespaced())
    };
    let namespaced = seeds.iter().filter(is_namespaced);
    let names = namespaced.filter_map(|seed| seed["metadata"]["namespace"].as_str());
    names.filter(|name| !name.is_empty()).collect()
}

/// Returns the kind, namespace and name of `object`, or `None` if its kind has no system objects.
fn place(object: &Value) -> Option<(&str, &str, &str)> {
    let (metadata, kind) = (&object["metadata"], object["kind"].as_str()?);
    let version = object["apiVersion"].as_str()?;
    let is_system = match kind {
        "Namespace" | "Service" | "Endpoints" | "ServiceAccount" | "ConfigMap" => version == "v1",
        "PriorityClass" => version.starts_with("scheduling.k8s.io/"),
        "FlowSchema" | "PriorityLevelConfiguration" => {
            version.starts_with("flowcontrol.apiserver.k8s.io/")
        }
        "EndpointSlice" => version.starts_with("discovery.k8s.io/"),
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => {
            version.starts_with("rbac.authorization.k8s.io/")
        }
        _ => false,
    };
    let is_cluster_wide = matches!(
        kind,
        "Namespace"
            | "PriorityClass"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ClusterRole"
            | "ClusterRoleBinding"
    );
    let namespace = if is_cluster_wide {
        ""
    } else {
        match metadata["namespace"].as_str() {
            None | Some("") => "default",
            Some(namespace) => namespace,
        }
    };
    is_system.then(|| {
        (
            kind,
            namespace,
            metadata["name"].as_str().unwrap_or_default(),
        )
    })
}

/// Creates the default roles and bindings of RBAC that a server with stored objects lacks, as kube-apiserver does.
#[cfg(feature = "persistence")]
pub(crate) fn add_missing_roles(server: &Server) {
    if server.shared().settings.authorization != Authorization::Rbac {
        return;
    }
    for role in roles::all() {
        match server.seed(role) {
            Err(error) if error.reason() != "AlreadyExists" => {
                tracing::warn!(%error, "failed to create a default role or binding of RBAC");
            }
            _ => {}
        }
    }
}

fn name(object: &Value) -> Option<String> {
    object["metadata"]["name"].as_str().map(str::to_owned)
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
    })
}

/// Returns the priority classes of system pods.
fn priority_classes() -> impl Iterator<Item = Value> {
    SYSTEM_CLASSES.into_iter().map(|(name, value)| {
        let rest = if name == "system-cluster-critical" {
            "run in the cluster, but can be moved to another node if necessary."
        } else {
            "not be moved from their current node."
        };
        json!({
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "description": format!("Used for system critical pods that must {rest}"),
            "value": value,
        })
    })
}

/// Returns the priority levels and the flow schemas that no cluster can lack. The server limits no requests by them.
fn flow_control() -> impl Iterator<Item = Value> {
    let levels = MANDATORY_LEVELS.map(|object| ("PriorityLevelConfiguration", object));
    let schemas = MANDATORY_SCHEMAS.map(|object| ("FlowSchema", object));
    levels
        .into_iter()
        .chain(schemas)
        .map(|(kind, (name, spec))| {
            let spec: Value = serde_json::from_str(spec).expect("the fixed specs are JSON");
            json!({
                "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
                "kind": kind,
                "metadata": {
                    "name": name,
                    "annotations": {"apf.kubernetes.io/autoupdate-spec": "true"},
                },
                "spec": spec,
            })
        })
}

/// Returns the Service `kubernetes`, its `Endpoints` and its `EndpointSlice`, as in Kubernetes 1.36.
fn kubernetes_service() -> [Value; 3] {
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": SERVICE,
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": CLUSTER_IP,
            "clusterIPs": [CLUSTER_IP],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{
                "name": "https",
                "port": SERVICE_PORT,
                "protocol": "TCP",
                "targetPort": SECURE_PORT,
            }],
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
    });
    let port = json!({"name": "https", "port": SECURE_PORT, "protocol": "TCP"});
    let endpoints = json!({
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": SERVICE,
            "namespace": "default",
            "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": ENDPOINT_IP}], "ports": [port]}],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": SERVICE,
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": SERVICE},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [ENDPOINT_IP], "conditions": {"ready": true}}],
        "ports": [port],
    });
    [service, endpoints, slice]
}
