//! What the project's own fuzz targets reach of the parts that are not public.
//!
//! It guarantees nothing: it is compiled with the feature `__fuzzing` alone, is no part of the API,
//! and changes with any version.
//! Each function takes bytes and gives plain values; what must hold of them is said by the targets.

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

/// What a body came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The type of each event, or nothing, and the bytes of its object, or of the item.
    pub pieces: Vec<(String, Bytes)>,
    /// How it ended, or what is wrong with it.
    pub end: Result<Ended, String>,
}

/// What a body says of itself: all of it of a list, nothing of a watch.
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

/// What an object's bytes came to.
#[derive(Debug)]
pub enum Decoded<K> {
    /// A handle, live or broken.
    Object(Object<K>),
    /// There is nothing to keep it under.
    Unreadable(DecodeError),
    /// It says that it is of another kind.
    OtherKind(String),
}

/// The items of a list that comes in these chunks.
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

/// The events of a watch that comes in these chunks.
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

/// The object of an event, or the item of a list.
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

/// The objects of each source of a saved store, or why it is a cold start; with limits of 4 KiB a line
/// and 16 objects.
///
/// # Errors
/// It can't be used.
pub fn load_store<K>(text: &[u8]) -> Result<Vec<Vec<Object<K>>>, ColdReason>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + 'static,
{
    warm_start::fuzzing::load(text)
}

/// The saved store of these objects; `None` if it would be above a limit.
pub fn save_store<K: Resource + Serialize>(sources: &[Vec<Object<K>>]) -> Option<Vec<u8>> {
    warm_start::fuzzing::save(sources)
}

/// The last line that makes these lines a whole store, as far as its checksum goes.
pub fn end_of_store(lines: &[u8]) -> String {
    warm_start::fuzzing::end(lines)
}

/// What the JSON reader makes of a text, and how many bytes of heap the value takes beyond itself.
///
/// # Errors
/// Those of `serde_json`, as text.
pub fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<(T, usize), String> {
    let measured = json::measured(json).map_err(|error| error.to_string())?;
    Ok((measured.value, measured.heap_bytes))
}

/// The index behind the value that begins here, with what is in its structure, if all of it is here: by blocks
/// where the processor has them.
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
