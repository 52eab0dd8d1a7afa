//! A stream of HTTP/2 whose peer must take what it is sent.
//!
//! Guarantees:
//! - a stream whose peer takes longer than [`STALLED_MAX`] over one piece of an answer (64 KiB, or an object or event that is longer) is reset, which lets go of all that it holds; other streams of its connection go on, and one that is read more slowly than usual is not reset;
//! - one that has nothing to send, such as a watch of what does not change, waits as long as it likes.
//!
//! The connection can't tell: its peer goes on to read frames, and answers pings.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;

use crate::body::{Body, BoxError};

use super::patience::STALLED_MAX;

/// Who is to do something next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The server: there is no answer yet, or nothing more of it.
    Server,
    /// The peer, which has to make room.
    Peer,
    /// The peer, and the time runs.
    Awaited,
}

tokio::task_local! {
    static TURN: Cell<Turn>;
}

/// An answer that tells the stream it goes out on whose turn it is.
pub(super) struct Attended(Body);

/// A stream, which ends when its peer is awaited for too long.
pub(super) struct Attentive<F> {
    stream: Pin<Box<F>>,
    turn: Turn,
    stalled: Option<Pin<Box<Sleep>>>,
}

fn note(turn: Turn) {
    // On HTTP/1.1 nobody listens: an answer there has a connection of its own.
    let _ = TURN.try_with(|noted| noted.set(turn));
}

impl Attended {
    pub(super) fn new(body: Body) -> Attended {
        note(Turn::Peer);
        Attended(body)
    }
}

impl http_body::Body for Attended {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = Pin::new(&mut self.0).poll_frame(cx);
        note(match frame {
            Poll::Ready(Some(Ok(_))) => Turn::Peer,
            _ => Turn::Server,
        });
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl<F: Future<Output = ()>> Attentive<F> {
    pub(super) fn new(stream: F) -> Attentive<F> {
        Attentive {
            stream: Box::pin(stream),
            turn: Turn::Server,
            stalled: None,
        }
    }
}

impl<F: Future<Output = ()>> Future for Attentive<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let (polled, turn) = TURN.sync_scope(Cell::new(this.turn), || {
            (this.stream.as_mut().poll(cx), TURN.with(Cell::get))
        });
        if polled.is_ready() {
            return polled;
        }
        this.turn = turn;
        match turn {
            Turn::Server => {
                this.stalled = None;
                return Poll::Pending;
            }
            Turn::Peer => {
                this.stalled = Some(Box::pin(tokio::time::sleep(STALLED_MAX)));
                this.turn = Turn::Awaited;
            }
            Turn::Awaited => {}
        }
        let over = this
            .stalled
            .as_mut()
            .map(|stalled| stalled.as_mut().poll(cx));
        if over.is_none_or(|over| over.is_pending()) {
            return Poll::Pending;
        }
        tracing::debug!("a stream that its peer does not read was reset");
        Poll::Ready(())
    }
}
