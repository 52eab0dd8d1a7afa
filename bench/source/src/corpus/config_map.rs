//! Generates templates of `ConfigMap` objects that contain the configuration of a service.
//!
//! Guarantees: each object contains a YAML file, a properties file and a host name.

use std::fmt::Write as _;

use fastrand::Rng;
use serde_json::{Value, json};

use super::workload::{Workload, one_of};
use crate::slot::{Slot, Slots};

const SECTIONS: [&str; 10] = [
    "cache", "client", "database", "events", "http", "jobs", "limits", "metrics", "retry",
    "tracing",
];

const SETTINGS: [(&str, &[&str]); 8] = [
    ("enabled", &["true", "false"]),
    ("timeout", &["500ms", "2s", "5s", "30s"]),
    ("maxConnections", &["10", "50", "200"]),
    ("bufferBytes", &["65536", "1048576"]),
    (
        "endpoint",
        &[
            "http://collector.platform-prod.svc:4318",
            "postgres://db.data-prod.svc:5432/main",
            "redis://cache.core-prod.svc:6379",
        ],
    ),
    ("sampleRatio", &["0.01", "0.1", "1.0"]),
    ("mode", &["strict", "lenient", "shadow"]),
    ("attempts", &["1", "3", "5"]),
];

/// Returns a `ConfigMap` template for `workload`, and adds its placeholders to `slots`.
pub(super) fn config_map(workload: &Workload, rng: &mut Rng, slots: &mut Slots) -> Value {
    let Workload {
        name, namespace, ..
    } = workload;
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("{name}-config-{}", slots.mark(Slot::Suffix)),
            "namespace": namespace,
            "uid": slots.mark(Slot::Uid),
            "resourceVersion": slots.mark(Slot::Revision),
            "creationTimestamp": slots.mark(Slot::Time(0)),
            "labels": {"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm", "environment": workload.stage, "team": workload.team},
            "annotations": {"bench/ts": slots.mark(Slot::Stamp), "meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace},
            "managedFields": [{
                "manager": "helm",
                "operation": "Update",
                "apiVersion": "v1",
                "time": slots.mark(Slot::Time(0)),
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {".": {}, "f:application.yaml": {}, "f:db.host": {}, "f:logging.properties": {}}, "f:metadata": {"f:annotations": {}, "f:labels": {}}},
            }],
        },
        "data": {
            "application.yaml": application_yaml(name, rng, slots),
            "db.host": "db.data-prod.svc.cluster.local",
            "logging.properties": format!("root.level={}\nappender=console\nformat=json\n", one_of(rng, &["INFO", "WARN", "DEBUG"])),
        },
    })
}

fn application_yaml(name: &str, rng: &mut Rng, slots: &mut Slots) -> String {
    let mut sections = SECTIONS;
    rng.shuffle(&mut sections);
    let mut text = format!(
        "service: {name}\nrevision: {}\n",
        slots.mark(Slot::Hex(0, 40))
    );
    for section in &sections[..rng.usize(4..=SECTIONS.len())] {
        text.push_str(section);
        text.push_str(":\n");
        for (key, values) in SETTINGS {
            writeln!(text, "  {key}: {}", one_of(rng, values))
                .expect("writing to a String does not fail");
        }
    }
    text
}
