//! Splits a body at its seams, without knowing what the pieces are.
//!
//! [`ListSplitter`] finds the items of a list, [`WatchSplitter`] the events of a watch. Both take
//! chunks as the network brings them, with borders anywhere, hand out whole pieces that borrow the
//! chunk where they can, and hold at most one unfinished piece. Every size that a peer decides has
//! a limit here.

mod list;
mod value;
mod watch;

pub(crate) use self::{
    list::{ListEnd, ListSplitter},
    value::{parts, value_end},
    watch::WatchSplitter,
};

use bytes::{Bytes, BytesMut};

use super::{Class, Error};
use crate::limits::{LIST_ENVELOPE_BYTES, Limits};

/// One piece of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    /// The object's JSON; of an unknown type of event, whatever stood there.
    pub(crate) bytes: Bytes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// An item of a list.
    Item,
    Added,
    Modified,
    Deleted,
    Bookmark,
    /// The server reports a failure inside the stream; the bytes are a `Status`.
    Error,
    Unknown(String),
}

impl FrameKind {
    /// Whether it is about one object.
    pub(crate) fn is_of_object(&self) -> bool {
        match self {
            Self::Item | Self::Added | Self::Modified | Self::Deleted => true,
            Self::Bookmark | Self::Error | Self::Unknown(_) => false,
        }
    }
}

fn malformed(what: impl Into<String>) -> Error {
    Error::new(Class::Protocol, what)
}

/// How large a piece may be, in bytes.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// An item of a list, or an event of a watch.
    Object(usize),
    /// What a list says of itself.
    Envelope,
}

impl Limit {
    fn check(self, bytes: usize) -> Result<(), Error> {
        let (what, limit) = match self {
            Self::Object(limit) => ("an object (Limits::object_bytes)", limit),
            Self::Envelope => ("what a list says of itself", LIST_ENVELOPE_BYTES),
        };
        if bytes > limit {
            return Err(malformed(format!("{what} is larger than {limit} bytes")));
        }
        Ok(())
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::Object(Limits::default().object_bytes)
    }
}

/// The unfinished piece at the end of the last chunk.
#[derive(Debug, Default)]
struct Carry(BytesMut);

impl Carry {
    /// The whole piece: what was carried, and `rest`. Copies only if something was carried.
    fn complete(&mut self, rest: Bytes, limit: Limit) -> Result<Bytes, Error> {
        if self.0.is_empty() {
            limit.check(rest.len())?;
            return Ok(rest);
        }
        self.extend(&rest, limit)?;
        Ok(self.0.split().freeze())
    }

    fn extend(&mut self, bytes: &[u8], limit: Limit) -> Result<(), Error> {
        limit.check(self.0.len() + bytes.len())?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests;
