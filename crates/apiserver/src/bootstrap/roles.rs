//! The default roles and bindings of RBAC.

use serde_json::{Value, json};

/// The objects, one a line, without what all of them have.
///
/// They are those of Kubernetes 1.36.3, in `cluster-roles.yaml`, `cluster-role-bindings.yaml`, `namespace-roles.yaml` and
/// `namespace-role-bindings.yaml` of `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata`. The roles of controllers
/// are left out, because no controllers run.
const ROLES: &str = include_str!("rbac_v1_36.jsonl");

/// Returns the default roles and bindings of RBAC in Kubernetes.
pub(super) fn all() -> impl Iterator<Item = Value> {
    ROLES.lines().map(|line| {
        let mut object: Value = serde_json::from_str(line).expect("each line is JSON");
        let mut labels = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
        let members = object.as_object_mut().expect("each line is an object");
        if let Some(own) = members.remove("labels") {
            for (key, value) in own.as_object().into_iter().flatten() {
                labels[key] = value.clone();
            }
        }
        let mut metadata = json!({
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
            "labels": labels,
        });
        for member in ["name", "namespace"] {
            if let Some(value) = members.remove(member) {
                metadata[member] = value;
            }
        }
        members.insert("metadata".to_owned(), metadata);
        members.insert(
            "apiVersion".to_owned(),
            json!("rbac.authorization.k8s.io/v1"),
        );
        object
    })
}
