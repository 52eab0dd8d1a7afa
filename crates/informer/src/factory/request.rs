//! Defines a request to a factory for an informer. The request contains only the options that the caller set.

use std::any::TypeId;

use k8s_openapi::ClusterResourceScope;
use kube_core::Resource;

use super::options::InformerOptions;

pub(super) struct Request<K: Resource> {
    pub(super) dyntype: K::DynamicType,
    pub(super) options: InformerOptions<K>,
    pub(super) is_namespaced: bool,
}

impl<K: Resource + 'static> Request<K> {
    pub(super) fn of_type(options: InformerOptions<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of_kind(K::DynamicType::default(), options, None)
    }

    /// Creates a request. If `is_namespaced` is `None`, the Rust type determines the scope.
    pub(super) fn of_kind(
        dyntype: K::DynamicType,
        options: InformerOptions<K>,
        is_namespaced: Option<bool>,
    ) -> Self {
        let is_cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        Self {
            dyntype,
            options,
            is_namespaced: is_namespaced.unwrap_or(!is_cluster_scoped),
        }
    }
}
