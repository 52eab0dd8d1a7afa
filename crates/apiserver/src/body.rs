//! Defines [`Body`], the body of a response: bytes in memory, or a stream of bytes.
//!
//! Guarantees: every response of [`crate::Server`] has a [`Body`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

use crate::response_budget::{FREE_BYTES, Reserved, ResponseBudget};
use crate::status::ApiError;

/// Approximate length in bytes of each chunk of a response body.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// An error of any type, as tower and hyper represent it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Body of an HTTP response from the server. The body contains only data frames and no trailers.
pub struct Body(Content);

/// Content of a [`Body`]: bytes in memory, or a stream of bytes.
enum Content {
    /// Unsent bytes of a body with a known length.
    Full(Bytes),
    /// Bytes in memory that count towards the [`ResponseBudget`].
    ///
    /// After the budget evicts the bytes, reading the body fails.
    Held {
        content: Reserved<Bytes>,
        /// Number of bytes that have not been sent yet.
        left: usize,
    },
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>),
    /// A stream that has ended and must not be polled again.
    Ended,
}

impl Body {
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        Body(Content::Full(bytes.into()))
    }

    /// Counts the bytes of an in-memory body towards `budget`.
    ///
    /// A body of at most [`FREE_BYTES`] bytes does not count.
    ///
    /// # Errors
    ///
    /// Returns a 429 error if the budget is exhausted.
    pub(crate) fn held(self, budget: &Arc<ResponseBudget>) -> Result<Body, ApiError> {
        match self.0 {
            Content::Full(bytes) if bytes.len() > FREE_BYTES => {
                let left = bytes.len();
                let content = budget.hold_bytes(bytes)?;
                Ok(Body(Content::Held { content, left }))
            }
            content => Ok(Body(content)),
        }
    }

    pub(crate) fn stream(
        stream: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    ) -> Body {
        Body(Content::Stream(Box::pin(stream)))
    }

    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let chunk = match &mut self.0 {
            Content::Full(bytes) if bytes.is_empty() => None,
            Content::Full(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Held { left: 0, .. } | Content::Ended => None,
            Content::Held { content, left } => {
                let chunk = content.with(next_piece).map_err(BoxError::from);
                *left -= chunk.as_ref().map_or(0, Bytes::len);
                Some(chunk)
            }
            Content::Stream(stream) => {
                let chunk = ready!(stream.as_mut().poll_next(cx));
                if chunk.is_none() {
                    self.0 = Content::Ended;
                }
                chunk
            }
        };
        Poll::Ready(chunk)
    }
}

/// Removes and returns at most [`CHUNK_BYTES`] bytes from the start of `rest`.
pub(crate) fn next_piece(rest: &mut Bytes) -> Bytes {
    let length = rest.len().min(CHUNK_BYTES);
    // A slice would keep all bytes of `rest` in memory.
    let piece = Bytes::copy_from_slice(&rest.split_to(length));
    if rest.is_empty() {
        *rest = Bytes::new();
    }
    piece
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let chunk = ready!(self.poll_chunk(cx));
        Poll::Ready(chunk.map(|chunk| chunk.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Full(bytes) => bytes.is_empty(),
            Content::Held { left, .. } => *left == 0,
            Content::Stream(_) => false,
            Content::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Held { left, .. } => SizeHint::with_exact(*left as u64),
            Content::Stream(_) => SizeHint::default(),
            Content::Ended => SizeHint::with_exact(0),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use http_body::Body as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_long_body_is_sent_in_chunks_and_can_be_evicted() {
        let text = Bytes::from(vec![b'x'; 10 * CHUNK_BYTES + 1]);
        let budget = Arc::new(ResponseBudget::of(2 * text.len() / 8));
        let held = || Body::full(text.clone()).held(&budget);
        let mut cx = Context::from_waker(Waker::noop());
        let mut first = held().unwrap();
        assert_eq!(first.size_hint().exact(), Some(text.len() as u64));
        let mut pieces = Vec::new();
        while let Poll::Ready(Some(piece)) = first.poll_chunk(&mut cx) {
            pieces.push(piece.unwrap().len());
            assert_eq!(first.is_end_stream(), pieces.len() == 11);
        }
        assert_eq!(pieces, [vec![CHUNK_BYTES; 10], vec![1]].concat());
        let refused = held().expect_err("the first holds the budget");
        assert_eq!(refused.code(), 429);
        let short = Body::full(vec![0; FREE_BYTES]);
        assert!(short.held(&budget).is_ok(), "a short body needs no slot");
        let longer = Body::full(vec![0; FREE_BYTES + 1]);
        assert!(longer.held(&budget).is_ok(), "some slots are free");
        tokio::time::advance(Duration::from_secs(61)).await;
        let _second = held().expect("the first is evicted");
        drop(first);
        assert!(held().is_err(), "the second holds the budget");
    }
}
