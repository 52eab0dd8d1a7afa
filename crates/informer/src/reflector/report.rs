//! Where a reflector says what it does and what went wrong.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio::time::Instant;

use super::{Error, WatchErrorHandler};
use crate::{
    logs::Ration,
    metrics::{Checked, Meter, Observed, Skipped},
    status::StatusWriter,
};

/// A name to go by, the status, and the user's error handler.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) name: Arc<str>,
    /// What is expected, for people: `apps/v1 Deployment`.
    pub(crate) expects: Arc<str>,
    pub(crate) status: StatusWriter,
    pub(crate) error_handler: Option<WatchErrorHandler>,
    pub(crate) meter: Meter,
    /// Of the informer; none for a reflector that stands alone.
    pub(crate) span: tracing::Span,
}

impl Reporter {
    /// One object was left out or is broken; everything else goes on. It is logged if the ration
    /// allows it.
    pub(crate) fn skipped(&self, error: &Error, ration: &mut Ration) {
        self.log_left_out(ration);
        if ration.line(Instant::now()) {
            self.log_skipped(error);
        }
        self.tell_handler(error);
    }

    pub(crate) fn log_skipped(&self, error: &Error) {
        tracing::warn!(reflector = %self.name, expects = %self.expects, %error, "skipped");
    }

    /// Logs how many were not, if their time is over.
    pub(crate) fn log_left_out(&self, ration: &mut Ration) {
        let skipped = ration.left_out(Instant::now());
        if skipped > 0 {
            tracing::warn!(reflector = %self.name, expects = %self.expects, skipped, "more were skipped within a minute");
        }
    }

    /// Somebody has changed what all share; nothing here can undo it.
    pub(crate) fn mutated(&self, error: &Error) {
        tracing::error!(reflector = %self.name, expects = %self.expects, %error, "mutated");
        self.status.update(|status| status.mutated += 1);
        self.tell_handler(error);
    }

    /// Every error comes through here. A user's handler that panics must not take the reflector with
    /// it.
    pub(crate) fn tell_handler(&self, error: &Error) {
        self.meter.observe(|| match error {
            Error::Transport(error) => Observed::Failed(error.class()),
            Error::Decode(_) => Observed::Skipped(Skipped::Undecodable),
            Error::Key { .. } => Observed::Skipped(Skipped::Keyless),
            Error::UnknownEvent(_) => Observed::Skipped(Skipped::UnknownEvent),
            Error::OtherKind { .. } => Observed::Skipped(Skipped::OtherKind),
            Error::Mutated { .. } => Observed::Skipped(Skipped::Mutated),
            Error::Inconsistent(_) => Observed::Checked(Checked::Different),
        });
        let Some(handler) = &self.error_handler else {
            return;
        };
        if catch_unwind(AssertUnwindSafe(|| handler(error))).is_err() {
            tracing::error!(reflector = %self.name, "the watch error handler panicked");
        }
    }
}
