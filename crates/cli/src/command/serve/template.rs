//! Generates the JSON of seeded objects (`serve --seed-objects`).
//!
//! Each object of a kind has a number, which is part of the object's name.
//!
//! Guarantees:
//! - The name and the namespace of an object depend only on its kind and its number.
//! - An object has about 1 KB of JSON. The value of its label [`SEEDED`] is the plural of its kind.
//! - The same number and the same state of the random number generator result in the same object.
//!
//! The module does not send the objects to a server.

use fastrand::Rng;
use kube_informer_apiserver::{Kind, Scope};
use serde_json::{Value, json};

/// Label key of all seeded objects, with the kind's plural as value.
pub(super) const SEEDED: &str = "kubectl-informer-seeded";

/// Names of the namespaces that contain the seeded objects of namespaced kinds.
pub(super) const NAMESPACES: [&str; 10] = [
    "billing", "catalog", "checkout", "identity", "ledger", "media", "orders", "search",
    "shipping", "support",
];

/// Values of the label `app` of seeded objects.
const APPS: [&str; 7] = [
    "api", "cache", "frontend", "gateway", "indexer", "mailer", "worker",
];

/// Number of different values of the label `version` of seeded objects.
pub(super) const VERSIONS: u32 = 10;

/// Average number of seeded pods per node name, if no nodes are seeded.
const PODS_ON_NODE: u32 = 30;

/// Approximate minimum size of an object's JSON, in bytes.
const SIZE: usize = 940;

/// Bytes of random text in the `data` of a seeded ConfigMap or Secret.
const DATA: usize = 400;

/// Generator of the seeded objects of one kind.
#[derive(Clone, Debug)]
pub(super) struct Template {
    kind: Kind,
    /// Number of different node names in the `spec.nodeName` of generated pods.
    nodes: u32,
}

impl Template {
    /// Creates a generator for `count` objects of `kind` on a server with `nodes` seeded nodes.
    pub(super) fn new(kind: &Kind, count: u32, nodes: u32) -> Self {
        let nodes = if nodes > 0 {
            nodes
        } else {
            count.div_ceil(PODS_ON_NODE)
        };
        Self {
            kind: kind.clone(),
            nodes,
        }
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the key of an object: `namespace/name`, or `name` for a cluster-scoped kind.
    pub(super) fn key(&self, number: u32) -> String {
        let name = self.name(number);
        match self.namespace(number) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        }
    }

    /// Returns the number in the name of a seeded object, or `None` for any other object.
    pub(super) fn number(&self, namespace: Option<&str>, name: &str) -> Option<u32> {
        let (_, digits) = name.rsplit_once('-')?;
        let number = digits.parse().ok()?;
        let is_it = self.name(number) == name && self.namespace(number) == namespace;
        is_it.then_some(number)
    }

    fn name(&self, number: u32) -> String {
        match self.kind.scope {
            Scope::Namespaced => format!("{}-{number:06}", app(number)),
            Scope::Cluster => format!("seeded-{}-{number:06}", self.kind.singular),
        }
    }

    fn namespace(&self, number: u32) -> Option<&'static str> {
        let namespaced = self.kind.scope == Scope::Namespaced;
        namespaced.then(|| pick(&NAMESPACES, number))
    }

    /// Returns the JSON of an object, with typical content for common built-in kinds.
    pub(super) fn object(&self, number: u32, rng: &mut Rng) -> Value {
        let mut metadata = json!({
            "name": self.name(number),
            "uid": uid(rng),
            "labels": {
                "app": app(number),
                "version": version(rng),
                SEEDED: self.kind.plural,
            },
        });
        if let Some(namespace) = self.namespace(number) {
            metadata["namespace"] = json!(namespace);
        }
        let mut object = json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "metadata": metadata,
        });
        let body = match &*self.kind.group_resource() {
            "pods" => self.pod(number, rng),
            "nodes" => node(number),
            "configmaps" => json!({"data": {"log.level": "info", "settings": filler(rng, DATA)}}),
            // The filler is valid base64 of 300 bytes.
            "secrets" => json!({"type": "Opaque", "data": {"key": filler(rng, DATA)}}),
            "services" => service(number),
            "deployments.apps" | "replicasets.apps" => workload(number),
            _ => Value::Null,
        };
        for (member, value) in body.as_object().into_iter().flatten() {
            object[member] = value.clone();
        }
        let rest = SIZE.saturating_sub(object.to_string().len());
        object["metadata"]["annotations"] = json!({"filler": filler(rng, rest)});
        object
    }

    fn pod(&self, number: u32, rng: &mut Rng) -> Value {
        let node = rng.u32(..self.nodes.max(1));
        let [high, low] = [number >> 8 & 0xff, number & 0xff];
        let image = image(number);
        json!({
            "spec": {
                "nodeName": format!("seeded-node-{node:06}"),
                "restartPolicy": "Always",
                "containers": [{
                    "name": "main",
                    "image": image,
                    "ports": [{"containerPort": 8080}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }],
            },
            "status": {
                "phase": "Running",
                "podIP": format!("10.{}.{high}.{low}", number >> 16 & 0xff),
                "conditions": [
                    {"type": "Initialized", "status": "True"},
                    {"type": "Ready", "status": "True"},
                    {"type": "PodScheduled", "status": "True"},
                ],
                "containerStatuses": [{
                    "name": "main",
                    "image": image,
                    "imageID": "",
                    "ready": true,
                    "started": true,
                    "restartCount": rng.u32(..3),
                    "state": {"running": {}},
                }],
            },
        })
    }
}

