//! The body of an answer: bytes in memory, or a stream of them.
//!
//! Guarantees: one type for every answer, which is all that a client of [`crate::Server`] sees; a stream's error ends it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};

/// Any error, as tower and hyper pass them on.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer; it yields data frames only.
pub struct Body(UnsyncBoxBody<Bytes, BoxError>);

impl Body {
    /// A body of known length.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
        Body(
            Full::new(bytes.into())
                .map_err(|never| match never {})
                .boxed_unsync(),
        )
    }

    /// A body that ends with its stream, and stays at its end however often it is polled.
    pub(crate) fn stream(
        stream: impl Stream<Item = Result<Bytes, BoxError>> + Send + 'static,
    ) -> Body {
        Body(StreamBody::new(stream.map(|chunk| chunk.map(Frame::data)).fuse()).boxed_unsync())
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
