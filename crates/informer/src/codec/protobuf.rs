//! Reads lists, watches and objects of built-in kinds in the protobuf encoding of Kubernetes.
//!
//! A message is the protobuf encoding of one value, such as an object. A message of an object may be in an
//! envelope, which states the API version and the kind. The field numbers and types of all messages are in a
//! table of the crate `kube_informer_protobuf`.
//!
//! Guarantees:
//! - [`ListSplitter`] and [`WatchSplitter`] accept a body in chunks that end at any byte;
//! - an item or event that is completely in one chunk is not copied;
//! - an object in protobuf decodes to the same value as the same object in JSON;
//! - a field that is not in the table, for example of a newer server, is skipped.
//!
//! The module can't read objects of a kind that is not in the table.

mod cut;
mod list;
mod watch;

pub(super) use self::cut::cut;
pub(crate) use self::{list::ListSplitter, watch::WatchSplitter};

use std::{borrow::Cow, sync::LazyLock};

use kube_informer_protobuf::{
    Deserializer, Envelope, Error, MessageId, Messages, Missing, Options, WireFields, decode_with,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{Expected, Identity, IdentityMetadata, Named, Unfit};
use crate::{
    json::{Measured, counted},
    limits::PARTS,
};

/// Number of the field `metadata` in the message of every kind.
const METADATA: u32 = 1;

/// Options for decoding an object. The maximum depth is that of `serde_json`.
const OPTIONS: Options = Options {
    depth: 127,
    containers: PARTS,
    values: usize::MAX,
    // A server of another version may not send all fields of the table.
    missing: Missing::Nothing,
};

/// Field numbers in the message of an object's metadata (`metav1.ObjectMeta`).
mod object_meta {
    pub(super) const NAME: u32 = 1;
    pub(super) const NAMESPACE: u32 = 3;
    pub(super) const UID: u32 = 5;
    pub(super) const RESOURCE_VERSION: u32 = 6;
    pub(super) const LABELS: u32 = 11;
    pub(super) const ANNOTATIONS: u32 = 12;
}

/// The message type of one built-in kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schema(MessageId);

impl Schema {
    pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<Self> {
        Messages::builtin().of_kind(api_version, kind).map(Self)
    }
}

/// Returns the envelope of an object, or `None` if there is no envelope or it is invalid.
///
/// An object without an envelope never begins with [`Envelope::MAGIC`].
fn envelope(bytes: &[u8]) -> Option<Envelope<'_>> {
    Envelope::read(bytes.strip_prefix(&Envelope::MAGIC)?).ok()
}

/// Returns the message type of the kind that the envelope of the object names.
///
/// Returns `None` if the object has no valid envelope, or if the kind is not built-in.
pub(super) fn schema(bytes: &[u8]) -> Option<Schema> {
    let envelope = envelope(bytes)?;
    Schema::of_kind(&envelope.api_version, &envelope.kind)
}

/// Returns the message of an object, without the envelope.
fn message(bytes: &[u8]) -> &[u8] {
    envelope(bytes).map_or(bytes, |envelope| envelope.raw)
}

/// Returns the API version and the kind of `PartialObjectMetadata` if `schema` is its message type.
///
/// In a JSON list, items of this kind state their API version and kind. Items of other built-in kinds state
/// neither.
fn metadata_type(schema: Schema) -> Option<(&'static str, &'static str)> {
    const API_VERSION: &str = "meta.k8s.io/v1";
    const KIND: &str = "PartialObjectMetadata";
    static OF_METADATA: LazyLock<Option<Schema>> =
        LazyLock::new(|| Schema::of_kind(API_VERSION, KIND));
    (Some(schema) == *OF_METADATA).then_some((API_VERSION, KIND))
}

/// Compares the object's API version and kind with the expected ones.
///
/// The envelope states both. Without an envelope, the kind is known only if it is `PartialObjectMetadata`.
/// For an unknown kind, the result is [`Named::Nothing`].
pub(super) fn named(schema: Schema, bytes: &[u8], expected: &Expected) -> Named {
    let envelope = envelope(bytes);
    let stated = match &envelope {
        Some(envelope) => Some((&*envelope.api_version, &*envelope.kind)),
        None => metadata_type(schema),
    };
    match stated {
        None | Some(("", "")) => Named::Nothing,
        Some((api_version, kind)) => match expected.compared(api_version, kind) {
            // The position is not needed, because `identity` searches the whole message.
            Named::Expected(_) => Named::Expected(Some(0)),
            other => other,
        },
    }
}

/// Returns `Some(0)` if the object has no valid envelope, and `None` if it has one. List items have none.
///
/// The 0 has no meaning. Only for JSON is the number a byte position.
pub(super) fn begins_with_metadata(bytes: &[u8]) -> Option<usize> {
    // The position is not needed, because `identity` searches the whole message.
    envelope(bytes).is_none().then_some(0)
}

