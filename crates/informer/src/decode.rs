//! Turns a frame's bytes into one [`Object`].
//!
//! Every object is decoded once, however many handlers and informer handles there are, and on its
//! own: one that does not decode, or whose transform fails, becomes a broken handle with the error
//! in it, and the objects around it are not touched. What is kept packed or lazily is decoded when it is
//! asked for.

mod expected;
mod heap_size;
mod known;
mod restore;
mod tape;
mod fast_path;

pub(crate) use self::known::KnownStates;

use std::{any::TypeId, borrow::Cow, sync::Arc};

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use self::expected::{Expected, ITEM, Named};
use crate::{
    limits::{NAME_BYTES, PARTS, REVISION_BYTES},
    object::{
        self, DecodeError, Form, Identity, Object, ObjectName, ResourceVersion, UidHash, Unfit,
    },
    panics::{Panicked, confined},
    pruning::Pruning,
    transport::parts,
};

/// A change made to every object before anything else sees it.
///
/// # Errors
/// The text becomes part of the object's [`DecodeError`].
#[doc(alias = "TransformFunc")]
pub type Transform<K> = Arc<dyn Fn(&mut K) -> Result<(), String> + Send + Sync>;

/// What one informer does to turn bytes into objects.
#[derive_where(Clone)]
pub(crate) struct Decoder<K> {
    transform: Option<Transform<K>>,
    expected: Arc<Expected>,
    pruning: Pruning,
    form: Form<K>,
}

impl<K> Decoder<K> {
    /// The same, which cuts this out of every object first.
    pub(crate) fn pruning(self, pruning: Pruning) -> Self {
        Self { pruning, ..self }
    }

    /// The same, which keeps objects in this form.
    pub(crate) fn keeping(self, form: Form<K>) -> Self {
        Self { form, ..self }
    }

    /// The same for objects that something waits for: what would delay one is left to the form's
    /// [`Housekeeping`](crate::object::Housekeeping).
    pub(crate) fn urgent(self) -> Self {
        Self {
            form: self.form.urgent(),
            ..self
        }
    }

    pub(crate) fn form(&self) -> &Form<K> {
        &self.form
    }

    /// Decoded objects in the form in which it keeps them.
    pub(crate) fn kept(&self, objects: Vec<Object<K>>) -> Vec<Object<K>> {
        let kept = objects.into_iter().map(|object| self.form.convert(object));
        kept.collect()
    }

    /// Whether objects are decoded when they are read.
    fn is_on_demand(&self) -> bool {
        !self.form.is_decoded() && self.transform.is_none()
    }
}

/// What became of one object's bytes.
pub(crate) enum Decoded<K> {
    /// A handle, live or broken.
    Object(Object<K>),
    /// The state that is known already, so that nothing was decoded.
    Known(Object<K>),
    /// Not even name and namespace could be read, so there is nothing to keep it under.
    Unreadable(DecodeError),
    /// An object of another kind, which has no place in this store.
    OtherKind(OtherKind),
}

/// An object that says it is of another kind than was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherKind {
    /// Its name, if it has one.
    pub(crate) name: Option<ObjectName>,
    /// What it says it is.
    pub(crate) found: String,
}

impl<K> Decoded<K> {
    /// Whether some object is in another state now, and these bytes don't say which, or which state.
    pub(crate) fn names_no_state(&self, bytes: &[u8]) -> bool {
        let Self::Unreadable(_) = self else {
            return false;
        };
        let identity: Identity<'_> = serde_json::from_slice(bytes).unwrap_or_default();
        identity.name().is_none() || revision(bytes).is_none()
    }

