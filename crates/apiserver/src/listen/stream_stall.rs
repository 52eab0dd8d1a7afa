//! Resets an HTTP/2 stream whose peer stops reading the response.
//!
//! A response is sent in chunks of about 64 KiB. A longer object or event is one chunk.
//!
//! Guarantees:
//! - a stream that needs more than [`STALL_TIMEOUT`] to send one chunk is reset, which frees the memory of
//!   the stream;
//! - the other streams of the connection continue;
//! - a slow stream that sends each chunk in time is not reset;
//! - a response's last chunk of at most [`FREE_BYTES`] bytes has no time limit, and can use memory as long as
//!   the connection exists;
//! - a stream without unsent data, such as a watch without events, is never reset.
//!
//! [`connection_stall`](super::connection_stall) does not detect a stalled stream if other streams or pings
//! make progress on the connection.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::body::{Body, BoxError};
use crate::response_budget::FREE_BYTES;

use super::connection_stall::STALL_TIMEOUT;

/// The chunks of one stream that the connection has not written yet.
#[derive(Default)]
struct InFlight {
    /// Number of chunks that hyper or h2 holds.
    chunks: AtomicUsize,
    /// Measures progress: increases when hyper receives a chunk, and when hyper passes the chunk to h2.
    steps: AtomicUsize,
    /// Waker of the task that waits until the connection has written all chunks.
    written: AtomicWaker,
}

tokio::task_local! {
    /// Unsent chunks of the HTTP/2 stream that the current task serves. HTTP/1.1 tasks do not set this value.
    static IN_FLIGHT: Arc<InFlight>;
}

/// A chunk of a response body. The connection drops each chunk after writing it.
pub(super) struct Chunk {
    bytes: Bytes,
    in_flight: Option<Arc<InFlight>>,
}

/// A response body that counts its unsent chunks.
pub(super) struct TrackedBody {
    body: Body,
    in_flight: Option<Arc<InFlight>>,
    /// Length in bytes of the last chunk passed to hyper; `None` if hyper holds no chunk.
    last: Option<usize>,
    ended: bool,
}

/// Runs an HTTP/2 stream, and ends the stream if sending one chunk takes more than [`STALL_TIMEOUT`].
pub(super) struct ResetOnStall<F> {
    stream: Pin<Box<F>>,
    in_flight: Arc<InFlight>,
    steps: usize,
    /// Time at which [`InFlight::steps`] last changed.
    since: Instant,
    /// Timer for the deadline of the current chunk. A timer that fires too early is set again.
    timeout: Option<Pin<Box<Sleep>>>,
}

// === impl InFlight ===

impl InFlight {
    fn is_empty(&self) -> bool {
        self.chunks.load(Ordering::Acquire) == 0
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Completes when the connection has written all chunks of the stream.
    fn poll_written(&self, cx: &Context<'_>) -> Poll<()> {
        self.written.register(cx.waker());
        if self.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

// === impl Chunk ===

impl Chunk {
    fn new(bytes: Bytes, in_flight: Option<&Arc<InFlight>>) -> Chunk {
        if let Some(in_flight) = in_flight {
            in_flight.chunks.fetch_add(1, Ordering::Relaxed);
            in_flight.step();
        }
        Chunk {
            bytes,
            in_flight: in_flight.cloned(),
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if let Some(in_flight) = &self.in_flight
            && in_flight.chunks.fetch_sub(1, Ordering::AcqRel) == 1
        {
            in_flight.written.wake();
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

// === impl TrackedBody ===

impl TrackedBody {
    pub(super) fn new(body: Body) -> TrackedBody {
        TrackedBody {
            body,
            in_flight: IN_FLIGHT.try_with(Arc::clone).ok(),
            last: None,
            ended: false,
        }
    }

    /// Returns whether the body is allowed to report its end to hyper.
    ///
    /// The body must not report its end while a last chunk of more than [`FREE_BYTES`] bytes is unwritten.
    /// Otherwise hyper could end the stream's task, and [`STALL_TIMEOUT`] would not apply to the chunk.
    fn may_end(&self) -> bool {
        let in_flight = self.in_flight.as_ref();
        in_flight.is_none_or(|in_flight| {
            in_flight.is_empty() || self.last.is_some_and(|last| last <= FREE_BYTES)
        })
    }
}

impl http_body::Body for TrackedBody {
    type Data = Chunk;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, BoxError>>> {
        let this = &mut *self;
        if let (Some(_), Some(in_flight)) = (this.last.take(), &this.in_flight) {
            in_flight.step();
        }
        if !this.ended {
            match ready!(this.body.poll_chunk(cx)) {
                Some(Ok(bytes)) => {
                    this.last = Some(bytes.len());
                    let chunk = Chunk::new(bytes, this.in_flight.as_ref());
                    return Poll::Ready(Some(Ok(Frame::data(chunk))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.ended = true,
            }
        }
        if let Some(in_flight) = &this.in_flight {
            ready!(in_flight.poll_written(cx));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.may_end()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl ResetOnStall ===

impl<F: Future<Output = ()>> ResetOnStall<F> {
    pub(super) fn new(stream: F) -> ResetOnStall<F> {
        ResetOnStall {
            stream: Box::pin(stream),
            in_flight: Arc::default(),
            steps: 0,
            since: Instant::now(),
            timeout: None,
        }
    }

    /// Completes when the stream has an unsent chunk and has made no progress for [`STALL_TIMEOUT`].
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let steps = self.in_flight.steps.load(Ordering::Relaxed);
        if steps != self.steps {
            (self.steps, self.since) = (steps, Instant::now());
        }
        if self.in_flight.is_empty() {
            self.timeout = self.timeout.take().filter(|timeout| !timeout.is_elapsed());
            return Poll::Pending;
        }
        let deadline = self.since + STALL_TIMEOUT;
        let timeout = self
            .timeout
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        while timeout.deadline() < deadline {
            ready!(timeout.as_mut().poll(cx));
            timeout.as_mut().reset(deadline);
        }
        timeout.as_mut().poll(cx)
    }
}

impl<F: Future<Output = ()>> Future for ResetOnStall<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let in_flight = Arc::clone(&this.in_flight);
        if IN_FLIGHT
            .sync_scope(in_flight, || this.stream.as_mut().poll(cx))
            .is_ready()
        {
            return Poll::Ready(());
        }
        ready!(this.poll_stalled(cx));
        tracing::debug!("reset a stream that the peer does not read");
        Poll::Ready(())
    }
}
