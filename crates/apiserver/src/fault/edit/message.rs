//! Edits the events of a watch in protobuf. Each event is sent as a frame: four bytes with the length of the
//! event, and then the event.
//!
//! Guarantees: the length of a changed event is correct, so a client can find the next event.

use bytes::Bytes;
use kube_informer_protobuf::{Envelope, WireFields, WireValue, put_bytes, put_varint};

use super::UNKNOWN_TYPE;

/// Number of bytes that contain the length of an event.
pub(super) const LENGTH_BYTES: usize = 4;

/// Number of the field `metadata` of an object.
const METADATA: u32 = 1;

/// Number of the field `annotations` of an object's metadata.
const ANNOTATIONS: u32 = 12;

/// The annotation of the bookmark after a streaming list's initial events, in protobuf.
const END: &[u8] = b"k8s.io/initial-events-end\x12\x04true";

/// An event: its type, and the bytes of its object with the envelope (`runtime.Unknown`).
struct Event<'a> {
    event_type: &'a [u8],
    object: &'a [u8],
}

impl<'a> Event<'a> {
    fn read(frame: &'a [u8]) -> Option<Self> {
        let (mut event_type, mut raw) = (&[][..], &[][..]);
        for field in WireFields::new(frame.get(LENGTH_BYTES..)?) {
            match field.ok()? {
                (1, value) => event_type = value.bytes().ok()?,
                (2, value) => raw = value.bytes().ok()?,
                _ => {}
            }
        }
        let mut fields = WireFields::new(raw);
        let object = fields.find_map(|field| match field {
            Ok((1, WireValue::Bytes(object))) => Some(object),
            _ => None,
        });
        Some(Self {
            event_type,
            object: object?,
        })
    }

    fn frame(&self) -> Bytes {
        let mut raw = Vec::new();
        put_bytes(1, self.object, &mut raw);
        let mut event = Vec::new();
        put_bytes(1, self.event_type, &mut event);
        put_bytes(2, &raw, &mut event);
        framed(&event)
    }
}

fn framed(event: &[u8]) -> Bytes {
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), event].concat().into()
}

/// Returns the length of the first event in `bytes`, including the four bytes that contain its length.
///
/// Returns `None` if `bytes` do not contain the whole event.
pub(in crate::fault) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let (length, event) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    (event.len() >= length).then_some(LENGTH_BYTES + length)
}

pub(super) fn is_bookmark(frame: &[u8]) -> bool {
    Event::read(frame).is_some_and(|event| event.event_type == b"BOOKMARK")
}

pub(super) fn is_end_bookmark(frame: &[u8]) -> bool {
    is_bookmark(frame) && frame.windows(END.len()).any(|part| part == END)
}

/// Returns a valid frame that contains only the first half of the event in `frame`.
pub(super) fn garbled(frame: &[u8]) -> Bytes {
    let event = frame.get(LENGTH_BYTES..).unwrap_or_default();
    framed(&event[..event.len() / 2])
}

/// Returns a copy of `frame` in which the object's annotations are a number instead of a map.
///
/// Returns an unchanged copy if the event can't be read.
pub(super) fn spoilt(frame: &Bytes) -> Bytes {
    spoilt_frame(frame).unwrap_or_else(|| frame.clone())
}

fn spoilt_frame(frame: &[u8]) -> Option<Bytes> {
    let event = Event::read(frame)?;
    let envelope = Envelope::read(event.object.strip_prefix(&Envelope::MAGIC)?).ok()?;
    let mut message = Vec::new();
    for field in WireFields::new(envelope.raw) {
        match field.ok()? {
            (METADATA, value) => put_bytes(METADATA, &spoilt_metadata(value)?, &mut message),
            (number, value) => put_bytes(number, value.bytes().ok()?, &mut message),
        }
    }
    let object = Envelope::wrap(&envelope.api_version, &envelope.kind, &message);
    let event_type = event.event_type;
    let object = &object;
    Some(Event { event_type, object }.frame())
}

/// Returns a copy of `metadata` in which the field `annotations` is a number instead of a map.
///
/// The copy is well-formed protobuf, but a client can't decode it as `ObjectMeta`.
fn spoilt_metadata(metadata: WireValue<'_>) -> Option<Vec<u8>> {
    let mut spoilt = Vec::new();
    let mut is_written = false;
    for field in WireFields::new(metadata.bytes().ok()?) {
        let (number, value) = field.ok()?;
        // The fields are in the order of their numbers.
        if number >= ANNOTATIONS && !std::mem::replace(&mut is_written, true) {
            put_varint(ANNOTATIONS, 0, &mut spoilt);
        }
        match value {
            _ if number == ANNOTATIONS => {}
            WireValue::Bytes(bytes) => put_bytes(number, bytes, &mut spoilt),
            WireValue::Varint(value) => put_varint(number, value, &mut spoilt),
            WireValue::Fixed64(_) | WireValue::Fixed32 | WireValue::Group => return None,
        }
    }
    if !is_written {
        put_varint(ANNOTATIONS, 0, &mut spoilt);
    }
    Some(spoilt)
}

/// Returns an event after replacing the event's type by [`UNKNOWN_TYPE`].
pub(super) fn retyped(frame: &Bytes) -> Bytes {
    match Event::read(frame) {
        Some(event) => Event {
            event_type: UNKNOWN_TYPE,
            ..event
        }
        .frame(),
        None => frame.clone(),
    }
}
