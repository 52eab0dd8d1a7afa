//! A stream of HTTP/2 whose peer must take what it is sent.
//!
//! Guarantees:
//! - a stream whose peer takes longer than [`STALLED_MAX`] over one piece of an answer (64 KiB, or an object or event that is longer) is reset, which lets go of all that it holds; other streams of its connection go on, and one that is read more slowly than usual is not reset;
//! - that holds for the last piece too: an answer's end is not told before the wire has all the rest, so the stream is there as long as something of it is. Only one of at most [`FREE_BYTES`] ends with its piece, and may stay as long as the connection;
//! - one of which everything was taken, such as a watch of what does not change, waits as long as it likes.
//!
//! The connection can't tell: its peer goes on to read frames, and answers pings.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::body::{Body, BoxError};
use crate::readers::FREE_BYTES;

use super::patience::STALLED_MAX;

/// What is under way on one stream.
#[derive(Default)]
struct Way {
    /// Pieces that hyper or h2 have, and the wire does not.
    pieces: AtomicUsize,
    /// How often one was given or passed on.
    steps: AtomicUsize,
    /// Who waits for the last piece to be gone.
    ending: AtomicWaker,
}

tokio::task_local! {
    /// That of the stream that is being polled; on HTTP/1.1 there is none: an answer there has a connection of its own.
    static WAY: Arc<Way>;
}

/// A part of an answer, until it is on the wire.
pub(super) struct Piece {
    bytes: Bytes,
    way: Option<Arc<Way>>,
}

/// An answer that knows what of it is under way.
pub(super) struct Attended {
    body: Body,
    way: Option<Arc<Way>>,
    /// The length of the piece that was given last, until the next is asked for: then it was passed on.
    given: Option<usize>,
    ended: bool,
}

/// A stream, which ends when its peer is awaited for too long.
pub(super) struct Attentive<F> {
    stream: Pin<Box<F>>,
    way: Arc<Way>,
    steps: usize,
    /// When the last step was.
    since: Instant,
    /// May run longer than it has to: setting it anew for each piece costs more than a look when it is over.
    stalled: Option<Pin<Box<Sleep>>>,
}

// === impl Way ===

impl Way {
    fn is_clear(&self) -> bool {
        self.pieces.load(Ordering::Acquire) == 0
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until nothing is under way any more.
    fn poll_clear(&self, cx: &Context<'_>) -> Poll<()> {
        self.ending.register(cx.waker());
        if self.is_clear() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

// === impl Piece ===

impl Piece {
    fn new(bytes: Bytes, way: Option<&Arc<Way>>) -> Piece {
        if let Some(way) = way {
            way.pieces.fetch_add(1, Ordering::Relaxed);
            way.step();
        }
        Piece {
            bytes,
            way: way.cloned(),
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(way) = &self.way
            && way.pieces.fetch_sub(1, Ordering::AcqRel) == 1
        {
            way.ending.wake();
        }
    }
}

impl Buf for Piece {
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

// === impl Attended ===

impl Attended {
    pub(super) fn new(body: Body) -> Attended {
        Attended {
            body,
            way: WAY.try_with(Arc::clone).ok(),
            given: None,
            ended: false,
        }
    }

    /// Whether the end needs no waiting for what is under way.
    fn may_end(&self) -> bool {
        let way = self.way.as_ref();
        way.is_none_or(|way| way.is_clear() || self.given.is_some_and(|last| last <= FREE_BYTES))
    }
}

impl http_body::Body for Attended {
    type Data = Piece;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        let this = &mut *self;
        if let (Some(_), Some(way)) = (this.given.take(), &this.way) {
            way.step();
        }
        if !this.ended {
            match ready!(this.body.poll_chunk(cx)) {
                Some(Ok(bytes)) => {
                    this.given = Some(bytes.len());
                    let piece = Piece::new(bytes, this.way.as_ref());
                    return Poll::Ready(Some(Ok(Frame::data(piece))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => this.ended = true,
            }
        }
        if let Some(way) = &this.way {
            ready!(way.poll_clear(cx));
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

// === impl Attentive ===

impl<F: Future<Output = ()>> Attentive<F> {
    pub(super) fn new(stream: F) -> Attentive<F> {
        Attentive {
            stream: Box::pin(stream),
            way: Arc::default(),
            steps: 0,
            since: Instant::now(),
            stalled: None,
        }
    }

    /// Waits until the peer has taken too long over a piece.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let steps = self.way.steps.load(Ordering::Relaxed);
        if steps != self.steps {
            (self.steps, self.since) = (steps, Instant::now());
        }
        if self.way.is_clear() {
            self.stalled = self.stalled.take().filter(|stalled| !stalled.is_elapsed());
            return Poll::Pending;
        }
        let over = self.since + STALLED_MAX;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(over)));
        while stalled.deadline() < over {
            ready!(stalled.as_mut().poll(cx));
            stalled.as_mut().reset(over);
        }
        stalled.as_mut().poll(cx)
    }
}

impl<F: Future<Output = ()>> Future for Attentive<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let way = Arc::clone(&this.way);
        if WAY
            .sync_scope(way, || this.stream.as_mut().poll(cx))
            .is_ready()
        {
            return Poll::Ready(());
        }
        ready!(this.poll_stalled(cx));
        tracing::debug!("a stream that its peer does not read was reset");
        Poll::Ready(())
    }
}
