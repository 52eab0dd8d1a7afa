//! Splits bodies into chunks.
//!
//! Guarantees:
//! - with [`Chunking::Server`], chunks have the boundaries that Go's HTTP server gives the bodies of
//!   kube-apiserver;
//! - the bytes of a body do not depend on the chunking, and a chunk is never empty.
//!
//! Go's server has one buffer per response (`bufio.Writer`): 2,048 bytes over HTTP/1.1
//! (`bufferBeforeChunkingSize` in `net/http`), 4,096 over HTTP/2 (`handlerChunkBytes`). A write that does not
//! fit fills the buffer, which is sent as one chunk. If the remaining bytes are more than the buffer holds,
//! they are sent as a second chunk, without a copy. kube-apiserver writes each JSON event of a watch with one
//! write, so an event larger than the buffer is one chunk, unless smaller events precede it. In lists, and in
//! protobuf, a short write (a comma, a length) precedes each object, so an object is two chunks.

use std::collections::VecDeque;

use bytes::Bytes;
use clap::ValueEnum;

/// How bodies are split into chunks of HTTP/1.1 or DATA frames of HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Chunking {
    /// The chunks of kube-apiserver: one or two per large object.
    #[default]
    Server,
    /// Chunks of 64 KiB and more, several objects each; comparable only with other measurements of this mode.
    Large,
}

/// The buffer of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// The buffer of Go's server, with its size in bytes.
    Go(usize),
    /// All bytes until the chunks are taken.
    Unlimited,
}

/// The part of a body that is written and not sent yet.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Buffer,
    bytes: Vec<u8>,
    /// The end of each complete chunk in `bytes`.
    ends: VecDeque<usize>,
    /// The end of the last write.
    written: usize,
}

// === impl Chunking ===

impl Chunking {
    /// Returns the buffer of a response in this version of HTTP.
    pub(crate) fn buffer(self, version: http::Version) -> Buffer {
        match self {
            Chunking::Server if version == http::Version::HTTP_2 => Buffer::Go(4_096),
            Chunking::Server => Buffer::Go(2_048),
            Chunking::Large => Buffer::Unlimited,
        }
    }
}

// === impl Output ===

impl Output {
    pub(crate) fn new(buffer: Buffer) -> Output {
        Output {
            buffer,
            bytes: Vec::new(),
            ends: VecDeque::new(),
            written: 0,
        }
    }

    /// Returns the number of bytes that are not taken yet.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Reserves capacity for this many more bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Performs one call of Go's `Write`, with the bytes that `put` appends.
    pub(crate) fn write(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        put(&mut self.bytes);
        let Buffer::Go(size) = self.buffer else {
            self.written = self.bytes.len();
            return;
        };
        let end = self.bytes.len();
        let mut sent = self.ends.back().copied().unwrap_or_default();
        loop {
            let room = size - (self.written - sent);
            if end - self.written <= room {
                break;
            }
            let was_empty = self.written == sent;
            sent = if was_empty { end } else { self.written + room };
            self.written = sent;
            self.ends.push_back(sent);
        }
        self.written = end;
    }

    /// Performs Go's `Flush`: ends a chunk after the buffered bytes.
    pub(crate) fn flush(&mut self) {
        let sent = self.ends.back().copied().unwrap_or_default();
        if self.written > sent {
            self.ends.push_back(self.written);
        }
    }

    /// Moves all complete chunks to `chunks`. An unlimited buffer is flushed first.
    pub(crate) fn take(&mut self, chunks: &mut VecDeque<Bytes>) {
        if self.buffer == Buffer::Unlimited {
            self.flush();
        }
        let Some(sent) = self.ends.back().copied() else {
            return;
        };
        let rest = self.bytes.split_off(sent);
        let mut bytes = Bytes::from(std::mem::replace(&mut self.bytes, rest));
        let mut start = 0;
        for end in self.ends.drain(..) {
            chunks.push_back(bytes.split_to(end - start));
            start = end;
        }
        self.written -= sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(output: &mut Output) -> Vec<usize> {
        let mut chunks = VecDeque::new();
        output.take(&mut chunks);
        chunks.iter().map(Bytes::len).collect()
    }

    fn write(output: &mut Output, bytes: usize) {
        output.write(|out| out.resize(out.len() + bytes, b'x'));
    }

    #[test]
    fn a_write_larger_than_the_buffer_is_one_chunk() {
        let mut output = Output::new(Buffer::Go(2_048));
        write(&mut output, 9_000);
        write(&mut output, 2_049);
        assert_eq!(lengths(&mut output), [9_000, 2_049]);
        write(&mut output, 2_048);
        assert!(lengths(&mut output).is_empty(), "it fits into the buffer");
    }

    #[test]
    fn a_short_write_before_a_long_one_makes_it_two_chunks() {
        let mut output = Output::new(Buffer::Go(2_048));
        for _ in 0..2 {
            write(&mut output, 1);
            write(&mut output, 8_000);
        }
        assert_eq!(lengths(&mut output), [2_048, 5_953, 2_048, 5_953]);
    }

    #[test]
    fn buffered_bytes_start_the_next_chunk() {
        let mut output = Output::new(Buffer::Go(2_048));
        write(&mut output, 1_500);
        write(&mut output, 1_500);
        assert_eq!(lengths(&mut output), [2_048]);
        write(&mut output, 1_500);
        assert_eq!(lengths(&mut output), [2_048]);
        output.flush();
        assert_eq!(lengths(&mut output), [404]);
        output.flush();
        assert!(lengths(&mut output).is_empty());
    }

    #[test]
    fn without_a_limit_everything_is_one_chunk() {
        let mut output = Output::new(Buffer::Unlimited);
        for _ in 0..3 {
            write(&mut output, 9_000);
        }
        assert_eq!(lengths(&mut output), [27_000]);
        assert!(lengths(&mut output).is_empty());
    }
}
