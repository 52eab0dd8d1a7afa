//! Splits the body of a list response into its items ([`ListSplitter`]).
//!
//! Guarantees:
//! - the splitter buffers at most one item or field;
//! - an item or a field that is too large is rejected as soon as its length is received.
//!
//! The module does not decode the items.

use bytes::Bytes;
use kube_informer_protobuf::{Envelope, WireError, WireFields, WireValue};

use super::{
    super::{
        Codec, Frame, FrameKind, ListEnd, SplitError,
        frame::{Carry, Limit, invalid_list as invalid},
    },
    Schema,
};
use crate::limits::one_line;

/// Splits the body of a list response into its items while the body is received.
///
/// The items must not be used before [`ListSplitter::finish`] succeeds. After four magic bytes, the body is
/// `{1: {1: apiVersion, 2: kind}, 2: {1: metadata, 2: item, 2: item, …}}`, in terms of protobuf field
/// numbers.
#[derive(Debug, Default)]
pub(crate) struct ListSplitter {
    state: State,
    /// Number of bytes of the list that are still to be received; `None` outside the list.
    list_left: Option<usize>,
    carry: Carry,
    head: Head,
    head_bytes: usize,
    limit: Limit,
}

/// The position of a [`ListSplitter`] in the body of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The next byte is one of the four magic bytes before the envelope.
    #[default]
    Magic,
    /// The next byte is part of the tag of a field.
    Tag,
    /// The next byte is part of the varint after the tag: a length, or the value of the field.
    Varint(Tag),
    /// The next byte is part of the field's value. The `usize` is the length of the whole value in bytes.
    Value(Tag, usize),
}

/// Tag of a protobuf field: the number of the field and its wire type.
type Tag = u64;

/// Protobuf wire type of varints.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Tag of field 1 with the wire type `BYTES`.
const FIRST: Tag = 1 << 3 | BYTES;
/// Tag of field 2 with the wire type `BYTES`.
const SECOND: Tag = 2 << 3 | BYTES;

#[derive(Debug, Default)]
struct Head {
    kind: String,
    api_version: String,
    /// Message type of the items, or `None` if this library has no protobuf definition of the kind.
    schema: Option<Schema>,
    metadata: Option<Bytes>,
    list_seen: bool,
}

/// Maximum length in bytes of the list's kind in an error message.
const KIND_BYTES: usize = 64;

fn not_protobuf(error: WireError) -> SplitError {
    invalid(format!("is not valid protobuf: {error}"))
}

impl ListSplitter {
    pub(crate) fn new(object_bytes: usize) -> Self {
        Self {
            limit: Limit::Object(object_bytes),
            ..Self::default()
        }
    }

    /// Reads one chunk of the body, and appends the items that end in the chunk to `items`.
    ///
    /// # Errors
    /// Returns an error if the body is not a supported protobuf list or exceeds a limit; the splitter is then
    /// unusable.
    pub(crate) fn feed(
        &mut self,
        mut chunk: Bytes,
        items: &mut Vec<Frame>,
    ) -> Result<(), SplitError> {
        // An empty value is complete although no byte follows.
        while !chunk.is_empty() || matches!(self.state, State::Value(_, 0)) {
            match self.state {
                State::Magic => {
                    let missing = Envelope::MAGIC.len() - self.carry.bytes().len();
                    let Some(magic) = self.part(missing, Limit::Envelope, &mut chunk)? else {
                        return Ok(());
                    };
                    if magic != Envelope::MAGIC[..] {
                        return Err(invalid(
                            "is labelled as protobuf, and does not begin as protobuf",
                        ));
                    }
                    self.state = State::Tag;
                }
                State::Tag => {
                    if let Some(tag) = self.varint(&mut chunk)? {
                        self.begin(tag)?;
                    }
                }
                State::Varint(tag) => {
                    if let Some(value) = self.varint(&mut chunk)? {
                        self.measured(tag, value)?;
                    }
                }
                State::Value(tag, left) => self.value(tag, left, &mut chunk, items)?,
            }
        }
        Ok(())
    }

    /// Ends the splitting, and returns the fields of the list except its items.
    ///
    /// # Errors
    /// Returns an error if the list is incomplete or invalid; the caller must then discard all items.
    pub(crate) fn finish(self) -> Result<ListEnd, SplitError> {
        let is_complete = self.state == State::Tag
            && self.list_left.is_none()
            && self.carry.is_empty()
            && self.head.list_seen;
        if !is_complete {
            let what = "the response to the list ended before the end of the list";
            return Err(SplitError::EndedEarly(what));
        }
        self.head.items()?;
        let metadata = self.head.metadata.unwrap_or_default();
        let mut end = list_end(&metadata).map_err(not_protobuf)?;
        end.kind = self.head.kind;
        end.api_version = self.head.api_version;
        end.checked()
    }

    /// Returns the buffered bytes followed by the next `missing` bytes of `chunk`.
    ///
    /// If `chunk` has fewer bytes than `missing`, buffers the whole chunk and returns `None`.
    fn part(
        &mut self,
        missing: usize,
        limit: Limit,
        chunk: &mut Bytes,
    ) -> Result<Option<Bytes>, SplitError> {
        if chunk.len() < missing {
            self.carry.extend(chunk, limit)?;
            chunk.clear();
            return Ok(None);
        }
        self.carry
            .complete(chunk.split_to(missing), limit)
            .map(Some)
    }

