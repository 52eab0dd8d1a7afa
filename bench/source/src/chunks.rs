//! Splits response bodies into chunks.
//!
//! Guarantees:
//! - With [`Chunking::Server`], the chunks have the same boundaries as those of Go's HTTP server for the same
//!   sequence of writes.
//! - The chunking does not change the bytes of a body, and a chunk is never empty.
//!
//! Go's HTTP server has one buffer per response (`bufio.Writer`). The buffer has 2,048 bytes over HTTP/1.1
//! (`bufferBeforeChunkingSize` in `net/http`) and 4,096 bytes over HTTP/2 (`handlerChunkBytes`). The buffer
//! collects small writes, and the server sends each full buffer as one chunk. If the buffer is empty and the
//! remaining bytes of a write do not fit into it, the server sends these bytes as one chunk.

use std::collections::VecDeque;

use bytes::Bytes;
use clap::ValueEnum;

/// The rule for splitting a body into HTTP/1.1 chunks or HTTP/2 DATA frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Chunking {
    /// The same chunks as kube-apiserver sends.
    #[default]
    Server,
    /// Larger chunks than kube-apiserver sends, usually with several objects.
    ///
    /// The chunks of a list, and of the initial events of a watch, have at least 64 KiB, except the last. A
    /// chunk of later events has at most eight events. Benchmark results with this rule can't be compared to
    /// results with the rule `Server`.
    Large,
}

/// The buffer that collects written bytes until they form a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffer {
    /// A buffer that behaves like the buffer of Go's HTTP server, with this size in bytes.
    Go(usize),
    /// A buffer without a maximum size; [`Output::take`] returns all written bytes as one chunk.
    Unlimited,
}

/// The unsent bytes of a response body, divided into chunks.
#[derive(Debug)]
pub(crate) struct Output {
    buffer: Buffer,
    bytes: Vec<u8>,
    /// End of each complete chunk, in ascending order, as an offset in the field `bytes`.
    ends: VecDeque<usize>,
    /// Offset in `bytes` of the end of the most recent write.
    written: usize,
}

// === impl Chunking ===

impl Chunking {
    /// Returns the buffer for a response over the HTTP version `version`.
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

    /// Returns the number of written bytes that [`take`](Self::take) has not yet moved out.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Appends to the body the bytes that `put` produces.
    ///
    /// With [`Buffer::Go`], the chunks are those that Go's HTTP server sends if these bytes are written with
    /// one call of `Write`.
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

    /// Ends the current chunk, as `Flush` in Go. Does nothing if the chunk is empty.
    pub(crate) fn flush(&mut self) {
        let sent = self.ends.back().copied().unwrap_or_default();
        if self.written > sent {
            self.ends.push_back(self.written);
        }
    }

    /// Moves all complete chunks to the end of `chunks`.
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
