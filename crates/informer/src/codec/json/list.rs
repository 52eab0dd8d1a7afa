//! Splits the body of a list response into its items ([`ListSplitter`]).
//!
//! Guarantees:
//! - the splitter buffers at most one item or field;
//! - an item or a field that is too large is rejected.
//!
//! The module does not decode the items.

use std::borrow::Cow;

use bytes::{Buf, Bytes};
use serde::Deserialize;

use super::{
    super::{
        Codec, Frame, FrameKind, ListEnd, SplitError,
        frame::{Carry, Limit, invalid_list as invalid, malformed},
    },
    is_space,
};
use crate::{json::ValueScanner, limits::one_line};

/// Splits the body of a list response into the elements of `items` while the body is received.
///
/// The items must not be used before [`ListSplitter::finish`] succeeds.
#[derive(Debug, Default)]
pub(crate) struct ListSplitter {
    state: State,
    carry: Carry,
    scanner: ValueScanner,
    key: Vec<u8>,
    head: Head,
    head_bytes: usize,
    /// Number of skipped bytes of the current value, which belongs to an unknown field.
    skipped_bytes: usize,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    /// The next byte is the quote or the comma before a key, or the closing brace of the list.
    Key,
    /// The next byte is inside a key.
    KeyText,
    /// The next byte is the colon after a key.
    Colon,
    /// The next byte is the first byte of a key's value.
    Value,
    /// The next byte is inside a value that the splitter buffers, such as `metadata` or `kind`.
    Kept,
    /// The next byte is inside the value of an unknown key.
    Skipped,
    /// The next byte is the first of an item, the comma before an item, or the closing bracket.
    Items,
    Item,
    Done,
}

#[derive(Debug, Default)]
struct Head {
    kind: String,
    api_version: String,
    metadata: Option<Bytes>,
    items_seen: bool,
}

impl Head {
    /// Returns an error if the response is a `Table` of the API group `meta.k8s.io`.
    fn refuse_table(&self) -> Result<(), SplitError> {
        // Custom resources of another group may have the kind `Table`.
        if self.kind == "Table" && self.api_version.starts_with("meta.k8s.io/") {
            return Err(malformed(
                "the server responded with a Table instead of a list",
            ));
        }
        Ok(())
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta<'a> {
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    r#continue: Option<String>,
    remaining_item_count: Option<i64>,
}

/// Number of bytes to which the splitter truncates a key. All keys that the splitter recognizes are shorter.
const KEY_BYTES: usize = 64;

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
    /// Returns an error if the body is not a JSON object with an array `items`, or if an item or another
    /// field of the list is too large. The splitter must not be used after an error.
    pub(crate) fn feed(
        &mut self,
        mut chunk: Bytes,
        items: &mut Vec<Frame>,
    ) -> Result<(), SplitError> {
        while !chunk.is_empty() {
            let byte = chunk[0];
            let inside = matches!(
                self.state,
                State::KeyText | State::Kept | State::Skipped | State::Item
            );
            if !inside && is_space(byte) {
                chunk.advance(1);
                continue;
            }
            match (self.state, byte) {
                (State::Start, b'{') | (State::Key, b',') | (State::Items, b']') => {
                    self.advance(State::Key, &mut chunk);
                }
                (State::Key, b'"') => {
                    self.key.clear();
                    self.scanner = ValueScanner::default();
                    self.state = State::KeyText;
                }
                (State::Key, b'}') => self.advance(State::Done, &mut chunk),
                (State::KeyText, _) => self.key_text(&mut chunk),
                (State::Colon, b':') => self.advance(State::Value, &mut chunk),
                (State::Value, _) => self.value(&mut chunk)?,
                (State::Kept | State::Skipped, _) => self.value_text(&mut chunk)?,
                (State::Items, b',') => self.advance(State::Items, &mut chunk),
                (State::Items, _) => {
                    self.scanner = ValueScanner::default();
                    self.state = State::Item;
                }
                (State::Item, _) => self.item(&mut chunk, items)?,
                (State::Start | State::Key | State::Colon | State::Done, _) => {
                    return Err(invalid("is not a single JSON object"));
                }
            }
        }
        Ok(())
    }