/// Returns the object in an envelope that states the expected API version and kind.
pub(super) fn with_kind(bytes: &[u8], expected: &Expected) -> Vec<u8> {
    Envelope::wrap(&expected.api_version, &expected.kind, message(bytes))
}

/// Reads the object's identity, or returns `None` if the object or its metadata is invalid protobuf.
pub(super) fn identity(bytes: &[u8]) -> Option<Identity<'_>> {
    let mut metadata = IdentityMetadata::default();
    for field in WireFields::new(message(bytes)) {
        let (number, value) = field.ok()?;
        // A message may be split into several fields with the same number. The decoder merges them.
        if number == METADATA {
            read_identity(value.bytes().ok()?, &mut metadata)?;
        }
    }
    Some(Identity { metadata })
}

/// Reads the object's identity, even if the bytes after its metadata are invalid.
pub(super) fn identity_in_place(bytes: &[u8]) -> Option<Identity<'_>> {
    let mut metadata = None;
    for (number, value) in WireFields::new(message(bytes)).map_while(Result::ok) {
        if number == METADATA {
            read_identity(value.bytes().ok()?, metadata.get_or_insert_default())?;
        }
    }
    metadata.map(|metadata| Identity { metadata })
}

fn read_identity<'a>(metadata: &'a [u8], identity: &mut IdentityMetadata<'a>) -> Option<()> {
    for field in WireFields::new(metadata) {
        let (number, value) = field.ok()?;
        match number {
            object_meta::NAME => identity.name = text(value.bytes().ok()?),
            object_meta::NAMESPACE => identity.namespace = Some(text(value.bytes().ok()?)),
            object_meta::UID => identity.uid = text(value.bytes().ok()?),
            object_meta::RESOURCE_VERSION => {
                identity.resource_version = text(value.bytes().ok()?);
            }
            object_meta::LABELS => {
                let (key, value) = entry(value.bytes().ok()?)?;
                identity.labels.0.push((text(key), text(value)));
            }
            _ => {}
        }
    }
    Some(())
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Reads a map entry, the message `{1: key, 2: value}`, and returns the key and the value.
fn entry(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut key, mut text) = (&[][..], &[][..]);
    for field in WireFields::new(bytes) {
        match field.ok()? {
            (1, value) => key = value.bytes().ok()?,
            (2, value) => text = value.bytes().ok()?,
            _ => {}
        }
    }
    Some((key, text))
}

/// Returns whether the annotation `k8s.io/initial-events-end` of a bookmark is `true`.
pub(super) fn ends_initial_events(bytes: &[u8]) -> bool {
    let fields_of = |bytes| WireFields::new(bytes).map_while(Result::ok);
    let metadata = fields_of(message(bytes)).filter(|(number, _)| *number == METADATA);
    let metadata = metadata.filter_map(|(_, value)| value.bytes().ok());
    let annotations = metadata.flat_map(fields_of);
    let mut annotations = annotations.filter(|(number, _)| *number == object_meta::ANNOTATIONS);
    annotations.any(|(_, value)| {
        let entry = value.bytes().ok().and_then(entry);
        entry.is_some_and(|(key, value)| key == b"k8s.io/initial-events-end" && value == b"true")
    })
}

/// Converts the object to the JSON text that a server would send, or to `null` if it is invalid.
pub(super) fn json(schema: Schema, bytes: &[u8]) -> Vec<u8> {
    let value = read(schema, bytes, |deserializer| {
        Value::deserialize(deserializer)
    });
    let text = value.ok().and_then(|value| serde_json::to_vec(&value).ok());
    text.unwrap_or_else(|| b"null".to_vec())
}

pub(super) fn measured<K: DeserializeOwned>(
    schema: Schema,
    bytes: &[u8],
) -> Result<Measured<K>, Unfit> {
    read(schema, bytes, |deserializer| counted(deserializer)).map_err(|error| unfit(&error))
}

/// Calls the closure `read` with a serde deserializer of the object, and returns the closure's result.
///
/// The deserializer also visits `apiVersion` and `kind` if the object has an envelope, or if its type is
/// `PartialObjectMetadata`.
fn read<R>(
    schema: Schema,
    bytes: &[u8],
    read: impl FnMut(Deserializer<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let Schema(message) = schema;
    let Some(envelope) = envelope(bytes) else {
        return decode_with(message, metadata_type(schema), bytes, OPTIONS, read);
    };
    let type_meta = (&*envelope.api_version, &*envelope.kind);
    decode_with(message, Some(type_meta), envelope.raw, OPTIONS, read)
}

fn unfit(error: &Error) -> Unfit {
    let path = error.path();
    Unfit {
        field: if path.is_empty() {
            ".".to_owned()
        } else {
            path
        },
        reason: if error.is_of_type() {
            "a value of another type than expected, or a missing field,".to_owned()
        } else {
            error.reason().to_owned()
        },
    }
}

#[cfg(test)]
mod tests;