/// Returns a merge patch that changes the label `version` and an annotation.
pub(super) fn update(change: u64, rng: &mut Rng) -> Value {
    json!({"metadata": {
        "labels": {"version": version(rng)},
        "annotations": {"kubectl-informer/change": change.to_string()},
    }})
}

pub(super) fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
    })
}

fn node(number: u32) -> Value {
    let room = json!({"cpu": "32", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi"});
    let [high, low] = [number >> 8 & 0xff, number & 0xff];
    json!({
        "spec": {"podCIDR": format!("10.{high}.{low}.0/24")},
        "status": {
            "capacity": room,
            "allocatable": room,
            "addresses": [{"type": "InternalIP", "address": format!("192.168.{high}.{low}")}],
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "reason": "KubeletHasSufficientMemory"},
                {"type": "DiskPressure", "status": "False", "reason": "KubeletHasNoDiskPressure"},
                {"type": "Ready", "status": "True", "reason": "KubeletReady"},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "v1.36.3",
                "containerRuntimeVersion": "containerd://2.1.0",
            },
        },
    })
}

fn service(number: u32) -> Value {
    let [high, low] = [number >> 8 & 0xff, number & 0xff];
    json!({"spec": {
        "type": "ClusterIP",
        "clusterIP": format!("10.96.{high}.{low}"),
        "selector": {"app": app(number)},
        "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}],
    }})
}

/// Returns a JSON object with the `spec` of a Deployment or ReplicaSet.
fn workload(number: u32) -> Value {
    let labels = json!({"app": app(number), "number": number.to_string()});
    json!({"spec": {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{
                "name": "main",
                "image": image(number),
                "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            }]},
        },
    }})
}

fn app(number: u32) -> &'static str {
    pick(&APPS, number)
}

fn image(number: u32) -> String {
    format!("registry.example/{}:1.4.2", app(number))
}

fn pick(names: &[&'static str], number: u32) -> &'static str {
    let at = usize::try_from(number).unwrap_or_default() % names.len();
    names[at]
}

fn version(rng: &mut Rng) -> String {
    format!("v{}", rng.u32(..VERSIONS))
}

fn filler(rng: &mut Rng, bytes: usize) -> String {
    (0..bytes).map(|_| rng.alphanumeric()).collect()
}

/// Returns a random version 4 UUID.
fn uid(rng: &mut Rng) -> String {
    let version = (rng.u128(..) & !(0xf << 76)) | (0x4 << 76);
    let digits = format!("{:032x}", (version & !(0b11 << 62)) | (0b10 << 62));
    [0..8, 8..12, 12..16, 16..20, 20..32]
        .map(|part| &digits[part])
        .join("-")
}

#[cfg(test)]
mod tests {
    use kube_informer_apiserver::{Kinds, Server};

    use super::*;

    #[test]
    fn the_server_accepts_objects_of_about_1_kb_of_every_stored_kind() {
        let server = Server::builder().enforce_namespaces(false).build();
        let kinds = Kinds::builtin();
        let mut seen = 0;
        for kind in kinds
            .iter()
            .filter(|kind| super::super::seeding::can_be_seeded(kind))
        {
            let template = Template::new(kind, 1, 0);
            // Two kinds may be two versions of the same objects.
            let stored = server.create(template.object(seen, &mut Rng::with_seed(1)));
            let stored = stored.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            let bytes = stored.to_string().len();
            // The server adds defaults and labels, 800 bytes of them to a job.
            assert!((950..1_900).contains(&bytes), "{}: {bytes}", kind.plural);
            let key = template.key(seen);
            assert!(
                server
                    .get(&kind.api_version(), &kind.plural, &key)
                    .is_some(),
                "{key}"
            );
            seen += 1;
        }
        assert!(seen > 50, "{seen}");
    }

    #[test]
    fn a_seed_reproduces_an_object_and_each_number_has_its_own_name() {
        let kinds = Kinds::builtin();
        let pods = kinds.by_resource("", "v1", "pods").unwrap();
        let template = Template::new(pods, 100, 0);
        let object = |number, seed| template.object(number, &mut Rng::with_seed(seed));
        assert_eq!(object(3, 1), object(3, 1));
        assert_ne!(object(3, 1), object(3, 2));
        assert_ne!(
            template.key(3),
            template.key(73),
            "the same app and namespace"
        );
        assert_eq!(template.key(3), "identity/gateway-000003");
        let number = |namespace, name| template.number(Some(namespace), name);
        assert_eq!(number("identity", "gateway-000003"), Some(3));
        assert_eq!(number("billing", "gateway-000003"), None);
        assert_eq!(number("identity", "gateway-3"), None);
    }
}
