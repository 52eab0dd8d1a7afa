//! Receives request bodies, and limits their size, the time to receive them, and their memory.
//!
//! Guarantees:
//! - A body of more than [`BODY_BYTES_MAX`] is rejected with 413, even if `Content-Length` states less.
//! - A body that is incomplete after [`BODY_TIMEOUT`] is rejected with 504.
//! - The total size of all request bodies in memory is at most [`BODIES_BYTES_MAX`]. A request that exceeds
//!   this maximum is rejected with 429.
//! - The memory of a body does not depend on the number of its chunks.
//!
//! The module does not decompress bodies.

use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::BoxError;
use crate::status::ApiError;

/// Maximum size of a request body in bytes (`MaxRequestBodyBytes` in Kubernetes' `server/config.go`).
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Maximum time to receive a request body (`RequestTimeout` in Kubernetes' `server/config.go`).
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum size in bytes of all request bodies together: 85 bodies of [`BODY_BYTES_MAX`].
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Receives the request bodies of one server, and limits the total size of the bodies in memory.
pub(crate) struct BodyLimit {
    held_bytes: AtomicUsize,
    bytes_max: usize,
}

/// A complete request body, which counts towards the [`BodyLimit`] until it is dropped.
#[derive(Default)]
pub(crate) struct Received {
    bytes: BytesMut,
    _reservation: Option<Reservation>,
}

/// The bytes of one request body that count towards the [`BodyLimit`] until this value is dropped.
struct Reservation {
    limit: Arc<BodyLimit>,
    bytes: usize,
}

impl Default for BodyLimit {
    fn default() -> BodyLimit {
        BodyLimit {
            held_bytes: AtomicUsize::new(0),
            bytes_max: BODIES_BYTES_MAX,
        }
    }
}

impl BodyLimit {
    /// Receives the complete body of a request.
    ///
    /// # Errors
    ///
    /// Returns an error if the body exceeds a limit, or is not received completely and in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future frees the received bytes.
    pub(crate) async fn receive<B>(self: &Arc<BodyLimit>, body: B) -> Result<Received, ApiError>
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let mut reading = pin!(self.read(body));
        // A body that is complete at the first poll, as without a socket, needs no timer.
        let first = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx)));
        match first.await {
            Poll::Ready(received) => received,
            Poll::Pending => tokio::time::timeout(BODY_TIMEOUT, reading)
                .await
                .unwrap_or_else(|_| Err(ApiError::timed_out())),
        }
    }

    async fn read<B>(self: &Arc<BodyLimit>, body: B) -> Result<Received, ApiError>
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let mut reservation = Reservation {
            limit: Arc::clone(self),
            bytes: 0,
        };
        let mut body = pin!(Limited::new(body, BODY_BYTES_MAX));
        // The chunks are copied to one buffer, because each chunk is a slice of a larger buffer and would
        // keep it.
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            if let Ok(mut chunk) = frame.into_data() {
                reservation.grow(chunk.remaining())?;
                while chunk.has_remaining() {
                    let length = chunk.chunk().len();
                    bytes.extend_from_slice(chunk.chunk());
                    chunk.advance(length);
                }
            }
        }
        Ok(Received {
            bytes,
            _reservation: Some(reservation),
        })
    }
}

fn unreadable(error: &BoxError) -> ApiError {
    if error.is::<LengthLimitError>() {
        return ApiError::body_too_large();
    }
    ApiError::bad_request(format!("the body could not be read: {error}"))
}

// === impl Received ===

impl Deref for Received {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

// === impl Reservation ===

impl Reservation {
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let before = self.limit.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > self.limit.bytes_max {
            return Err(ApiError::too_many_requests().retry_in(1));
        }
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.limit
            .held_bytes
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::stream::{self, StreamExt as _};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};
    use tokio::time::Instant;

    use super::*;

    fn limit(bytes_max: usize) -> Arc<BodyLimit> {
        Arc::new(BodyLimit {
            held_bytes: AtomicUsize::new(0),
            bytes_max,
        })
    }

    fn body(text: &'static str) -> Full<Bytes> {
        Full::from(text)
    }

    fn frame(bytes: &'static [u8]) -> Result<Frame<Bytes>, BoxError> {
        if bytes.is_empty() {
            return Err("an empty chunk".into());
        }
        Ok(Frame::data(Bytes::from_static(bytes)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_incomplete_after_a_minute_is_rejected() {
        let limit = Arc::new(BodyLimit::default());
        let dripping = stream::repeat(()).then(async |()| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            frame(b"x")
        });
        let silent = stream::iter([frame(b"{")]).chain(stream::pending());
        let begun = Instant::now();
        let (dripping, silent) = tokio::join!(
            limit.receive(StreamBody::new(Box::pin(dripping))),
            limit.receive(StreamBody::new(silent))
        );
        for error in [dripping.err(), silent.err()] {
            let error = error.expect("it is rejected");
            assert_eq!((error.code(), error.reason()), (504, "Timeout"));
        }
        assert_eq!(begun.elapsed(), BODY_TIMEOUT);
        assert_eq!(limit.held_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn received_bodies_count_until_they_are_dropped() {
        let limit = limit(10);
        let held = limit.receive(body("12345678")).await.unwrap();
        assert_eq!(&*held, b"12345678");
        let refused = limit.receive(body("123")).await.err();
        let refused = refused.expect("the limit is reached");
        assert_eq!(
            (refused.code(), refused.status().retry_after()),
            (429, Some(1))
        );
        assert!(limit.receive(body("12")).await.is_ok());
        drop(held);
        assert!(limit.receive(body("1234567890")).await.is_ok());
        let bytes_max = BodyLimit::default().bytes_max;
        assert!(bytes_max >= 64 * BODY_BYTES_MAX, "for 64 of the largest");
    }

    #[tokio::test]
    async fn the_memory_of_a_body_does_not_depend_on_its_chunks() {
        let pieces = stream::repeat_with(|| frame(b"x")).take(100_000);
        let received = Arc::new(BodyLimit::default())
            .receive(StreamBody::new(pieces))
            .await
            .unwrap();
        assert_eq!(received.len(), 100_000);
        assert!(received.bytes.capacity() <= 2 * 100_000);
    }

    #[test]
    fn a_complete_body_needs_no_runtime() {
        let limit = Arc::new(BodyLimit::default());
        let mut reading = pin!(limit.receive(body("x")));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(reading.as_mut().poll(&mut cx).is_ready());
    }
}