    fn other(bytes: &[u8], found: String) -> Self {
        let name = name(bytes);
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
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let (api_version_json, kind_json) = (text(&api_version), text(&kind));
        let stamp = format!(r#""apiVersion":{api_version_json},"kind":{kind_json}"#);
        let mut beginnings = vec![
            format!(r#"{{"kind":{kind_json},"apiVersion":{api_version_json}"#),
            format!("{{{stamp}"),
        ];
        if K::metadata_api() {
            let metadata_alone = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1""#;
            beginnings.insert(0, metadata_alone.to_owned());
        }
        let is_dynamic = TypeId::of::<K::DynamicType>() != TypeId::of::<()>();
        let expected = Expected {
            api_version: api_version.into_owned(),
            kind: kind.into_owned(),
            metadata_only: K::metadata_api(),
            beginnings,
            stamp: is_dynamic.then_some(stamp),
        };
        Self {
            transform,
            expected: Arc::new(expected),
            pruning: Pruning::default(),
            form: Form::Decoded,
        }
    }

    /// Decodes an item of a list. What is known in this very state is not decoded.
    pub(crate) fn item(&self, bytes: &[u8], known: Option<&KnownStates<K>>) -> Decoded<K> {
        // Items of built-in kinds name no kind, and begin like this; looking for one would take a
        // good part of the time that decoding takes.
        if self.expected.stamp.is_none() && bytes.starts_with(ITEM.as_bytes()) {
            let identity = self.identity(bytes, Some(ITEM.len()), known);
            return self.unless_other(self.of_kind(bytes, identity, known), bytes);
        }
        self.object(bytes, known)
    }

    /// What was decoded without a look at its kind, which may be why it is no good.
    fn unless_other(&self, decoded: Decoded<K>, bytes: &[u8]) -> Decoded<K> {
        match &decoded {
            Decoded::Object(object) if object.broken().is_none() => decoded,
            Decoded::Known(_) => decoded,
            _ => match self.expected.find(bytes) {
                Named::Other(found) => Decoded::other(bytes, found),
                Named::Expected(_) | Named::Nothing => decoded,
            },
        }
    }

    /// Decodes the object of an event. What is known in this very state is not decoded.
    pub(crate) fn object(&self, bytes: &[u8], known: Option<&KnownStates<K>>) -> Decoded<K> {
        match self.expected.find(bytes) {
            Named::Expected(at) => {
                let identity = self.identity(bytes, at, known);
                self.of_kind(bytes, identity, known)
            }
            Named::Nothing => match &self.expected.stamp {
                Some(stamp) => self.of_kind(&stamped(bytes, stamp), None, known),
                None => self.of_kind(bytes, None, known),
            },
            Named::Other(found) => Decoded::other(bytes, found),
        }
    }

    /// The identity, if it is of use and its metadata are known to begin there.
    fn identity<'a>(
        &self,
        bytes: &'a [u8],
        at: Option<usize>,
        known: Option<&KnownStates<K>>,
    ) -> Option<Identity<'a>> {
        let is_unread = self.is_on_demand();
        let is_wanted = is_unread || known.is_some() || !self.pruning.is_empty();
        let at = at.filter(|_| is_wanted)?;
        let usual = is_unread.then(|| fast_path::identity(bytes, at)).flatten();
        usual.or_else(|| Identity::begins_at(bytes, at))
    }

