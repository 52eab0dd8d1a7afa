//! [`Pruned`]: an object with holes, as a type that can be read as the whole one and not be written.

use std::{borrow::Cow, ops::Deref};

use kube_core::{ObjectMeta, Resource};
use serde::{Deserialize, Serialize, Serializer};

/// An object of which any field may be missing, because
/// [`prune`](crate::shared_informer::Builder::prune) or
/// [`keep`](crate::shared_informer::Builder::keep) has cut it out. It reads as `K`, and is of the same
/// kind.
///
/// A missing field reads as one that the server did not send, so what is read must be among what is
/// kept: nobody can tell the two apart.
///
/// Who writes an object back that lacks its volumes destroys them. A `Pruned<K>` is not `Serialize`, so
/// it goes into no request by itself, no patch and no `serde_json::to_value`:
///
/// ```compile_fail,E0277
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::pruning::Pruned;
/// fn send(pod: &Pruned<Pod>) -> serde_json::Result<Vec<u8>> {
///     serde_json::to_vec(pod)
/// }
/// ```
///
/// An `Api<Pruned<Pod>>` reads, and can't write. What remains possible is what Rust does for every
/// `Deref`: where a `&Pod` is asked for, as by `Api<Pod>::replace`, a `&Pruned<Pod>` is taken for one,
/// and `(*pod).clone()` makes a `Pod`. So fetch what is to be replaced, or send a patch of what changes.
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
    /// The object to change, for a [transform](crate::shared_informer::Builder::transform): what is in a
    /// cache is shared, and nobody gets it this way. `Pruned::get_mut(pod)`, so that no field of an
    /// object goes by this name.
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

/// Everything is as with the whole object.
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

/// Types whose fields can be cut out: each that can be written as JSON, of which only what can be
/// missing when it is written back is cut, and each [`Pruned`] one, of which anything is.
///
/// Nothing else can implement it.
#[diagnostic::on_unimplemented(
    message = "objects of `{Self}` can't be pruned",
    note = "`Pruned<{Self}>` can: it is for types that are never written back"
)]
pub trait Prunable {
    #[doc(hidden)]
    const FIELDS: Fields;
}

/// Types that the library can write down for itself, in a packed cache or a saved store: each that can be
/// written as JSON, and those [`Pruned`].
///
/// Nothing else can implement it, and nobody else can write by it.
#[diagnostic::on_unimplemented(message = "the library can't write `{Self}` as JSON")]
pub trait Storable {
    /// # Errors
    /// The type can't be written by this serializer.
    #[doc(hidden)]
    fn write<S: Serializer>(&self, serializer: S, by: Library) -> Result<S::Ok, S::Error>;
}

/// Which fields of a type can be cut.
#[doc(hidden)]
#[expect(
    unnameable_types,
    reason = "what nobody else can name, nobody else can implement or call"
)]
#[derive(Clone, Copy, Debug)]
pub struct Fields(pub(super) Cuttable);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cuttable {
    /// Those without which an object can be written back.
    Dispensable,
    /// All but what says which object it is.
    AllButIdentity,
}

/// Only the library has one of these.
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

/// An object as the library writes it down.
pub(crate) struct Stored<'a, K>(pub(crate) &'a K);

impl<K: Storable> Serialize for Stored<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.write(serializer, Library(()))
    }
}
