//! Decodes the bytes of a frame (one list item or one watch event) into an [`Object`].
//!
//! Guarantees:
//! - An object is decoded once, before it is delivered, whatever the number of handlers. Exception: without a
//!   transform, a cache that stores objects as bytes (informer options `lazy` and `packed`) decodes an object
//!   when it is read.
//! - If an object does not decode, or its transform fails, the result is a broken [`Object`] with the error.
//!   Other objects are not affected.

mod known;
mod restore;

pub(crate) use self::known::KnownStates;

use std::{any::TypeId, sync::Arc};

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use crate::{
    codec::{Encoded, Expected, Identity, Named, Unfit},
    json::Measured,
    limits::{NAME_BYTES, PARTS, REVISION_BYTES},
    object::{self, DecodeError, Form, Object, ObjectName, ResourceVersion, UidHash},
    panics::{Panicked, confined},
    pruning::Pruning,
};

/// A function that changes every object of an informer before it is stored or delivered.
///
/// # Errors
/// Returns a message if the object can't be changed. The object is then stored as broken, with the message in
/// its [`DecodeError`].
#[doc(alias = "TransformFunc")]
pub type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// Decodes the bytes of one informer's objects into [`Object`] handles.
#[derive_where(Clone)]
pub(crate) struct Decoder<K> {
    transform: Option<Transform<K>>,
    expected: Arc<Expected>,
    /// Whether `K` is a dynamic type. If so, the decoder adds the expected API version and kind to objects
    /// that state neither.
    is_dynamic: bool,
    pruning: Pruning,
    form: Form<K>,
}

impl<K> Decoder<K> {
    /// Sets the fields that are removed from every object before it is decoded.
    pub(crate) fn pruning(self, pruning: Pruning) -> Self {
        Self { pruning, ..self }
    }

    /// Sets the form in which the cache stores objects: decoded, or as plain or compressed bytes.
    pub(crate) fn keeping(self, form: Form<K>) -> Self {
        Self { form, ..self }
    }

    /// Returns a decoder that does not compress objects for a packed cache.
    ///
    /// [`Housekeeping`](crate::object::Housekeeping) compresses the objects later, so that events do not wait
    /// for compression.
    pub(crate) fn urgent(self) -> Self {
        Self {
            form: self.form.urgent(),
            ..self
        }
    }

    pub(crate) fn form(&self) -> &Form<K> {
        &self.form
    }

    /// Converts decoded objects to the form in which the cache stores objects.
    pub(crate) fn kept(&self, objects: Vec<Object<K>>) -> Vec<Object<K>> {
        let kept = objects.into_iter().map(|object| self.form.convert(object));
        kept.collect()
    }

    /// Returns whether objects are decoded only when they are read.
    fn is_on_demand(&self) -> bool {
        // A transform needs decoded objects.
        !self.form.is_decoded() && self.transform.is_none()
    }
}

/// The result of decoding one object.
pub(crate) enum Decoded<K> {
    /// A handle to a valid object, or to a broken one that failed to decode.
    Object(Object<K>),
    /// The store already contains the received state of the object, so the object was not decoded. The value
    /// is the store's handle.
    Known(Object<K>),
    /// The object can't be stored, because its name, namespace or revision is unreadable or invalid.
    Unreadable(DecodeError),
    /// The object is not of the informer's kind, and is not stored.
    OtherKind(OtherKind),
}

/// An object whose API version and kind are not those that the informer requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherKind {
    pub(crate) name: Option<ObjectName>,
    /// The API version and kind that the object states.
    pub(crate) found: String,
}

impl<K> Decoded<K> {
    /// Returns whether the result is [`Unreadable`](Self::Unreadable) because the object has no name or no
    /// valid revision.
    pub(crate) fn names_no_state(&self, encoded: Encoded<'_>) -> bool {
        let Self::Unreadable(_) = self else {
            return false;
        };
        let identity = encoded.identity().unwrap_or_default();
        ObjectName::of(&identity).is_none() || revision(encoded).is_none()
    }

    fn other(encoded: Encoded<'_>, found: String) -> Self {
        let name = name(encoded);
        Self::OtherKind(OtherKind { name, found })
    }
}

