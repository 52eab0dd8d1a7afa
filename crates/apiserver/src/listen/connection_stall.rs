//! Closes a connection whose peer stops reading.
//!
//! Guarantees: a write that makes no progress for [`STALL_TIMEOUT`] fails, which closes the connection.
//! A write that makes any progress in this time does not fail.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Maximum time for which a write to a connection may make no progress.
///
/// The value is the age at which the server drops events from its event history. After a longer stall, a
/// watch can't resume because the server has dropped events that the watch needs.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// A connection whose writes fail if they make no progress for [`STALL_TIMEOUT`].
pub(super) struct StallTimeout<I> {
    io: I,
    timeout: Option<Pin<Box<Sleep>>>,
}

impl<I> StallTimeout<I> {
    pub(super) fn new(io: I) -> StallTimeout<I> {
        StallTimeout { io, timeout: None }
    }

    /// Returns `written`, the result of polling a write. If the write has been pending for [`STALL_TIMEOUT`],
    /// returns an error instead.
    fn limit<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.timeout = None;
            return written;
        }
        let timeout = self
            .timeout
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_TIMEOUT)));
        ready!(timeout.as_mut().poll(cx));
        let error = io::Error::new(io::ErrorKind::TimedOut, "the peer has stopped reading");
        Poll::Ready(Err(error))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for StallTimeout<I> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for StallTimeout<I> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.limit(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.limit(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        this.limit(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.io).poll_shutdown(cx);
        this.limit(cx, shut)
    }
}
