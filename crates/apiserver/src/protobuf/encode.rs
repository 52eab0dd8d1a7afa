//! Encodes objects, lists and watch events as protobuf.
//!
//! Guarantees: the bytes equal those of Kubernetes for an object with the same JSON. The encoding methods
//! return `None` for an object that does not fit the message type, for example because of an unknown field.
//!
//! This module does not select the encoding of a response.

use kube_informer_protobuf::{
    Envelope, MessageId, Messages, encode as encode_message, put_bytes, put_length, put_varint,
};
use serde_json::{Map, Value};

use crate::kinds::Kind;
use crate::status::Status;

/// Media type of objects and lists in protobuf.
pub(crate) const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Media type of watches in protobuf.
pub(crate) const WATCH_CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// API version and kind of an object that is encoded with only its metadata.
const METADATA: (&str, &str) = ("meta.k8s.io/v1", "PartialObjectMetadata");

pub(crate) struct ListMeta<'a> {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<&'a str>,
    pub(crate) remaining: Option<usize>,
}

/// The protobuf message type, the API version and the kind of objects.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    message: MessageId,
    api_version: String,
    kind: String,
}

impl Schema {
    /// Returns the schema of a kind's objects, or `None` for a custom kind.
    pub(crate) fn of_objects(kind: &Kind) -> Option<Schema> {
        if kind.custom {
            return None;
        }
        let api_version = kind.api_version();
        let message = Messages::v1_36().of_kind(&api_version, &kind.kind)?;
        Some(Schema {
            message,
            api_version,
            kind: kind.kind.clone(),
        })
    }

    pub(crate) fn of_metadata() -> Option<Schema> {
        let (api_version, kind) = METADATA;
        Some(Schema {
            message: Messages::v1_36().of_kind(api_version, kind)?,
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })
    }

    /// Returns the protobuf message of an object, or `None` if the object does not fit the message type.
    ///
    /// `json` is the object without `apiVersion` and `kind`.
    pub(crate) fn item(&self, json: &[u8]) -> Option<Vec<u8>> {
        let object: Value = serde_json::from_slice(json).ok()?;
        encode_message(self.message, &object).ok()
    }

    /// Returns an object in an envelope (`runtime.Unknown`), or `None` if the object does not fit the message
    /// type.
    ///
    /// `json` is the object without `apiVersion` and `kind`.
    pub(crate) fn object(&self, json: &[u8]) -> Option<Vec<u8>> {
        Some(self.wrap(&self.item(json)?))
    }

    /// Returns a bookmark's object in an envelope, or `None` if `metadata` does not fit the message type.
    pub(crate) fn bookmark(&self, metadata: Value) -> Option<Vec<u8>> {
        let object = Value::from(Map::from_iter([("metadata".to_owned(), metadata)]));
        let message = encode_message(self.message, &object).ok()?;
        Some(self.wrap(&message))
    }

    fn wrap(&self, message: &[u8]) -> Vec<u8> {
        Envelope::wrap(&self.api_version, &self.kind, message)
    }

    /// Returns the bytes before the items of a list; [`Envelope::END`] must follow the items.
    ///
    /// `items` are the lengths in bytes of the items' messages.
    pub(crate) fn list_head(
        &self,
        list: &ListMeta<'_>,
        items: impl Iterator<Item = usize>,
    ) -> Vec<u8> {
        let mut metadata = Vec::new();
        put_bytes(1, b"", &mut metadata);
        put_bytes(2, list.revision.to_string().as_bytes(), &mut metadata);
        put_bytes(
            3,
            list.continue_token.unwrap_or_default().as_bytes(),
            &mut metadata,
        );
        if let Some(remaining) = list.remaining {
            put_varint(4, remaining as u64, &mut metadata);
        }
        let mut start = Vec::new();
        put_bytes(1, &metadata, &mut start);
        let mut length = start.len();
        let mut head = Vec::new();
        for item in items {
            head.clear();
            item_head(item, &mut head);
            length += head.len() + item;
        }
        let kind = format!("{}List", self.kind);
        [Envelope::head(&self.api_version, &kind, length), start].concat()
    }
}

/// Appends the bytes that precede a list item's message of `length` bytes.
pub(crate) fn item_head(length: usize, out: &mut Vec<u8>) {
    put_length(2, length, out);
}

/// Returns a watch event, preceded by its length in four bytes.
///
/// `object` must already be in its envelope (`runtime.Unknown`).
pub(crate) fn event(event_type: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Vec::with_capacity(object.len() + 8);
    put_bytes(1, object, &mut raw);
    let mut event = Vec::with_capacity(raw.len() + 32);
    put_bytes(1, event_type.as_bytes(), &mut event);
    put_bytes(2, &raw, &mut event);
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), &*event].concat()
}

/// Returns the document `json` in its protobuf envelope.
///
/// Without an `apiVersion` in `json`, the message type is that of the kind in `v1`.
///
/// Returns `None` if `json` has no kind with a protobuf message, or does not fit the message.
pub(crate) fn document(json: &Value) -> Option<Vec<u8>> {
    let api_version = json["apiVersion"].as_str();
    let kind = json["kind"].as_str()?;
    let message = Messages::v1_36().of_kind(api_version.unwrap_or("v1"), kind)?;
    let message = encode_message(message, json).ok()?;
    Some(Envelope::wrap(
        api_version.unwrap_or_default(),
        kind,
        &message,
    ))
}

/// Returns a `Status` in its envelope.
pub(crate) fn status(status: &Status) -> Vec<u8> {
    let message = Messages::v1_36().of_kind("v1", "Status");
    let message = message.and_then(|id| encode_message(id, &status.to_json()).ok());
    Envelope::wrap("v1", "Status", &message.unwrap_or_default())
}
