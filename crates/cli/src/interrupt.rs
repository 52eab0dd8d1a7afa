//! Receives the signals SIGINT (Ctrl-C) and SIGTERM, so that the program can clean up before it exits.
//!
//! Guarantees:
//! - after [`Interrupt::listen`], these signals do not end the process by themselves;
//! - a signal that arrives between two calls of [`Interrupt::next`] is not lost: a later call returns it;
//! - if the same signal arrives several times between two calls, it is returned only once.

use std::{future::Future, io, time::Duration};

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Maximum time for which a future passed to [`Interrupt::unless`] continues after a signal has arrived.
const GRACE: Duration = Duration::from_secs(1);

/// A signal that requests the end of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, sent by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Receiver of the process's SIGINT and SIGTERM signals.
pub(crate) struct Interrupt {
    interrupts: Stream,
    terminations: Stream,
}

impl Signal {
    /// Returns the exit code that shells use for this signal: 128 plus its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

impl Interrupt {
    /// Installs the signal handlers. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the operating system rejects a signal handler.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    ///
    /// # Cancel safety
    /// Cancel safe. If a signal arrives between two calls of this method, the second call returns the signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupts.recv() => Signal::Interrupt,
            _ = self.terminations.recv() => Signal::Terminate,
        }
    }

    /// Returns the result of `work`, unless a signal arrives first.
    ///
    /// After a signal, `work` continues for at most one second before it is dropped.
    ///
    /// # Errors
    /// Returns the signal, even if `work` completes in that second.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Signal> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            signal = self.next() => {
                // The signal is returned even if the work completes.
                let _ = tokio::time::timeout(GRACE, work).await;
                Err(signal)
            }
            done = &mut work => Ok(done),
        }
    }
}
