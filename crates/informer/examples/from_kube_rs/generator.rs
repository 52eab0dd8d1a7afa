//! The custom resource `Generator`, which the controllers in `before.rs` and `after.rs` reconcile.
//!
//! A generator specifies the content of the config map that has the same name and namespace.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

pub(crate) const GROUP: &str = "kube-informer.example.com";

#[derive(Clone, Debug, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "kube-informer.example.com",
    version = "v1",
    kind = "Generator",
    namespaced,
    schema = "disabled",
    crates(
        kube_core = "kube::core",
        k8s_openapi = "k8s_openapi",
        serde = "serde",
        serde_json = "serde_json"
    )
)]
pub(crate) struct GeneratorSpec {
    pub(crate) content: String,
}