impl<K> Decoder<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    pub(crate) fn new(dyntype: &K::DynamicType, transform: Option<Transform<K>>) -> Self {
        let (api_version, kind) = (K::api_version(dyntype), K::kind(dyntype));
        let expected = Expected::new(&api_version, &kind, K::metadata_api());
        Self {
            transform,
            expected: Arc::new(expected),
            is_dynamic: TypeId::of::<K::DynamicType>() != TypeId::of::<()>(),
            pruning: Pruning::default(),
            form: Form::Decoded,
        }
    }

    /// Decodes a list item.
    ///
    /// Returns [`Decoded::Known`] without decoding if `known` contains the object at the same revision.
    pub(crate) fn item(&self, encoded: Encoded<'_>, known: Option<&KnownStates<K>>) -> Decoded<K> {
        // Items of built-in kinds state no kind. A search for the kind would take a large part of the
        // decoding time.
        if !self.is_dynamic
            && let Some(at) = encoded.begins_with_metadata()
        {
            let identity = self.identity(encoded, Some(at), known);
            return self.unless_other(self.of_kind(encoded, identity, known), encoded);
        }
        self.object(encoded, known)
    }

    /// Returns [`Decoded::OtherKind`] if decoding failed and the object has another kind than the informer.
    /// Otherwise returns `decoded`.
    fn unless_other(&self, decoded: Decoded<K>, encoded: Encoded<'_>) -> Decoded<K> {
        match &decoded {
            Decoded::Object(object) if object.broken().is_none() => decoded,
            Decoded::Known(_) => decoded,
            _ => match encoded.named(&self.expected) {
                Named::Other(found) => Decoded::other(encoded, found),
                Named::Expected(_) | Named::Nothing => decoded,
            },
        }
    }

    /// Checks the kind of an object, and decodes the object.
    ///
    /// Returns [`Decoded::OtherKind`] without decoding if the object has another kind than the informer.
    /// Returns [`Decoded::Known`] without decoding if `known` contains the object at the same revision.
    pub(crate) fn object(
        &self,
        encoded: Encoded<'_>,
        known: Option<&KnownStates<K>>,
    ) -> Decoded<K> {
        match encoded.named(&self.expected) {
            Named::Expected(at) => {
                let identity = self.identity(encoded, at, known);
                self.of_kind(encoded, identity, known)
            }
            Named::Nothing if self.is_dynamic => {
                let stamped = encoded.with_kind(&self.expected);
                self.of_kind(encoded.codec().object(&stamped), None, known)
            }
            Named::Nothing => self.of_kind(encoded, None, known),
            Named::Other(found) => Decoded::other(encoded, found),
        }
    }

    /// Reads the [`Identity`] of an object. Returns `None` if the identity is not needed or can't be read.
    ///
    /// The identity is needed to find the object in `known`, to prune fields, or to decode the object on
    /// demand.
    ///
    /// In JSON, `at` is the byte position of the value of `metadata`. For protobuf, any number has the same
    /// effect. If `at` is `None`, the result is `None`.
    fn identity<'a>(
        &self,
        encoded: Encoded<'a>,
        at: Option<usize>,
        known: Option<&KnownStates<K>>,
    ) -> Option<Identity<'a>> {
        let is_unread = self.is_on_demand();
        let is_wanted = is_unread || known.is_some() || !self.pruning.is_empty();
        encoded.identity_at(at.filter(|_| is_wanted)?, is_unread)
    }

    /// Decodes an object that has the expected kind or no kind.
    ///
    /// `identity` is the object's identity, if the caller has already read it.
    fn of_kind(
        &self,
        encoded: Encoded<'_>,
        identity: Option<Identity<'_>>,
        known: Option<&KnownStates<K>>,
    ) -> Decoded<K> {
        let wire_bytes = encoded.bytes().len();
        // An object of at most `PARTS` bytes can't contain more than `PARTS` arrays and maps.
        if wire_bytes > PARTS && encoded.parts() > PARTS {
            let reason = format!("more than {PARTS} arrays and maps");
            return broken(encoded, ".", &reason);
        }
        let identity = identity.or_else(|| known.and_then(|_| encoded.identity()));
        let known = identity.as_ref().zip(known);
        let known = known.and_then(|(identity, known)| known.unchanged(identity));
        let was_broken = known.as_ref().is_some_and(|it| it.broken().is_some());
        if let Some(object) = known.filter(|_| !was_broken) {
            return Decoded::Known(object);
        }
        let cut = identity.as_ref();
        let cut = cut.and_then(|identity| encoded.cut_found(&self.pruning, identity));
        let cut = cut.unwrap_or_else(|| encoded.cut(&self.pruning));
        let encoded = encoded.codec().object(&cut);
        // An object that was broken is decoded immediately: if it were stored undecoded, it would count as
        // valid until it is read.
        if was_broken
            && self.is_on_demand()
            && let Err(Unfit { field, reason }) = open::<K>(encoded)
        {
            return broken(encoded, &field, &reason);
        }
        let unread = self.is_on_demand().then(|| {
            unread(encoded, identity, |name, identity| {
                self.form.keep(name, identity, encoded, wire_bytes)
            })
        });
        let unread = unread.flatten();
        unread.unwrap_or_else(|| self.converted(encoded, wire_bytes))
    }

    /// Decodes the whole object, and converts it to the cache's form.
    fn converted(&self, encoded: Encoded<'_>, wire_bytes: usize) -> Decoded<K> {
        match self.whole(encoded, wire_bytes) {
            Decoded::Object(object) => Decoded::Object(self.form.convert(object)),
            decoded => decoded,
        }
    }

    fn whole(&self, encoded: Encoded<'_>, wire_bytes: usize) -> Decoded<K> {
        let (mut object, heap_bytes) = match measured::<K>(encoded) {
            Ok(Measured { value, heap_bytes }) => (value, heap_bytes),
            Err(Unfit { field, reason }) => return broken(encoded, &field, &reason),
        };
        // Read before the transform, which may drop these fields.
        let Some((name, revision)) = object::name_and_revision(&object) else {
            return broken(encoded, "metadata.name", "no name");
        };
        let sent_revision = object.meta().resource_version.as_deref();
        if let Some(unfit) = unfit(&name, sent_revision.unwrap_or_default()) {
            return Decoded::Unreadable(unfit);
        }
        let uid = UidHash::of_object(&object);
        if let Some(transform) = &self.transform {
            let transformed = confined(|| transform(&mut object));
            if let Err(reason) =
                transformed.unwrap_or_else(|Panicked| Err("it panicked".to_owned()))
            {
                return broken(encoded, ".", &format!("the transform failed: {reason}"));
            }
        }
        let object = Object::identified(name, revision, uid, object, wire_bytes);
        Decoded::Object(object.counted(heap_bytes))
    }
}

