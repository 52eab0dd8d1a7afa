//! The representations of a pod that an informer can store: typed, JSON, or metadata.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use serde::{Serialize, de::DeserializeOwned};

/// A representation of pods.
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
    /// Returns the dynamic type of pods.
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