    /// Decodes what may be of the kind; `identity` is read from these very bytes, if they begin as API servers
    /// write it.
    fn of_kind(
        &self,
        bytes: &[u8],
        identity: Option<Identity<'_>>,
        known: Option<&KnownStates<K>>,
    ) -> Decoded<K> {
        // A shorter one has no room for them.
        if bytes.len() > PARTS && parts(bytes) > PARTS {
            let reason = format!("more than {PARTS} arrays and maps");
            return broken(bytes, ".", &reason);
        }
        let identity = identity.or_else(|| known.and_then(|_| serde_json::from_slice(bytes).ok()));
        let known = identity.as_ref().zip(known);
        let known = known.and_then(|(identity, known)| known.unchanged(identity));
        let was_broken = known.as_ref().is_some_and(|it| it.broken().is_some());
        if let Some(object) = known.filter(|_| !was_broken) {
            return Decoded::Known(object);
        }
        let wire_bytes = bytes.len();
        let cut = identity.as_ref();
        let cut = cut.and_then(|identity| self.pruning.cut_found(identity.prunable(), bytes));
        let bytes = &*cut.unwrap_or_else(|| self.pruning.cut(bytes));
        // Decoded again, as in any cache, before it counts as usable: of a state that nobody has read since,
        // it would not be known that it is broken.
        if was_broken
            && self.is_on_demand()
            && let Err(Unfit { field, reason }) = open::<K>(bytes)
        {
            return broken(bytes, &field, &reason);
        }
        let unread = self.is_on_demand().then(|| {
            unread(bytes, identity, |name, identity| {
                self.form.keep(name, identity, bytes, wire_bytes)
            })
        });
        let unread = unread.flatten();
        unread.unwrap_or_else(|| self.converted(bytes, wire_bytes))
    }

    /// Decodes the object now, and keeps it in the cache's form.
    fn converted(&self, bytes: &[u8], wire_bytes: usize) -> Decoded<K> {
        match self.whole(bytes, wire_bytes) {
            Decoded::Object(object) => Decoded::Object(self.form.convert(object)),
            decoded => decoded,
        }
    }

    fn whole(&self, bytes: &[u8], wire_bytes: usize) -> Decoded<K> {
        let (mut object, heap_bytes) = match measured::<K>(bytes) {
            Ok(measured) => measured,
            Err(Unfit { field, reason }) => return broken(bytes, &field, &reason),
        };
        // Before the transform, which may drop what nobody reads, and is of no account for order.
        let Some((name, revision)) = object::name_and_revision(&object) else {
            return broken(bytes, "metadata.name", "no name");
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
                return broken(bytes, ".", &format!("the transform failed: {reason}"));
            }
        }
        let object = Object::identified(name, revision, uid, object, wire_bytes);
        Decoded::Object(object.counted(heap_bytes))
    }
}

/// The same object with its kind written into it.
fn stamped(bytes: &[u8], stamp: &str) -> Vec<u8> {
    let brace = bytes.iter().position(|&byte| byte == b'{');
    let at = brace.unwrap_or_default() + 1;
    let (before, behind) = bytes.split_at(at.min(bytes.len()));
    let empty = behind.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let mut stamped = Vec::with_capacity(bytes.len() + stamp.len() + 1);
    stamped.extend_from_slice(before);
    stamped.extend_from_slice(stamp.as_bytes());
    stamped.extend_from_slice(if empty { b"" } else { b"," });
    stamped.extend_from_slice(behind);
    stamped
}

/// The name of an object of whatever kind.
fn name(bytes: &[u8]) -> Option<ObjectName> {
    let name = serde_json::from_slice::<Identity<'_>>(bytes).ok()?.name();
    name.filter(ObjectName::is_fit)
}

/// The revision of a bookmark, or of any other object; `None` if there is none to read.
pub(crate) fn revision(bytes: &[u8]) -> Option<ResourceVersion> {
    let identity: Identity<'_> = serde_json::from_slice(bytes).ok()?;
    let is_fit = ResourceVersion::is_fit(&identity.metadata.resource_version);
    let revision = identity.revision();
    (is_fit && !revision.is_unset()).then_some(revision)
}

/// Whether a bookmark is the one that ends the initial events of a watch. Only `"true"` says so.
pub(crate) fn ends_initial_events(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Bookmark<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        annotations: Annotations<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Annotations<'a> {
        #[serde(borrow, rename = "k8s.io/initial-events-end")]
        end: Cow<'a, str>,
    }
    serde_json::from_slice::<Bookmark<'_>>(bytes)
        .is_ok_and(|bookmark| bookmark.metadata.annotations.end == "true")
}

