//! SIGINT (Ctrl-C) and SIGTERM.
//!
//! Guarantees: after [`Interrupt::listen`] these signals no longer end the program; each is delivered once, also if it
//! arrived before the call of [`Interrupt::next`].

use std::{future::Future, io, time::Duration};

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// Maximum time for unfinished work after a signal.
const GRACE: Duration = Duration::from_secs(1);

/// A signal that the program has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Receives SIGINT and SIGTERM.
pub(crate) struct Interrupt {
    interrupts: Stream,
    terminations: Stream,
}

impl Signal {
    /// Exit code that a shell reports for this signal: 128 plus its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

impl Interrupt {
    /// Starts to receive signals; must be called inside a runtime.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next signal.
    ///
    /// # Cancel safety
    /// Dropping the future loses no signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            biased;
            _ = self.interrupts.recv() => Signal::Interrupt,
            _ = self.terminations.recv() => Signal::Terminate,
        }
    }

    /// Runs some work until it completes or a signal arrives.
    ///
    /// After a signal the work has one second to complete, so that the result of a pending request is known.
    ///
    /// # Errors
    /// Returns the signal.
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
