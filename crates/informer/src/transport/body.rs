//! [`Body`] reads a response body chunk by chunk, with an optional deadline for each read.
//!
//! Guarantees: a read returns a chunk that has already arrived, even if the deadline of the read has passed.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use super::{ByteStream, Error, Response};
use crate::codec::Encoding;

pub(crate) struct Body {
    encoding: Encoding,
    chunks: ByteStream,
    /// Timer for the deadline of a read, kept for later reads.
    ///
    /// The timer may fire before the deadline of the current read.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Error of [`Body::next`]: no chunk arrived before the deadline of the read.
#[derive(Debug)]
pub(crate) struct Late;

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

impl Body {
    /// Creates a reader for the body of `response`.
    ///
    /// # Errors
    /// Returns an error if the content type is not supported.
    pub(crate) fn new(response: Response) -> Result<Self, Error> {
        Ok(Self {
            encoding: Encoding::of_content_type(response.content_type())?,
            chunks: response.into_body(),
            timer: None,
        })
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Waits for the next chunk of the body. Returns `None` at the end of the body.
    ///
    /// # Errors
    /// Returns [`Late`] if no chunk arrives before `deadline`. If the body can't be read, returns
    /// `Ok(Some(Err(error)))`.
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

    /// Returns [`Late`] if `deadline` has passed. Otherwise, schedules a wake-up no later than `deadline`.
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
