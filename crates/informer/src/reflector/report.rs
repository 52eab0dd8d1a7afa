//! Reports the failures of a reflector to the log, the metrics, the status and the user's error handler.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Error, WatchErrorHandler, not_served::NotServed};
use crate::{
    logs::LogLimiter,
    metrics::{Checked, Meter, Observed, Skipped},
    panics::confined,
    status::{FailureCause, InformerError, StatusWriter, WaitForSync},
};

#[derive(Clone)]
pub(crate) struct Reporter {
    pub(crate) name: Arc<str>,
    pub(crate) not_served: NotServed,
    /// Description of the expected objects for log lines, such as `apps/v1 Deployment`.
    pub(crate) expects: Arc<str>,
    pub(crate) status: StatusWriter,
    pub(crate) error_handler: Option<WatchErrorHandler>,
    pub(crate) meter: Meter,
    /// The tracing span of the informer; disabled for a standalone reflector.
    pub(crate) span: tracing::Span,
}

impl Reporter {
    /// Returns a future that completes once the store has accepted the first list.
    pub(crate) fn wait_for_sync(&self) -> WaitForSync {
        let (name, expects) = (Arc::clone(&self.name), Arc::clone(&self.expects));
        WaitForSync::informer(name, expects, self.status.reader())
    }

    /// Reports an error of one received object or event.
    ///
    /// `limiter` limits only the log lines. The metrics and the error handler receive every error.
    pub(crate) fn skipped(&self, error: &Error, limiter: &mut LogLimiter) {
        self.log_left_out(limiter);
        if limiter.line(Instant::now()) {
            self.log_skipped(error);
        }
        self.tell_handler(error);
    }

    /// Reports that the process function of a `controller::Config` has failed for an object.
    pub(crate) fn unprocessed(&self, error: &Error, limiter: &mut LogLimiter) {
        let now = Instant::now();
        let left_out = limiter.left_out(now);
        if left_out > 0 {
            tracing::warn!(reflector = %self.name, expects = %self.expects, left_out, "more were not processed within a minute");
        }
        if limiter.line(now) {
            tracing::warn!(reflector = %self.name, expects = %self.expects, %error, "not processed");
        }
        self.tell_handler(error);
    }

    pub(crate) fn log_skipped(&self, error: &Error) {
        tracing::warn!(reflector = %self.name, expects = %self.expects, %error, "skipped");
    }

    /// Logs the number of suppressed lines if the limiter's time window has ended.
    pub(crate) fn log_left_out(&self, limiter: &mut LogLimiter) {
        let skipped = limiter.left_out(Instant::now());
        if skipped > 0 {
            tracing::warn!(reflector = %self.name, expects = %self.expects, skipped, "more were skipped within a minute");
        }
    }

    /// Reports that the program has modified an object in the cache.
    pub(crate) fn mutated(&self, error: &Error) {
        tracing::error!(reflector = %self.name, expects = %self.expects, %error, "mutated");
        self.status.update(|status| status.mutated += 1);
        self.tell_handler(error);
    }

    /// Passes an error to the user's error handler, and counts it in the metrics.
    ///
    /// Errors of the process function are passed to the handler, but are not counted.
    pub(crate) fn tell_handler(&self, error: &Error) {
        let observed = match error {
            Error::Transport(error) => Some(Observed::Failed(error.class())),
            Error::Decode(_) => Some(Observed::Skipped(Skipped::Undecodable)),
            Error::Key { .. } => Some(Observed::Skipped(Skipped::Keyless)),
            Error::UnknownEvent(_) => Some(Observed::Skipped(Skipped::UnknownEvent)),
            Error::OtherKind { .. } => Some(Observed::Skipped(Skipped::OtherKind)),
            Error::Mutated { .. } => Some(Observed::Skipped(Skipped::Mutated)),
            Error::Inconsistent(_) => Some(Observed::Checked(Checked::Different)),
            // The metrics do not count failures of functions that the program provides.
            Error::Process { .. } => None,
        };
        if let Some(observed) = observed {
            self.meter.observe(|| observed);
        }
        let Some(handler) = &self.error_handler else {
            return;
        };
        if confined(|| handler(error)).is_err() {
            tracing::error!(reflector = %self.name, "the watch error handler panicked");
        }
    }

    /// Marks the informer as failed, and returns the failure.
    ///
    /// If the informer has already failed, the earlier failure is kept and returned.
    pub(crate) fn fail(&self, cause: FailureCause) -> Arc<InformerError> {
        let error = InformerError {
            name: Arc::clone(&self.name),
            expects: Arc::clone(&self.expects),
            cause,
        };
        tracing::error!(informer = %self.name, expects = %self.expects, cause = %error.cause, "the informer failed");
        self.status.fail(error)
    }
}
