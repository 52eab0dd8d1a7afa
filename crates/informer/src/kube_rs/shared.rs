//! Defines [`Shared`], a handle to a cached object. kube's store contains this handle instead of a copy of
//! the object.

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use derive_where::derive_where;
use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Deserializer};

use crate::object::ObjectName;

/// A handle to a cached object. kube's store contains this handle, and `reconcile` receives it. A clone of
/// the handle refers to the same object.
///
/// The handle dereferences to the object and implements [`Resource`], so kube's `ResourceExt` works on it.
/// [`Shared::get`] returns the `Arc<K>` that some functions need, for example kube's `finalizer`.
///
/// The cached object can't be changed. [`Resource::meta_mut`] copies the metadata into this handle, and
/// returns the copy for changes. Afterwards [`Resource::meta`] returns the changed copy, and `Deref` still
/// returns the unchanged object.
///
/// ```compile_fail,E0594
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::kube_rs::Shared;
/// fn change(cached: Shared<Pod>) {
///     cached.get().spec = None; // a cached object is shared and can't be changed
/// }
/// ```
#[derive_where(Clone)]
pub struct Shared<K> {
    object: Arc<K>,
    /// Copy of the metadata, created by the first call of `meta_mut`.
    own: Option<Box<ObjectMeta>>,
}

impl<K> Shared<K> {
    /// Returns the cached object, without a copy.
    pub fn get(&self) -> Arc<K> {
        Arc::clone(&self.object)
    }
}

impl<K: Resource> Shared<K> {
    /// Returns the name of the object, for example to read the newest cached state of the object from a
    /// [`Lister`](crate::lister::Lister).
    ///
    /// The name is empty if the object has no `metadata.name`. Informers do not deliver such objects.
    pub fn object_name(&self) -> ObjectName {
        let meta = self.object.meta();
        let name = meta.name.as_deref().unwrap_or_default();
        ObjectName::new(meta.namespace.as_deref(), name)
    }
}

impl<K> From<Arc<K>> for Shared<K> {
    fn from(object: Arc<K>) -> Self {
        Self { object, own: None }
    }
}

impl<K> Deref for Shared<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

/// Formats only the name and the `resourceVersion`, because the object may be a Secret.
impl<K: Resource> fmt::Debug for Shared<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.object.meta().resource_version.as_deref();
        write!(f, "{}@{}", self.object_name(), revision.unwrap_or_default())
    }
}

/// Decodes an object into a new handle. Only the bounds of kube's `Controller` require this.
impl<'de, K: Deserialize<'de>> Deserialize<'de> for Shared<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        K::deserialize(deserializer).map(|object| Arc::new(object).into())
    }
}

impl<K: Resource> Resource for Shared<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dyntype: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dyntype)
    }

    fn group(dyntype: &K::DynamicType) -> Cow<'_, str> {
        K::group(dyntype)
    }

    fn version(dyntype: &K::DynamicType) -> Cow<'_, str> {
        K::version(dyntype)
    }

    fn api_version(dyntype: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(dyntype)
    }

    fn plural(dyntype: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dyntype)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn url_path(dyntype: &K::DynamicType, namespace: Option<&str>) -> String {
        K::url_path(dyntype, namespace)
    }

    fn meta(&self) -> &ObjectMeta {
        self.own.as_deref().unwrap_or_else(|| self.object.meta())
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        let object = &self.object;
        self.own
            .get_or_insert_with(|| Box::new(object.meta().clone()))
    }
}

#[cfg(test)]
mod tests {
    use ::kube_runtime::reflector::ObjectRef;
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod() -> Shared<Pod> {
        let json = serde_json::json!({
            "metadata": {"name": "a", "namespace": "default", "resourceVersion": "7"},
            "spec": {"containers": [{"name": "secret"}]},
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_clone_is_the_same_object() {
        let pod = pod();
        assert!(Arc::ptr_eq(&pod.clone().get(), &pod.get()));
    }

    #[test]
    fn changed_metadata_belongs_to_the_handle_and_the_object_is_unchanged() {
        let original = pod();
        let mut changed = original.clone();
        let taken = std::mem::take(changed.meta_mut());
        assert_eq!(taken.name.as_deref(), Some("a"));
        assert_eq!(changed.meta(), &ObjectMeta::default());
        assert!(Arc::ptr_eq(&changed.get(), &original.get()), "not copied");
        assert_eq!(original.meta().name.as_deref(), Some("a"));
        assert_eq!(changed.object_name(), original.object_name());
    }

    #[test]
    fn debug_output_contains_no_content() {
        assert_eq!(format!("{:?}", pod()), "default/a@7");
    }

    /// Checks the sizes per object that the documentation of the module `kube_rs` states.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn a_store_of_shared_objects_keeps_a_key_and_two_words_for_each() {
        assert_eq!(size_of::<(ObjectRef<Shared<Pod>>, Arc<Shared<Pod>>)>(), 104);
        assert_eq!(size_of::<Shared<Pod>>(), 2 * size_of::<usize>());
    }
}
