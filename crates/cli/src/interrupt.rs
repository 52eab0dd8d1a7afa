//! Ctrl-C, and the other way to ask a program to end.
//!
//! Guarantees: from [`Interrupt::listen`] on no signal of these ends the program by itself; each is told once, also if it came while nobody asked.

use std::{future::Future, io, time::Duration};

use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// How long work that must not be cut off in the middle may still take.
const GRACE: Duration = Duration::from_secs(1);

/// Which signal came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Hears of signals.
pub(crate) struct Interrupt {
    interrupts: Stream,
    terminations: Stream,
}

impl Signal {
    /// What a shell reports of a program that this signal ended: 128 and its number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

impl Interrupt {
    /// Begins to listen; inside a runtime.
    ///
    /// # Errors
    /// The system refuses a handler.
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

    /// Does some work unless a signal comes first; then the work has one second to end, so that a request under way is answered and what it makes is known.
    ///
    /// # Errors
    /// The signal that came.
    pub(crate) async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Signal> {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            signal = self.next() => {
                // Whether it ends or not, the signal is what counts.
                let _ = tokio::time::timeout(GRACE, work).await;
                Err(signal)
            }
            done = &mut work => Ok(done),
        }
    }
}
