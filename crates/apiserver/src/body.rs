//! The body of an answer: bytes in memory, or a stream of them.
//!
//! Guarantees: one type for every answer, which is all that a client of [`crate::Server`] sees; a stream's error ends it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Frame, SizeHint};

/// Any error, as tower and hyper pass them on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer; it yields data frames only.
pub struct Body(Content);

/// An event passes every layer twice per watcher, so there are no more of them than this one.
enum Content {
    /// What is left of a body of known length.
    Full(Bytes),
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>),
    /// A stream that has ended; nobody may poll it again.
    Ended,
}

impl Body {
    /// A body of known length.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        Body(Content::Full(bytes.into()))
    }

    /// A body that ends with its stream, and stays at its end however often it is polled.
    pub(crate) fn stream(
        stream: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    ) -> Body {
        Body(Content::Stream(Box::pin(stream)))
    }

    /// The next piece; `None` at the end.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BoxError>>> {
        let chunk = match &mut self.0 {
            Content::Full(bytes) if bytes.is_empty() => None,
            Content::Full(bytes) => Some(Ok(std::mem::take(bytes))),
            Content::Stream(stream) => {
                let chunk = ready!(stream.as_mut().poll_next(cx));
                if chunk.is_none() {
                    self.0 = Content::Ended;
                }
                chunk
            }
            Content::Ended => None,
        };
        Poll::Ready(chunk)
    }
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
            Content::Stream(_) => false,
            Content::Ended => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
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
