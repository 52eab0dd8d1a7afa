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
    watch::WatchSplitter,
};

use bytes::{Bytes, BytesMut};

use super::{Class, Error};

/// One object, or one event, in the largest form accepted. An API server takes requests up to 3 MiB
/// and etcd values up to 1.5 MiB, so what is larger than this is no object.
pub(crate) const PIECE_BYTES: usize = 16 << 20;

/// What a list says of itself (`metadata`, `kind`, `apiVersion`) may be at most this large; a
/// continue token is a few hundred bytes.
pub(crate) const LIST_HEAD_BYTES: usize = 1 << 20;

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

fn malformed(what: impl Into<String>) -> Error {
    Error::new(Class::Protocol, what)
}

/// The unfinished piece at the end of the last chunk.
#[derive(Debug, Default)]
struct Carry(BytesMut);

impl Carry {
    /// The whole piece: what was carried, and `rest`. Copies only if something was carried.
    fn complete(&mut self, rest: Bytes, limit: usize) -> Result<Bytes, Error> {
        if self.0.is_empty() {
            return Ok(rest);
        }
        self.extend(&rest, limit)?;
        Ok(self.0.split().freeze())
    }

    fn extend(&mut self, bytes: &[u8], limit: usize) -> Result<(), Error> {
        if self.0.len() + bytes.len() > limit {
            return Err(malformed(format!(
                "a piece of the answer is larger than {limit} bytes"
            )));
        }
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
