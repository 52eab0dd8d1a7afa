//! Abstracts over the Rust types that can represent pods in an informer's cache.
//!
//! The types are `Pod`, `DynamicObject` and `PartialObjectMeta<Pod>`.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use serde::{Serialize, de::DeserializeOwned};

/// A Rust type that represents pods in the informer's cache.
pub(crate) trait Stored:
    Resource<DynamicType: Clone + Send + Sync>
    + Serialize
    + DeserializeOwned
    + Clone
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
{
    /// Returns the value of `Self::DynamicType` for pods.
    fn dyntype() -> Self::DynamicType;
}

impl Stored for Pod {
    fn dyntype() {}
}

impl Stored for PartialObjectMeta<Pod> {
    fn dyntype() {}
}

impl Stored for DynamicObject {
    fn dyntype() -> ApiResource {
        ApiResource::erase::<Pod>(&())
    }
}
