//! Draws the objects that random requests create and write.
//!
//! Guarantees: an object contains each field for which kube-apiserver sets a default. Therefore,
//! kube-apiserver and the embedded server both store a valid object as it is sent. Some objects are
//! deliberately invalid.

use fastrand::Rng;
use harness::draw::Choose as _;
use serde_json::{Map, Value, json};

/// A namespaced kind whose objects the programs write.
#[derive(Debug)]
pub(super) struct Kind {
    /// Path of the collection, in the namespace of the program.
    pub(super) path: &'static str,
    pub(super) api_version: &'static str,
    /// The kind, such as `Pod`.
    pub(super) name: &'static str,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    /// Draws the members of an object, except `apiVersion`, `kind` and `metadata`.
    pub(super) members: fn(&mut Rng) -> Value,
    /// JSON pointers for the JSON patches of an object.
    pub(super) pointers: &'static [&'static str],
}

/// All kinds, with the weight of each.
pub(super) const KINDS: [(u32, &Kind); 9] = [
    (25, &CONFIG_MAP),
    (10, &SECRET),
    (10, &LEASE),
    (10, &SERVICE_ACCOUNT),
    (20, &POD),
    (10, &REPLICA_SET),
    (15, &DEPLOYMENT),
    (10, &SERVICE),
    (15, &THING),
];

const CONFIG_MAP: Kind = Kind {
    path: "/api/v1/namespaces/$ns/configmaps",
    api_version: "v1",
    name: "ConfigMap",
    has_status: false,
    has_scale: false,
    members: config_map,
    pointers: &["/data", "/data/k", "/data/l", "/immutable", "/binaryData"],
};

const SECRET: Kind = Kind {
    path: "/api/v1/namespaces/$ns/secrets",
    api_version: "v1",
    name: "Secret",
    has_status: false,
    has_scale: false,
    members: secret,
    pointers: &["/data", "/data/k", "/type", "/stringData"],
};

const LEASE: Kind = Kind {
    path: "/apis/coordination.k8s.io/v1/namespaces/$ns/leases",
    api_version: "coordination.k8s.io/v1",
    name: "Lease",
    has_status: false,
    has_scale: false,
    members: lease,
    pointers: &["/spec", "/spec/holderIdentity", "/spec/leaseTransitions"],
};

const SERVICE_ACCOUNT: Kind = Kind {
    path: "/api/v1/namespaces/$ns/serviceaccounts",
    api_version: "v1",
    name: "ServiceAccount",
    has_status: false,
    has_scale: false,
    members: service_account,
    pointers: &[
        "/imagePullSecrets",
        "/imagePullSecrets/0",
        "/automountServiceAccountToken",
    ],
};

const POD: Kind = Kind {
    path: "/api/v1/namespaces/$ns/pods",
    api_version: "v1",
    name: "Pod",
    has_status: true,
    has_scale: false,
    members: pod,
    pointers: &[
        "/spec/nodeName",
        "/spec/containers/0/image",
        "/status/phase",
    ],
};

const REPLICA_SET: Kind = Kind {
    path: "/apis/apps/v1/namespaces/$ns/replicasets",
    api_version: "apps/v1",
    name: "ReplicaSet",
    has_status: true,
    has_scale: true,
    members: replica_set,
    pointers: &["/spec/replicas", "/status/replicas"],
};

const DEPLOYMENT: Kind = Kind {
    path: "/apis/apps/v1/namespaces/$ns/deployments",
    api_version: "apps/v1",
    name: "Deployment",
    has_status: true,
    has_scale: true,
    members: replica_set,
    pointers: &["/spec/replicas", "/status/replicas", "/spec/paused"],
};

/// Its status is not written: a PUT of the status of a missing service creates the service in Kubernetes.
const SERVICE: Kind = Kind {
    path: "/api/v1/namespaces/$ns/services",
    api_version: "v1",
    name: "Service",
    has_status: false,
    has_scale: false,
    members: service,
    pointers: &[
        "/spec/ports/0/port",
        "/spec/selector",
        "/spec/sessionAffinity",
    ],
};

const THING: Kind = Kind {
    path: "/apis/cases.example.com/v1/namespaces/$ns/things",
    api_version: "cases.example.com/v1",
    name: "Thing",
    has_status: true,
    has_scale: false,
    members: thing,
    pointers: &["/spec", "/spec/size", "/spec/parts/0"],
};

/// Names of objects. The names are few, so that a request often concerns the object of an earlier request.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// Texts in `data`, labels and annotations.
const TEXTS: [&str; 4] = ["a", "b", "", "Ünïcode"];

const FINALIZERS: [&str; 2] = ["example.com/f", "example.com/g"];

