//! Defines the functions through which the project's fuzz targets call parsers in private modules.
//!
//! This module is compiled only with the feature `__fuzzing`. It is not part of the public API and can change
//! in any version. The fuzz targets, not this module, check the returned values.

use bytes::Bytes;
use kube_core::Resource;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    codec::{Codec, Encoding, Frame, FrameKind, SplitError},
    decode::{self, Decoder},
    json,
    object::{DecodeError, Object},
    status::ColdReason,
    transport::Error,
    warm_start,
};

/// The list items or watch events that a response body was split into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// One pair per list item or watch event: the event's type and the bytes of its object. The type of a
    /// list item is empty.
    pub pieces: Vec<(String, Bytes)>,
    /// The fields of the list except the items, or the error text if the body could not be split to its end.
    ///
    /// For a watch, the fields are empty.
    pub end: Result<Ended, String>,
}

/// The result of splitting a response body to its end without an error ([`Split::end`]).
///
/// For a list, it contains the fields of the list except the items. For a watch, all fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The field `kind` of the list.
    pub kind: String,
    /// The field `apiVersion` of the list.
    pub api_version: String,
    /// The field `metadata.resourceVersion` of the list.
    pub revision: String,
    /// The field `metadata.continue` of the list; `None` if the field is missing.
    pub continue_token: Option<String>,
    /// The field `metadata.remainingItemCount` of the list; `None` if the field is missing.
    pub remaining: Option<i64>,
}

/// The result of decoding the JSON of one object.
#[derive(Debug)]
pub enum Decoded<K> {
    /// The object that a cache would store. If the content does not decode, the object is broken: it has a
    /// name and an error, but no content.
    Object(Object<K>),
    /// The object's name, namespace or revision can't be read or is invalid, so a cache cannot store the
    /// object. The value is the error.
    Unreadable(DecodeError),
    /// The object has another kind than the type `K`. The value contains the API version and kind of the
    /// object.
    OtherKind(String),
}

/// Splits the body of a list response into its items. `chunks` are the consecutive parts of the body.
pub fn split_list(chunks: impl IntoIterator<Item = Bytes>) -> Split {
    let mut splitter = Encoding::Json.list_splitter(crate::limits::Limits::default().object_bytes);
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

/// Splits the body of a watch response into its events. `chunks` are the consecutive parts of the body.
pub fn split_watch(chunks: impl IntoIterator<Item = Bytes>) -> Split {
    let mut splitter = Encoding::Json.watch_splitter(crate::limits::Limits::default().object_bytes);
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

/// Decodes the JSON of one object.
///
/// The object is an item of a list if `is_item` is true, and the object of a watch event otherwise.
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

/// Parses a saved store (the warm-start file of an informer), and returns its objects. The result contains
/// one list of objects per source. A source is one list and watch of the informer.
///
/// # Errors
/// Returns the reason why an informer rejects the saved store. To keep fuzzing fast, this function also
/// rejects lines of more than 4 KiB and stores with more than 16 objects, although an informer accepts them.
pub fn load_store<K>(text: &[u8]) -> Result<Vec<Vec<Object<K>>>, ColdReason>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    warm_start::fuzzing::load(text)
}

/// Serializes the objects of each source (one list and watch of an informer) to a saved store.
///
/// Returns `None` if an object can't be serialized, or if the saved store would exceed a limit. The limits
/// are 4 KiB per line, 64 KiB in total and 16 objects.
pub fn save_store<K: Resource + Serialize>(sources: &[Vec<Object<K>>]) -> Option<Vec<u8>> {
    warm_start::fuzzing::save(sources)
}

/// Returns a valid last line for a saved store whose other lines are `lines`. The last line contains the
/// checksum of the other lines.
pub fn end_of_store(lines: &[u8]) -> String {
    warm_start::fuzzing::end(lines)
}

/// Decodes JSON with this library's JSON reader, and returns the value and its heap size in bytes.
///
/// The heap size excludes the memory of the value itself.
///
/// # Errors
/// Returns the text of the `serde_json` error if `json` is not valid JSON for the type.
pub fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<(T, usize), String> {
    let measured = json::measured(json).map_err(|error| error.to_string())?;
    Ok((measured.value, measured.heap_bytes))
}

/// Finds the end of the JSON value that starts at the first byte of the chunks.
///
/// Returns the index of the first byte after the value, and the number of JSON objects and arrays in the
/// value. The index counts from the first byte of the first chunk. Returns `None` if the value is incomplete.
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
