//! The body of an answer while it is read.
//!
//! Guarantees: bytes that have come are given out before a deadline is looked at; and a deadline costs no timer
//! as long as bytes come, because a server may send a chunk for every object.

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

/// A body and its timer.
pub(crate) struct Body {
    codec: Codec,
    chunks: ByteStream,
    /// Goes off at the deadline that it was set for, or before the one of now.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Nothing came until the deadline.
#[derive(Debug)]
pub(crate) struct Late;

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl Body {
    /// # Errors
    /// A content type that is not supported.
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

    /// The next chunk, or `None` at the end; [`Late`] if there is a deadline and none came until then.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
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

    /// Deadlines mostly move away, so the timer stays as it is until it goes off.
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
