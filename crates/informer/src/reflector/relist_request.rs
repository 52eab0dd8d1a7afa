//! Defines a channel from a consistency check to a reflector.
//!
//! A consistency check compares the store with the objects on the server. The check uses the channel to
//! request lists from the reflector, and to read whether the reflector has an open watch.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::watch;

use crate::metrics::RelistReason;

/// Sender of the channel through which a consistency check requests lists from a reflector.
pub(crate) struct RelistRequest {
    reason: watch::Sender<Option<RelistReason>>,
    is_watching: Arc<AtomicBool>,
}

/// Receiver of the channel, owned by the reflector. The `Default` value has no sender, so it receives no
/// requests.
#[derive(Clone, Default)]
pub(crate) struct RelistSignal {
    reason: Option<watch::Receiver<Option<RelistReason>>>,
    is_watching: Arc<AtomicBool>,
}

impl RelistRequest {
    pub(crate) fn new() -> (Self, RelistSignal) {
        let (reason, receiver) = watch::channel(None);
        let is_watching = Arc::default();
        let signal = RelistSignal {
            reason: Some(receiver),
            is_watching: Arc::clone(&is_watching),
        };
        let request = Self {
            reason,
            is_watching,
        };
        (request, signal)
    }

    /// Requests a list from the reflector.
    ///
    /// A list in progress fulfills the request, unless that list reuses stored objects with unchanged
    /// revisions.
    pub(crate) fn send(&self, reason: RelistReason) {
        self.reason.send_replace(Some(reason));
    }

    /// Returns whether the reflector has an open watch. If so, the store has accepted a complete list.
    pub(crate) fn is_watching(&self) -> bool {
        self.is_watching.load(Ordering::Acquire)
    }
}

impl RelistSignal {
    /// Waits for a request and returns its reason. Never completes if the channel has no sender.
    ///
    /// # Cancel safety
    /// Dropping the future loses no request.
    pub(super) async fn received(&mut self) -> RelistReason {
        loop {
            let Some(receiver) = &mut self.reason else {
                return std::future::pending().await;
            };
            if receiver.changed().await.is_err() {
                self.reason = None;
            } else if let Some(reason) = *receiver.borrow_and_update() {
                return reason;
            }
        }
    }

    /// Removes the pending request, which the caller must fulfill, and returns its reason.
    pub(super) fn take(&mut self) -> Option<RelistReason> {
        let receiver = self.reason.as_mut()?;
        if !receiver.has_changed().unwrap_or_default() {
            return None;
        }
        *receiver.borrow_and_update()
    }

    pub(super) fn set_watching(&self, is_watching: bool) {
        self.is_watching.store(is_watching, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_request_waits_for_the_reflector_and_a_list_fulfils_it() {
        let (request, mut signal) = RelistRequest::new();
        assert_eq!(signal.received().now_or_never(), None);
        request.send(RelistReason::Inconsistent);
        assert_eq!(
            signal.received().now_or_never(),
            Some(RelistReason::Inconsistent)
        );
        assert_eq!(
            signal.received().now_or_never(),
            None,
            "a request is received once"
        );
        request.send(RelistReason::WentBack);
        let taken = signal.take();
        assert_eq!(
            taken,
            Some(RelistReason::WentBack),
            "a list takes the request"
        );
        assert_eq!(signal.take(), None);
        assert_eq!(
            signal.received().now_or_never(),
            None,
            "a list was made since"
        );
        drop(request);
        assert_eq!(
            signal.received().now_or_never(),
            None,
            "no check is pending"
        );
    }

    #[test]
    fn a_check_reports_whether_the_reflector_watches() {
        let (request, signal) = RelistRequest::new();
        assert!(!request.is_watching());
        signal.set_watching(true);
        assert!(request.is_watching());
        signal.clone().set_watching(false);
        assert!(!request.is_watching());
    }
}
