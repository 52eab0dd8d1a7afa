//! Abstracts over the representations of pods that an informer can store: typed, JSON, or metadata only.

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
    /// Returns the type information that identifies pods as the resource of this representation.
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
