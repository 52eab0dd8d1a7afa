//! Defines [`Pruned`], an object that may lack fields. Also defines the trait of types whose fields can be
//! pruned ([`Prunable`]), and the trait of types that the library can serialize ([`Storable`]).
//!
//! A user of the library can read a [`Pruned`] object, but can't serialize it. This prevents accidental
//! writes of incomplete objects to the server.

use std::{borrow::Cow, ops::Deref};

use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize, Serializer};

/// An object from which [`prune`](crate::shared_informer::Builder::prune) or
/// [`keep`](crate::shared_informer::Builder::keep) may have removed fields.
///
/// A `Pruned<K>` dereferences to `K`, and has the same Kubernetes kind. A removed field reads like a field
/// that the server did not send, so read only fields that are kept.
///
/// If a client wrote a pod without its volumes to the server, the server would delete the volumes of the pod.
/// Therefore, a `Pruned<K>` does not implement `Serialize`, and can't be used in a request body, a patch, or
/// `serde_json::to_value`:
///
/// ```compile_fail,E0277
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::pruning::Pruned;
/// fn send(pod: &Pruned<Pod>) -> serde_json::Result<Vec<u8>> {
///     serde_json::to_vec(pod)
/// }
/// ```
///
/// An `Api<Pruned<Pod>>` can read, but not write. The compiler can't prevent a write through `Deref`:
/// `Api<Pod>::replace` accepts a `&Pruned<Pod>`, which dereferences to a `&Pod`, and `(*pod).clone()` is a
/// `Pod`. To change an object, fetch the whole object before you replace it, or send a patch that contains
/// only the changes.
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
    /// Returns a mutable reference to the contained object, for use in a
    /// [transform](crate::shared_informer::Builder::transform).
    ///
    /// Call this associated function as `Pruned::get_mut(pod)`. The function is not a method, because a
    /// method would hide a method `get_mut` of `K`.
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

/// A `Pruned<K>` has the Kubernetes kind of `K`, and the metadata of the contained object.
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

/// A type whose fields can be pruned.
///
/// The trait is sealed, and is implemented for types that implement `Serialize` and for [`Pruned`] types.
/// For a type that implements `Serialize`, only managed fields and annotations can be pruned. For a
/// [`Pruned`] type, all fields can be pruned except those that identify the object or that selectors read.
/// The module [`pruning`](crate::pruning) explains the reasons.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` can't be pruned",
    note = "`Pruned<{Self}>` can: it is for types that are never written back"
)]
pub trait Prunable {
    #[doc(hidden)]
    const FIELDS: Fields;
}

/// A type that the library can serialize, to store objects as bytes in a cache or in a file.
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
    reason = "code that can't name the type can't implement or call the method"
)]
#[derive(Clone, Copy, Debug)]
pub struct Fields(pub(super) Cuttable);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuttable {
    /// Only managed fields and annotations can be pruned. Used for types that implement `Serialize`, because
    /// a program can write objects of these types back to the server.
    Dispensable,
    /// All fields can be pruned, except those that identify the object or that selectors read. Used for
    /// [`Pruned`] types.
    AllButIdentity,
}

/// An argument of [`Storable::write`]. Only the library can construct it, so only the library can call the
/// method.
#[doc(hidden)]
#[expect(
    unnameable_types,
    reason = "code that can't name the type can't implement or call the method"
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

/// Serializes an object, even a [`Pruned`] one, for storage in a cache or a file.
pub(crate) struct Stored<'a, K>(pub(crate) &'a K);

impl<K: Storable> Serialize for Stored<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, Library(()))
    }
}
