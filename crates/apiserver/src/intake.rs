//! What arrives in bodies, and how much of it is held.
//!
//! Guarantees:
//! - one body is at most [`BODY_BYTES_MAX`], whatever its length claims to be (413), and is there within [`BODY_TIMEOUT`] (504): one that drips or has no end is given up;
//! - all bodies that are being read or worked on are at most [`BODIES_BYTES_MAX`]; what goes over that is to come again (429);
//! - a body takes no more memory for coming in many pieces;
//! - nothing is decompressed: there is nothing that grows.

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

/// The largest body of a request (`MaxRequestBodyBytes` in `server/config.go`).
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// How long a peer may take over a body: what Kubernetes gives a request that does not watch (`RequestTimeout` in `server/config.go`).
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of all bodies that are held at a time: 85 of the largest, or 200,000 of the usual size.
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Takes bodies in.
pub(crate) struct Intake {
    held_bytes: AtomicUsize,
    bytes_max: usize,
}

/// A body that has arrived; it has its room until it is dropped.
#[derive(Default)]
pub(crate) struct Received {
    bytes: BytesMut,
    _room: Option<Room>,
}

/// What a body takes.
struct Room {
    intake: Arc<Intake>,
    bytes: usize,
}

impl Default for Intake {
    fn default() -> Intake {
        Intake {
            held_bytes: AtomicUsize::new(0),
            bytes_max: BODIES_BYTES_MAX,
        }
    }
}

impl Intake {
    /// Reads a body to its end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives back what was held.
    pub(crate) async fn receive<B>(self: &Arc<Intake>, body: B) -> Result<Received, ApiError>
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let mut reading = pin!(self.read(body));
        // What is there at once, as in process, needs no timer.
        let first = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx)));
        match first.await {
            Poll::Ready(received) => received,
            Poll::Pending => tokio::time::timeout(BODY_TIMEOUT, reading)
                .await
                .unwrap_or_else(|_| Err(ApiError::timed_out())),
        }
    }

    async fn read<B>(self: &Arc<Intake>, body: B) -> Result<Received, ApiError>
    where
        B: http_body::Body,
        B::Error: Into<BoxError>,
    {
        let mut room = Room {
            intake: Arc::clone(self),
            bytes: 0,
        };
        let mut body = pin!(Limited::new(body, BODY_BYTES_MAX));
        // One buffer: pieces by themselves would each hold what they were cut from.
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            if let Ok(mut piece) = frame.into_data() {
                room.grow(piece.remaining())?;
                while piece.has_remaining() {
                    let length = piece.chunk().len();
                    bytes.extend_from_slice(piece.chunk());
                    piece.advance(length);
                }
            }
        }
        Ok(Received {
            bytes,
            _room: Some(room),
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

// === impl Room ===

impl Room {
    fn grow(&mut self, bytes: usize) -> Result<(), ApiError> {
        let before = self.intake.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > self.intake.bytes_max {
            return Err(ApiError::too_many_requests().retry_in(1));
        }
        Ok(())
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.intake
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

    fn intake(bytes_max: usize) -> Arc<Intake> {
        Arc::new(Intake {
            held_bytes: AtomicUsize::new(0),
            bytes_max,
        })
    }

    fn body(text: &'static str) -> Full<Bytes> {
        Full::from(text)
    }

    fn frame(bytes: &'static [u8]) -> Result<Frame<Bytes>, BoxError> {
        if bytes.is_empty() {
            return Err("a piece has something in it".into());
        }
        Ok(Frame::data(Bytes::from_static(bytes)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_drips_or_never_ends_is_given_up_after_a_minute() {
        let intake = Arc::new(Intake::default());
        let dripping = stream::repeat(()).then(async |()| {
            tokio::time::sleep(Duration::from_secs(1)).await;
            frame(b"x")
        });
        let silent = stream::iter([frame(b"{")]).chain(stream::pending());
        let begun = Instant::now();
        let (dripping, silent) = tokio::join!(
            intake.receive(StreamBody::new(Box::pin(dripping))),
            intake.receive(StreamBody::new(silent))
        );
        for error in [dripping.err(), silent.err()] {
            let error = error.expect("it is refused");
            assert_eq!((error.code(), error.reason()), (504, "Timeout"));
        }
        assert_eq!(begun.elapsed(), BODY_TIMEOUT);
        assert_eq!(intake.held_bytes.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn bodies_that_are_held_leave_no_room_for_others_until_they_are_dropped() {
        let intake = intake(10);
        let held = intake.receive(body("12345678")).await.unwrap();
        assert_eq!(&*held, b"12345678");
        let refused = intake.receive(body("123")).await.err();
        let refused = refused.expect("there is no room");
        assert_eq!(
            (refused.code(), refused.status().retry_after()),
            (429, Some(1))
        );
        assert!(intake.receive(body("12")).await.is_ok());
        drop(held);
        assert!(intake.receive(body("1234567890")).await.is_ok());
        let bytes_max = Intake::default().bytes_max;
        assert!(
            bytes_max >= 64 * BODY_BYTES_MAX,
            "for as many of the largest"
        );
    }

    #[tokio::test]
    async fn a_body_in_many_pieces_takes_what_it_would_in_one() {
        let pieces = stream::repeat_with(|| frame(b"x")).take(100_000);
        let received = Arc::new(Intake::default())
            .receive(StreamBody::new(pieces))
            .await
            .unwrap();
        assert_eq!(received.len(), 100_000);
        assert!(received.bytes.capacity() <= 2 * 100_000);
    }

    #[test]
    fn a_body_that_is_there_needs_no_runtime() {
        let intake = Arc::new(Intake::default());
        let mut reading = pin!(intake.receive(body("x")));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(reading.as_mut().poll(&mut cx).is_ready());
    }
}