    /// Returns the fields of the list other than `items`. Must be called at the end of the body.
    ///
    /// # Errors
    /// Returns an error if the list is incomplete or its fields are invalid. All items must then be
    /// discarded.
    pub(crate) fn finish(self) -> Result<ListEnd, SplitError> {
        if self.state != State::Done {
            let what = "the response to the list ended before the end of the list";
            return Err(SplitError::EndedEarly(what));
        }
        let meta = match &self.head.metadata {
            Some(bytes) => serde_json::from_slice::<ListMeta<'_>>(bytes)
                .map_err(|_| invalid("has invalid metadata"))?,
            None => ListMeta::default(),
        };
        let revision = meta.resource_version.as_deref().unwrap_or_default();
        self.head.refuse_table()?;
        if !self.head.items_seen {
            let kind = one_line(&self.head.kind, KEY_BYTES);
            return Err(invalid(format!("has no items (kind {kind:?})")));
        }
        let end = ListEnd {
            resource_version: revision.to_owned(),
            continue_token: meta.r#continue,
            remaining_item_count: meta.remaining_item_count,
            kind: self.head.kind,
            api_version: self.head.api_version,
        };
        end.checked()
    }

    fn advance(&mut self, state: State, chunk: &mut Bytes) {
        self.state = state;
        chunk.advance(1);
    }

    fn key_text(&mut self, chunk: &mut Bytes) {
        let end = self.scanner.scan(chunk);
        let part = chunk.split_to(end.unwrap_or(chunk.len()));
        let room = KEY_BYTES.saturating_sub(self.key.len());
        self.key.extend_from_slice(&part[..part.len().min(room)]);
        if end.is_some() {
            self.state = State::Colon;
        }
    }

    fn value(&mut self, chunk: &mut Bytes) -> Result<(), SplitError> {
        self.scanner = ValueScanner::default();
        self.skipped_bytes = 0;
        // Keys are compared as raw text with their quotes. No known key has an escape, so a key with one is
        // unknown.
        match self.key.as_slice() {
            b"\"items\"" if self.head.items_seen => {
                return Err(invalid("has the field items twice"));
            }
            b"\"items\"" => {
                self.head.items_seen = true;
                if chunk[0] == b'[' {
                    self.advance(State::Items, chunk);
                } else {
                    self.state = State::Kept;
                }
            }
            b"\"metadata\"" | b"\"kind\"" | b"\"apiVersion\"" => self.state = State::Kept,
            _ => self.state = State::Skipped,
        }
        Ok(())
    }

    fn value_text(&mut self, chunk: &mut Bytes) -> Result<(), SplitError> {
        let end = self.scanner.scan(chunk);
        let part = chunk.split_to(end.unwrap_or(chunk.len()));
        if self.state == State::Kept {
            self.head_bytes += part.len();
            if end.is_none() {
                self.carry.extend(&part, Limit::Envelope)?;
            } else {
                let value = self.carry.complete(part, Limit::Envelope)?;
                self.keep(value)?;
            }
            Limit::Envelope.check(self.head_bytes)?;
        } else {
            self.skip(part.len())?;
        }
        if end.is_some() {
            self.state = State::Key;
        }
        Ok(())
    }

    /// Counts `bytes` skipped bytes of an unknown field's value.
    ///
    /// # Errors
    /// Returns an error if the value exceeds the maximum size of an object.
    fn skip(&mut self, bytes: usize) -> Result<(), SplitError> {
        self.skipped_bytes += bytes;
        if self.limit.check(self.skipped_bytes).is_ok() {
            return Ok(());
        }
        self.head.refuse_table()?;
        let field = one_line(&String::from_utf8_lossy(&self.key), KEY_BYTES);
        Err(invalid(format!(
            "has an unknown field {field} above the size limit; to allow it, raise Limits::object_bytes"
        )))
    }

    fn keep(&mut self, value: Bytes) -> Result<(), SplitError> {
        let text = |value: &Bytes| {
            serde_json::from_slice(value)
                .map_err(|_| invalid("has a kind or an apiVersion that is not a string"))
        };
        match self.key.as_slice() {
            b"\"kind\"" => self.head.kind = text(&value)?,
            b"\"apiVersion\"" => self.head.api_version = text(&value)?,
            // `null` means an empty list. Any other value is an error: an empty list would empty the cache.
            b"\"items\"" if value == "null" => {}
            b"\"items\"" => return Err(invalid("has items that are not an array")),
            _ => self.head.metadata = Some(value),
        }
        Ok(())
    }

    fn item(&mut self, chunk: &mut Bytes, items: &mut Vec<Frame>) -> Result<(), SplitError> {
        let Some(end) = self.scanner.scan(chunk) else {
            self.carry.extend(chunk, self.limit)?;
            chunk.clear();
            return Ok(());
        };
        if end == 0 && self.carry.is_empty() {
            return Err(invalid("has an empty item"));
        }
        let bytes = self.carry.complete(chunk.split_to(end), self.limit)?;
        items.push(Frame {
            kind: FrameKind::Item,
            codec: Codec::Json,
            bytes,
        });
        self.state = State::Items;
        Ok(())
    }
}
