//! Entry points for the project's fuzz targets into private modules.
//!
//! This module is compiled only with the feature `__fuzzing`. It is not part of the public API and can change
//! in any version. Each function takes bytes and returns plain values. The fuzz targets, not this module, check
//! the properties of these values.

use bytes::Bytes;
use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    codec::{Codec, Frame, FrameKind, ListSplitter, SplitError, WatchSplitter},
    decode::{self, Decoder},
    json,
    object::{DecodeError, Object},
    status::ColdReason,
    transport::Error,
    warm_start,
};

/// The result of splitting a response body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// For each event, its type and the bytes of its object; for each list item, an empty type and the item's
    /// bytes.
    pub pieces: Vec<(String, Bytes)>,
    /// The fields found at the end of the body, or the error text.
    pub end: Result<Ended, String>,
}

/// The metadata of a list; all fields are empty for a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// `kind`.
    pub kind: String,
    /// `apiVersion`.
    pub api_version: String,
    /// `metadata.resourceVersion`.
    pub revision: String,
    /// `metadata.continue`.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`.
    pub remaining: Option<i64>,
}

/// The result of decoding one object.
#[derive(Debug)]
pub enum Decoded<K> {
    /// An object, even if its content does not decode.
    Object(Object<K>),
    /// The bytes contain no name for the object, so a cache cannot store it.
    Unreadable(DecodeError),
    /// The object declares another kind, which is the value.
    OtherKind(String),
}

/// Splits a list that arrives in these chunks into items.
pub fn split_list(chunks: impl IntoIterator<Item = Bytes>) -> Split {
    let mut splitter = ListSplitter::default();
    let mut frames = Vec::new();
    let fed = chunks
        .into_iter()
        .try_for_each(|chunk| splitter.feed(chunk, &mut frames));
    let end = fed.and_then(|()| splitter.finish()).map(|end| Ended {
        kind: end.kind,
        api_version: end.api_version,
        revision: end.resource_version,
        continue_token: end.continue_token,
        remaining: end.remaining_item_count,
    });
    split(frames, end)
}

/// Splits a watch that arrives in these chunks into events.
pub fn split_watch(chunks: impl IntoIterator<Item = Bytes>) -> Split {
    let mut splitter = WatchSplitter::default();
    let mut frames = Vec::new();
    let fed = chunks
        .into_iter()
        .try_for_each(|chunk| splitter.feed(chunk, &mut frames));
    let end = fed.and_then(|()| splitter.finish());
    split(frames, end.map(|()| Ended::default()))
}

fn split(frames: Vec<Frame>, end: Result<Ended, SplitError>) -> Split {
    let kind = |kind| match kind {
        FrameKind::Item => String::new(),
        FrameKind::Added => "ADDED".to_owned(),
        FrameKind::Modified => "MODIFIED".to_owned(),
        FrameKind::Deleted => "DELETED".to_owned(),
        FrameKind::Bookmark => "BOOKMARK".to_owned(),
        FrameKind::Error => "ERROR".to_owned(),
        FrameKind::Unknown(other) => other,
    };
    let pieces = frames.into_iter();
    Split {
        pieces: pieces
            .map(|frame| (kind(frame.kind), frame.bytes))
            .collect(),
        end: end.map_err(|error| Error::from(error).to_string()),
    }
}

/// Decodes the object of an event, or the item of a list.
pub fn decode<K>(dyntype: &K::DynamicType, bytes: &Bytes, is_item: bool) -> Decoded<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    let decoder = Decoder::<K>::new(dyntype, None);
    let encoded = Codec::Json.object(bytes);
    let found = if is_item {
        decoder.item(encoded, None)
    } else {
        decoder.object(encoded, None)
    };
    match found {
        decode::Decoded::Object(object) | decode::Decoded::Known(object) => Decoded::Object(object),
        decode::Decoded::Unreadable(error) => Decoded::Unreadable(error),
        decode::Decoded::OtherKind(other) => Decoded::OtherKind(other.found),
    }
}

/// Loads a saved store and returns the objects of each source.
///
/// The limits are 4 KiB per line and 16 objects.
///
/// # Errors
/// The saved store cannot be used; the error is the reason for a cold start.
pub fn load_store<K>(text: &[u8]) -> Result<Vec<Vec<Object<K>>>, ColdReason>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    warm_start::fuzzing::load(text)
}

/// Returns the saved store of these objects; `None` if it would exceed a limit.
pub fn save_store<K: Resource + Serialize>(sources: &[Vec<Object<K>>]) -> Option<Vec<u8>> {
    warm_start::fuzzing::save(sources)
}

/// Returns a last line with a valid checksum for the given lines of a saved store.
pub fn end_of_store(lines: &[u8]) -> String {
    warm_start::fuzzing::end(lines)
}

/// Reads a JSON text with the JSON reader, and returns the value and its heap size in bytes.
///
/// The heap size excludes the value itself.
///
/// # Errors
/// The text is not valid JSON for the type; the error is the text of the `serde_json` error.
pub fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<(T, usize), String> {
    let measured = json::measured(json).map_err(|error| error.to_string())?;
    Ok((measured.value, measured.heap_bytes))
}

/// Scans the JSON value at the start of the chunks; uses SIMD blocks if the processor has them.
///
/// Returns the index after the value and the number of parts in its structure, or `None` if the value is
/// incomplete.
pub fn scan_json(chunks: &[&[u8]]) -> Option<(usize, usize)> {
    let mut scanner = json::ValueScanner::default();
    let mut at = 0;
    for chunk in chunks {
        if let Some(end) = scanner.scan(chunk) {
            return Some((at + end, scanner.parts()));
        }
        at += chunk.len();
    }
    None
}
