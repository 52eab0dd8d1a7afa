//! Generates templates of Secrets that contain a key, a certificate and a token.
//!
//! Guarantees: the data of each Secret consists of random bytes, which compression can't make smaller.

use fastrand::Rng;
use serde_json::{Value, json};

use super::workload::{Workload, one_of};
use crate::slot::{Slot, Slots};

/// Returns a Secret of `workload`, with a placeholder for each value that differs between the workload's
/// Secrets.
///
/// Adds a [`Slot`] for each of these values to `slots`.
pub(super) fn secret(workload: &Workload, rng: &mut Rng, slots: &mut Slots) -> Value {
    let Workload {
        name, namespace, ..
    } = workload;
    let (key, certificate) = one_of(rng, &[(120, 480), (1_191, 1_110), (2_349, 1_620)]);
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("{name}-credentials-{}", slots.mark(Slot::Suffix)),
            "namespace": namespace,
            "uid": slots.mark(Slot::Uid),
            "resourceVersion": slots.mark(Slot::Revision),
            "creationTimestamp": slots.mark(Slot::Time(0)),
            "labels": {"app.kubernetes.io/name": name, "environment": workload.stage, "team": workload.team},
            "annotations": {"bench/ts": slots.mark(Slot::Stamp), "cert-manager.io/certificate-name": name},
            "managedFields": [{
                "manager": "cert-manager-certificates-issuing",
                "operation": "Apply",
                "apiVersion": "v1",
                "time": slots.mark(Slot::Time(0)),
                "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {"f:tls.crt": {}, "f:tls.key": {}, "f:token": {}}, "f:metadata": {"f:annotations": {}, "f:labels": {}}, "f:type": {}},
            }],
        },
        "data": {
            "tls.crt": slots.mark(Slot::Data(0, certificate)),
            "tls.key": slots.mark(Slot::Data(1, key)),
            "token": slots.mark(Slot::Data(2, 48)),
        },
        "type": "kubernetes.io/tls",
    })
}