fn broken<K>(bytes: &[u8], field: &str, reason: &str) -> Decoded<K> {
    let identity = serde_json::from_slice(bytes).ok();
    // What is no JSON behind its metadata is still the object that they name: it is not gone.
    let identity = identity.or_else(|| Identity::begins_at(bytes, expected::metadata_at(bytes)?));
    let identity: Identity<'_> = identity.unwrap_or_default();
    let Some(name) = identity.name() else {
        return Decoded::Unreadable(DecodeError::new(None, field, reason));
    };
    if let Some(unfit) = unfit(&name, &identity.metadata.resource_version) {
        return Decoded::Unreadable(unfit);
    }
    let error = DecodeError::new(Some(name.clone()), field, reason);
    Decoded::Object(Object::from_broken(name, &identity, error))
}

/// What keeps an object from being kept at all: nobody could show such a name, or send back such a
/// revision.
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

/// Keeps an object's bytes without decoding more of them than says which object it is. Whether they fit
/// the type, or are JSON at all but for what identifies it, shows when somebody asks for the object. `None` if
/// nothing that identifies it can be read: decoding the whole then says why, or that it can after all.
fn unread<K>(
    bytes: &[u8],
    identity: Option<Identity<'_>>,
    keep: impl FnOnce(ObjectName, &Identity<'_>) -> Option<Object<K>>,
) -> Option<Decoded<K>> {
    let identity = identity.or_else(|| serde_json::from_slice(bytes).ok())?;
    let name = identity.name()?;
    if let Some(unfit) = unfit(&name, &identity.metadata.resource_version) {
        return Some(Decoded::Unreadable(unfit));
    }
    keep(name, &identity).map(Decoded::Object)
}

/// Makes an object of its JSON.
///
/// # Errors
/// It does not fit the type; in words that quote nothing of it.
pub(crate) fn open<K: DeserializeOwned>(bytes: &[u8]) -> Result<K, Unfit> {
    let opened = confined(|| match tape::decode(bytes) {
        Some(object) => Ok(object),
        None => serde_json::from_slice(bytes).map_err(|error| locate::<K>(bytes, &error)),
    });
    opened.unwrap_or_else(|Panicked| Err(panicked()))
}

/// The same, and how many bytes of heap it takes beyond itself, about.
pub(crate) fn measured<K: DeserializeOwned>(bytes: &[u8]) -> Result<(K, usize), Unfit> {
    let measured = confined(|| match heap_size::from_slice(bytes) {
        Ok(decoded) => Ok((decoded.value, decoded.heap_bytes)),
        Err(error) => Err(locate::<K>(bytes, &error)),
    });
    measured.unwrap_or_else(|Panicked| Err(panicked()))
}

/// The type's own `Deserialize` panicked.
fn panicked() -> Unfit {
    Unfit {
        field: ".".to_owned(),
        reason: "its type's Deserialize panicked".to_owned(),
    }
}

/// Where an object does not fit its type, in words that quote nothing of it: serde's own messages
/// repeat the offending value, which may be a secret.
fn locate<K: DeserializeOwned>(bytes: &[u8], error: &serde_json::Error) -> Unfit {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let field = match serde_path_to_error::deserialize::<_, K>(&mut deserializer) {
        Err(located) => located.path().to_string(),
        Ok(_) => ".".to_owned(),
    };
    let reason = what(error);
    Unfit { field, reason }
}

fn what(error: &serde_json::Error) -> String {
    use serde_json::error::Category;

    let what = match error.classify() {
        Category::Data => "a value of another type than expected, or a missing field,",
        Category::Eof => "the JSON ends early",
        // Which the parser has no category for; its texts for this one quote nothing.
        Category::Syntax if error.to_string().starts_with("recursion limit exceeded") => {
            "nested too deep"
        }
        Category::Syntax | Category::Io => "no valid JSON",
    };
    format!("{what} (line {}, column {})", error.line(), error.column())
}

#[cfg(test)]
mod tests;