pub(super) fn name(random: &mut Rng) -> &'static str {
    random.one::<&str>(&NAMES)
}

/// Draws the name of a variable in which an earlier request may have stored a revision.
pub(super) fn revision(random: &mut Rng) -> &'static str {
    random.one::<&str>(&["rv1", "rv2", "rv3"])
}

impl Kind {
    pub(super) fn object(&self, random: &mut Rng, name: &str) -> Value {
        let mut object = (self.members)(random);
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.name.into();
        object["metadata"] = metadata(random, name);
        spoil(random, &mut object);
        object
    }
}

impl Kind {
    /// Returns a valid object with this name, always the same.
    pub(super) fn minimal(&self, name: &str) -> Value {
        let mut object = (self.members)(&mut Rng::with_seed(0));
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.name.into();
        object["metadata"] = json!({"name": name});
        object
    }
}

fn metadata(random: &mut Rng, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    if random.chance(50) {
        metadata["labels"] = labels(random);
    }
    if random.chance(20) {
        metadata["annotations"] = json!({"note": *random.one(&TEXTS)});
    }
    if random.chance(15) {
        metadata["finalizers"] = finalizers(random);
    }
    if random.chance(8) {
        metadata["ownerReferences"] = owners(random);
    }
    metadata
}

pub(super) fn labels(random: &mut Rng) -> Value {
    let mut labels = Map::new();
    for key in random.subset(&[(60, "app"), (40, "tier"), (10, "example.com/x")]) {
        labels.insert(key.to_owned(), (*random.one(&["a", "b", ""])).into());
    }
    labels.into()
}

pub(super) fn finalizers(random: &mut Rng) -> Value {
    let number = random.usize(0..=FINALIZERS.len());
    json!(FINALIZERS[..number])
}

pub(super) fn owners(random: &mut Rng) -> Value {
    let owner = |random: &mut Rng, number: u32| {
        let mut owner = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{number}"),
            "uid": format!("00000000-0000-4000-8000-00000000000{number}"),
        });
        for flag in random.subset(&[(30, "controller"), (20, "blockOwnerDeletion")]) {
            owner[flag] = random.bool().into();
        }
        owner
    };
    let number = random.u32(1..3);
    (0..number).map(|number| owner(random, number)).collect()
}

/// With a probability of 8 %, changes one field of `object`.
///
/// The change makes the object invalid, contradicts the path of the request, or sets a field that the server
/// controls.
fn spoil(random: &mut Rng, object: &mut Value) {
    if !random.chance(8) {
        return;
    }
    let (pointer, value) = random
        .one(&[
            ("name", json!("A_")),
            ("name", json!("")),
            ("name", json!("other")),
            ("namespace", json!("other")),
            ("namespace", json!("$ns")),
            ("uid", json!("00000000-0000-4000-8000-00000000000f")),
            ("labels", json!({"app": "not a value"})),
            ("labels", json!({"-": "a"})),
            ("annotations", json!({"a b": "a"})),
            ("finalizers", json!(["f"])),
            ("finalizers", json!(["example.com/f", "example.com/f"])),
            ("generation", json!(7)),
            ("creationTimestamp", json!("2026-01-31T12:00:00Z")),
            ("deletionTimestamp", json!("2026-01-31T12:00:00Z")),
            ("selfLink", json!("/a")),
            ("kind", json!("Wrong")),
            ("apiVersion", json!("v9")),
        ])
        .clone();
    match pointer {
        "kind" | "apiVersion" => object[pointer] = value,
        _ => object["metadata"][pointer] = value,
    }
}

fn config_map(random: &mut Rng) -> Value {
    let mut members = json!({});
    let mut data = Map::new();
    for key in random.subset(&[(60, "k"), (40, "l"), (1, "not a key")]) {
        data.insert(key.to_owned(), (*random.one(&TEXTS)).into());
    }
    if !data.is_empty() {
        members["data"] = data.into();
    }
    if random.chance(10) {
        members["binaryData"] = json!({"b": "AAE="});
    }
    if random.chance(5) {
        members["immutable"] = random.bool().into();
    }
    members
}

fn secret(random: &mut Rng) -> Value {
    let mut members = json!({"type": *random.one(&["Opaque", "Opaque", "example.com/t"])});
    if random.chance(70) {
        members["data"] = json!({"k": *random.one(&["YQ==", "Yg=="])});
    }
    if random.chance(20) {
        members["stringData"] = json!({*random.one(&["k", "l"]): *random.one(&TEXTS)});
    }
    if random.chance(5) {
        members["immutable"] = random.bool().into();
    }
    members
}

