//! Defines [`Pruned`], an object that may lack fields, and the traits of types whose fields can be pruned.
//!
//! A [`Pruned`] object can be read, but not serialized by a user of the library, so that it is not written
//! back to the server by mistake.

use std::{borrow::Cow, ops::Deref};

use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize, Serializer};

/// An object from which [`prune`](crate::shared_informer::Builder::prune) or
/// [`keep`](crate::shared_informer::Builder::keep) may have removed fields.
///
/// A `Pruned<K>` dereferences to `K`, and has the same Kubernetes kind. A removed field reads like a field
/// that the server did not send, so read only fields that are kept.
///
/// Writing back an object that lacks its volumes would destroy them. Therefore a `Pruned<K>` does not
/// implement `Serialize`, and can't be used in a request body, a patch, or `serde_json::to_value`:
///
/// ```compile_fail,E0277
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::pruning::Pruned;
/// fn send(pod: &Pruned<Pod>) -> serde_json::Result<Vec<u8>> {
///     serde_json::to_vec(pod)
/// }
/// ```
///
/// An `Api<Pruned<Pod>>` can read, but not write. The compiler can't prevent a write through `Deref`: where a
/// `&Pod` is expected, as by `Api<Pod>::replace`, a `&Pruned<Pod>` is accepted, and `(*pod).clone()` is a
/// `Pod`. So fetch the whole object before you replace it, or send a patch that contains only the changes.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::pruning::Pruned;
/// use serde_json::json;
/// let pod: Pruned<Pod> = serde_json::from_value(json!({
///     "metadata": {"name": "a"},
///     "spec": {"containers": [], "nodeName": "node-1"},
/// }))?;
/// let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
/// assert_eq!(node, Some("node-1"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Pruned<K>(K);

impl<K> Pruned<K> {
    /// Returns a mutable reference to the object, for use in a
    /// [transform](crate::shared_informer::Builder::transform).
    ///
    /// This is an associated function, called as `Pruned::get_mut(pod)`, so that it does not hide a method of
    /// `K`. Objects in a cache are shared and can't be modified this way.
    pub fn get_mut(pruned: &mut Self) -> &mut K {
        &mut pruned.0
    }
}

impl<K> Deref for Pruned<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.0
    }
}

/// Has the Kubernetes kind of `K`, and the metadata of the contained object.
impl<K: Resource> Resource for Pruned<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(dt: &K::DynamicType) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &K::DynamicType) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::version(dt)
    }

    fn api_version(dt: &K::DynamicType) -> Cow<'_, str> {
        K::api_version(dt)
    }

    fn plural(dt: &K::DynamicType) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn url_path(dt: &K::DynamicType, namespace: Option<&str>) -> String {
        K::url_path(dt, namespace)
    }

    fn meta(&self) -> &ObjectMeta {
        self.0.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.0.meta_mut()
    }
}

/// Types whose fields can be pruned.
///
/// The trait is sealed, and implemented for two groups of types. From types that implement `Serialize`, only
/// managed fields and annotations can be pruned, because their objects can be written back to the server.
/// From [`Pruned`] types, all fields can be pruned except those that identify the object or that selectors
/// read.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` can't be pruned",
    note = "`Pruned<{Self}>` can: it is for types that are never written back"
)]
pub trait Prunable {
    #[doc(hidden)]
    const FIELDS: Fields;
}

/// Types that the library can serialize for a packed cache or a saved store.
///
/// The trait is implemented for all types that implement `Serialize`, and for all [`Pruned`] types. The trait
/// is sealed, and only the library can call its method.
#[diagnostic::on_unimplemented(message = "the library can't write `{Self}` as JSON")]
pub trait Storable {
    /// Serializes the object. Only the library can call this method, because only the library can construct
    /// `by`.
    ///
    /// # Errors
    /// Returns an error if the serializer can't write a value of this type.
    #[doc(hidden)]
    fn write<S: Serializer>(&self, serializer: S, by: Library) -> Result<S::Ok, S::Error>;
}

/// The set of fields that can be pruned from objects of a type.
#[doc(hidden)]
#[expect(
    unnameable_types,
    reason = "what nobody else can name, nobody else can implement or call"
)]
#[derive(Clone, Copy, Debug)]
pub struct Fields(pub(super) Cuttable);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuttable {
    /// Only managed fields and annotations can be pruned, because objects of the type can be written back to
    /// the server.
    Dispensable,
    /// All fields can be pruned except those that identify the object or that selectors read.
    AllButIdentity,
}

/// An argument of [`Storable::write`] that only the library can construct, so that other code can't call the
/// method.
#[doc(hidden)]
#[expect(
    unnameable_types,
    reason = "what nobody else can name, nobody else can implement or call"
)]
#[derive(Clone, Copy, Debug)]
pub struct Library(());

impl<K: Serialize> Prunable for K {
    const FIELDS: Fields = Fields(Cuttable::Dispensable);
}

impl<K> Prunable for Pruned<K> {
    const FIELDS: Fields = Fields(Cuttable::AllButIdentity);
}

impl<K: Serialize> Storable for K {
    fn write<S: Serializer>(&self, serializer: S, _: Library) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }
}

impl<K: Serialize> Storable for Pruned<K> {
    fn write<S: Serializer>(&self, serializer: S, _: Library) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// A wrapper that serializes an object for a packed cache or a saved store, even if the object is [`Pruned`].
pub(crate) struct Stored<'a, K>(pub(crate) &'a K);

impl<K: Storable> Serialize for Stored<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, Library(()))
    }
}