/// Returns the name of an object of any kind, if it is valid.
fn name(encoded: Encoded<'_>) -> Option<ObjectName> {
    let name = ObjectName::of(&encoded.identity()?);
    name.filter(ObjectName::is_fit)
}

/// Returns the revision in the metadata of an object or of a bookmark.
///
/// Returns `None` if the metadata can't be read, or if the revision is missing or invalid.
pub(crate) fn revision(encoded: Encoded<'_>) -> Option<ResourceVersion> {
    let identity = encoded.identity()?;
    let is_fit = ResourceVersion::is_fit(&identity.metadata.resource_version);
    let revision = ResourceVersion::of(&identity);
    (is_fit && !revision.is_unset()).then_some(revision)
}

fn broken<K>(encoded: Encoded<'_>, field: &str, reason: &str) -> Decoded<K> {
    let identity = encoded.identity();
    // An object that is invalid after its metadata still exists on the server, so its name is needed.
    let identity = identity.or_else(|| encoded.identity_in_place());
    let identity = identity.unwrap_or_default();
    let Some(name) = ObjectName::of(&identity) else {
        return Decoded::Unreadable(DecodeError::new(None, field, reason));
    };
    if let Some(unfit) = unfit(&name, &identity.metadata.resource_version) {
        return Decoded::Unreadable(unfit);
    }
    let error = DecodeError::new(Some(name.clone()), field, reason);
    Decoded::Object(Object::from_broken(name, &identity, error))
}

/// Returns an error if the name or revision is too long or contains control characters.
fn unfit(name: &ObjectName, revision: &str) -> Option<DecodeError> {
    if !name.is_fit() {
        let reason = format!("longer than {NAME_BYTES} bytes, or with control characters,");
        return Some(DecodeError::new(None, "metadata.name", &reason));
    }
    (!ResourceVersion::is_fit(revision)).then(|| {
        let reason = format!("longer than {REVISION_BYTES} bytes, or with control characters,");
        DecodeError::new(Some(name.clone()), "metadata.resourceVersion", &reason)
    })
}

/// Reads and checks an object's name and revision, and calls `keep` to create the undecoded object.
///
/// Returns [`Decoded::Unreadable`] if the check fails. Returns `None` if the name can't be read or if `keep`
/// returns `None`.
fn unread<K>(
    encoded: Encoded<'_>,
    identity: Option<Identity<'_>>,
    keep: impl FnOnce(ObjectName, &Identity<'_>) -> Option<Object<K>>,
) -> Option<Decoded<K>> {
    let identity = identity.or_else(|| encoded.identity())?;
    let name = ObjectName::of(&identity)?;
    if let Some(unfit) = unfit(&name, &identity.metadata.resource_version) {
        return Some(Decoded::Unreadable(unfit));
    }
    keep(name, &identity).map(Decoded::Object)
}

/// Decodes an object as a `K`.
///
/// # Errors
/// Returns an error if decoding fails or panics. The error does not quote values of the object.
pub(crate) fn open<K: DeserializeOwned>(encoded: Encoded<'_>) -> Result<K, Unfit> {
    confined(|| encoded.decode()).unwrap_or_else(|Panicked| Err(panicked()))
}

/// Decodes an object as a `K`, and estimates its heap memory in bytes.
///
/// # Errors
/// Returns the same errors as [`open`].
pub(crate) fn measured<K: DeserializeOwned>(encoded: Encoded<'_>) -> Result<Measured<K>, Unfit> {
    confined(|| encoded.measured()).unwrap_or_else(|Panicked| Err(panicked()))
}

fn panicked() -> Unfit {
    Unfit {
        field: ".".to_owned(),
        reason: "its type's Deserialize panicked".to_owned(),
    }
}

#[cfg(test)]
mod tests;