fn lease(random: &mut Rng) -> Value {
    let mut spec = json!({"leaseDurationSeconds": *random.one(&[15, 30])});
    if random.chance(70) {
        spec["holderIdentity"] = (*random.one(&["a", "b"])).into();
    }
    if random.chance(40) {
        spec["leaseTransitions"] = (*random.one(&[1, 2])).into();
    }
    if random.chance(40) {
        spec["renewTime"] =
            (*random.one(&["2026-01-31T12:00:00.000000Z", "2026-01-31T12:00:01.500000Z"])).into();
    }
    json!({"spec": spec})
}

fn service_account(random: &mut Rng) -> Value {
    let mut members = json!({});
    if random.chance(40) {
        members["automountServiceAccountToken"] = random.bool().into();
    }
    if random.chance(40) {
        let names = random.subset(&[(60, "a"), (40, "b")]);
        let names = names.into_iter().map(|name| json!({"name": name}));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            members["imagePullSecrets"] = names.into();
        }
    }
    members
}

fn pod(random: &mut Rng) -> Value {
    let mut spec = pod_spec(random);
    spec["preemptionPolicy"] = "PreemptLowerPriority".into();
    spec["priority"] = 0.into();
    spec["enableServiceLinks"] = true.into();
    spec["tolerations"] = ["not-ready", "unreachable"]
        .map(|key| {
            json!({
                "effect": "NoExecute", "key": format!("node.kubernetes.io/{key}"),
                "operator": "Exists", "tolerationSeconds": 300,
            })
        })
        .to_vec()
        .into();
    if random.chance(40) {
        spec["nodeName"] = (*random.one(&["n1", "n2"])).into();
    }
    json!({"spec": spec})
}

fn pod_spec(random: &mut Rng) -> Value {
    let mut container = json!({
        "name": "c", "image": *random.one(&["x:1", "x:2"]), "imagePullPolicy": "IfNotPresent",
        "resources": {}, "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    });
    if random.chance(20) {
        let ports = random
            .subset(&[(50, 80), (50, 8080), (50, 8443)])
            .into_iter();
        let ports = ports.map(|port| json!({"containerPort": port}));
        let ports: Vec<Value> = ports.collect();
        if !ports.is_empty() {
            container["ports"] = ports.into();
        }
    }
    if random.chance(20) {
        let names = random.subset(&[(50, "A"), (50, "B")]).into_iter();
        let variables = names.map(|name| json!({"name": name, "value": *random.one(&TEXTS)}));
        let variables: Vec<Value> = variables.collect();
        if !variables.is_empty() {
            container["env"] = variables.into();
        }
    }
    if random.chance(10) {
        container["resources"] = json!({"requests": {"cpu": *random.one(&["1", "1000m", "0.5"])}});
    }
    json!({
        "containers": [container],
        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
        "securityContext": {}, "terminationGracePeriodSeconds": 30,
    })
}

fn replica_set(random: &mut Rng) -> Value {
    json!({"spec": {
        "replicas": random.u32(0..3),
        "selector": {"matchLabels": {"app": "a"}},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec(random)},
    }})
}

fn service(random: &mut Rng) -> Value {
    let numbers = random.subset(&[(60, 80), (50, 8443)]).into_iter();
    let ports = numbers.map(|number| {
        let target = (*random.one(&[json!(8080), json!("http"), json!(number)])).clone();
        json!({"name": format!("p{number}"), "port": number, "targetPort": target})
    });
    let ports: Value = ports.collect();
    json!({"spec": {"ports": ports, "selector": {"app": *random.one(&["a", "b"])}}})
}

fn thing(random: &mut Rng) -> Value {
    let mut spec = json!({"size": random.u32(0..3)});
    if random.chance(40) {
        spec["color"] = (*random.one(&["red", "blue"])).into();
    }
    if random.chance(30) {
        spec["parts"] = json!([{"name": *random.one(&["a", "b"]), "deep": {"a": [1], "b": null}}]);
    }
    json!({"spec": spec})
}

/// Removes some fields of an object, as in the configuration of a manager that owns only the others.
pub(super) fn thin(random: &mut Rng, object: &mut Value) {
    let members = object.as_object_mut().into_iter().flatten();
    let parts = members.filter(|(name, _)| *name != "metadata");
    for part in parts.filter_map(|(_, part)| part.as_object_mut()) {
        part.retain(|_, _| random.chance(50));
    }
}

pub(super) fn status(random: &mut Rng, kind: &Kind) -> Value {
    match kind.name {
        "Pod" => json!({"phase": *random.one(&["Pending", "Running", "Failed"])}),
        _ => json!({"replicas": random.u32(0..3), "readyReplicas": random.u32(1..3)}),
    }
}
