//! [`Body`] reads a response body chunk by chunk, with a deadline.
//!
//! Guarantees: received bytes are returned even if the deadline has passed. While bytes arrive, a new
//! deadline needs no timer call, because a server may send a chunk for every object.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{ByteStream, Error, Response};
use crate::codec::Codec;

/// A response body, and the timer of its deadline.
pub(crate) struct Body {
    codec: Codec,
    chunks: ByteStream,
    /// The timer that fires at the current deadline, or at an earlier one.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The error when no bytes arrived before the deadline.
#[derive(Debug)]
pub(crate) struct Late;

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl Body {
    /// # Errors
    /// The response has a content type that the library does not support.
    pub(crate) fn new(response: Response) -> Result<Self, Error> {
        Ok(Self {
            codec: Codec::of_content_type(response.content_type())?,
            chunks: response.into_body(),
            timer: None,
        })
    }

    pub(crate) fn codec(&self) -> Codec {
        self.codec
    }

    /// Waits for the next chunk and returns it; returns `None` at the end of the body, or [`Late`] if no
    /// chunk arrives before the deadline.
    ///
    /// # Cancel safety
    /// Dropping the future loses no bytes.
    pub(crate) async fn next(
        &mut self,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<Bytes, Error>>, Late> {
        poll_fn(|cx| self.poll_next(deadline, cx)).await
    }

    fn poll_next(
        &mut self,
        deadline: Option<Instant>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Result<Bytes, Error>>, Late>> {
        if let Poll::Ready(chunk) = self.chunks.as_mut().poll_next(cx) {
            return Poll::Ready(Ok(chunk));
        }
        match deadline {
            Some(deadline) => self.poll_deadline(deadline, cx).map(Err),
            None => Poll::Pending,
        }
    }

    /// Completes when the deadline has passed. Deadlines mostly move later, so the timer is reset only when
    /// it fires.
    fn poll_deadline(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<Late> {
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                self.timer = None;
                return Poll::Ready(Late);
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests;