    /// Subtracts `bytes` from the remaining length of the list; does nothing outside the list.
    fn received(&mut self, bytes: usize) -> Result<(), SplitError> {
        if let Some(left) = &mut self.list_left {
            *left = left
                .checked_sub(bytes)
                .ok_or_else(|| invalid("has a field that is longer than the list"))?;
        }
        Ok(())
    }

    /// Reads a varint, or buffers its first bytes and returns `None` if the chunk ends inside it.
    fn varint(&mut self, chunk: &mut Bytes) -> Result<Option<u64>, SplitError> {
        let length = chunk.iter().position(|byte| *byte < 0x80);
        let length = length.map_or(chunk.len(), |last| last + 1);
        self.received(length)?;
        let is_complete = chunk[length - 1] < 0x80;
        let part = chunk.split_to(length);
        if !is_complete {
            self.carry.extend(&part, Limit::Envelope)?;
            // The longest varint has ten bytes.
            return if self.carry.bytes().len() < 10 {
                Ok(None)
            } else {
                Err(not_protobuf(WireError::Overflow))
            };
        }
        let whole = self.carry.complete(part, Limit::Envelope)?;
        WireFields::new(&whole)
            .varint()
            .map(Some)
            .map_err(not_protobuf)
    }

    /// Selects the next state after the tag of a field.
    fn begin(&mut self, tag: Tag) -> Result<(), SplitError> {
        let length = match tag & 7 {
            VARINT | BYTES => {
                self.state = State::Varint(tag);
                return Ok(());
            }
            FIXED64 => 8,
            FIXED32 => 4,
            other => return Err(not_protobuf(WireError::WireType(other))),
        };
        self.received(length)?;
        self.state = State::Value(tag, length);
        Ok(())
    }

    /// Selects the next state after the varint that follows `tag`.
    ///
    /// If `tag` has the wire type [`VARINT`], the varint `value` is the value of the field, and is ignored.
    /// If `tag` has the wire type [`BYTES`], `value` is the length of the field's value in bytes.
    fn measured(&mut self, tag: Tag, value: u64) -> Result<(), SplitError> {
        if tag & 7 == VARINT {
            self.state = State::Tag;
            self.end_list();
            return Ok(());
        }
        let length = usize::try_from(value).unwrap_or(usize::MAX);
        if tag == SECOND && self.list_left.is_none() {
            if self.head.list_seen {
                return Err(invalid("has two lists"));
            }
            self.head.list_seen = true;
            self.list_left = Some(length);
            self.state = State::Tag;
            self.end_list();
            return Ok(());
        }
        let is_item = tag == SECOND;
        let limit = if is_item { self.limit } else { Limit::Envelope };
        limit.check(length)?;
        if !is_item {
            self.head_bytes = self.head_bytes.saturating_add(length);
            Limit::Envelope.check(self.head_bytes)?;
        }
        self.received(length)?;
        self.state = State::Value(tag, length);
        Ok(())
    }

    fn value(
        &mut self,
        tag: Tag,
        length: usize,
        chunk: &mut Bytes,
        items: &mut Vec<Frame>,
    ) -> Result<(), SplitError> {
        let is_in_list = self.list_left.is_some();
        let limit = if tag == SECOND {
            self.limit
        } else {
            Limit::Envelope
        };
        let missing = length - self.carry.bytes().len();
        let Some(value) = self.part(missing, limit, chunk)? else {
            return Ok(());
        };
        match (is_in_list, tag) {
            (false, FIRST) => self.head.read(&value).map_err(not_protobuf)?,
            (true, FIRST) => self.head.metadata = Some(value),
            (true, SECOND) => items.push(Frame {
                kind: FrameKind::Item,
                codec: Codec::Protobuf(self.head.items()?),
                bytes: value,
            }),
            _ => {}
        }
        self.state = State::Tag;
        self.end_list();
        Ok(())
    }

    fn end_list(&mut self) {
        self.list_left = self.list_left.filter(|left| *left > 0);
    }
}

impl Head {
    /// Reads the list's API version and kind from the message `{1: apiVersion, 2: kind}`.
    fn read(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for field in WireFields::new(bytes) {
            match field? {
                (1, value) => self.api_version = text(value)?,
                (2, value) => self.kind = text(value)?,
                _ => {}
            }
        }
        let item = self.kind.strip_suffix("List");
        self.schema = item.and_then(|kind| Schema::of_kind(&self.api_version, kind));
        Ok(())
    }

    /// Returns the message type of the items.
    ///
    /// # Errors
    /// Returns an error if this library has no protobuf definition of the list's kind.
    fn items(&self) -> Result<Schema, SplitError> {
        self.schema.ok_or_else(|| {
            let kind = one_line(&self.kind, KIND_BYTES);
            invalid(format!(
                "is not a list of a kind that the library knows as protobuf (kind {kind:?})"
            ))
        })
    }
}

/// Reads the metadata of the list from the message `{2: resourceVersion, 3: continue, …}`.
fn list_end(metadata: &[u8]) -> Result<ListEnd, WireError> {
    let mut end = ListEnd::default();
    for field in WireFields::new(metadata) {
        match field? {
            (2, value) => end.resource_version = text(value)?,
            (3, value) => {
                end.continue_token = Some(text(value)?).filter(|token| !token.is_empty());
            }
            (4, WireValue::Varint(count)) => end.remaining_item_count = Some(count.cast_signed()),
            _ => {}
        }
    }
    Ok(end)
}

fn text(value: WireValue<'_>) -> Result<String, WireError> {
    value
        .bytes()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
