//! [`ReflectorMeter`]: metrics of the lists and watches of one reflector.

use tokio::time::Instant;

use super::{Delta, DeltaKind};
use crate::{
    codec::FrameKind,
    metrics::{Meter, Observed, RelistReason, WatchEvent},
    transport::Class,
};

/// Metrics of one reflector, which has one list or one watch at a time.
pub(super) struct ReflectorMeter {
    meter: Meter,
    /// Start of the current list, including immediate repetitions.
    listing: Option<Instant>,
    /// Reason of the next list; `None` before the first failure.
    reason: Option<RelistReason>,
    /// Time at which the bytes of the current events were received.
    received: Option<Instant>,
}

impl ReflectorMeter {
    /// Creates the metrics. `reason` is that of the first list; `None` for the first reflector of the source.
    pub(super) fn new(meter: Meter, reason: Option<RelistReason>) -> Self {
        Self {
            meter,
            listing: None,
            reason,
            received: None,
        }
    }

    /// A LIST or a streaming list begins, or is repeated at once.
    pub(super) fn list_begins(&mut self) {
        if self.listing.is_some() {
            return;
        }
        self.listing = self.meter.now();
        if let Some(reason) = self.reason {
            self.meter.observe(|| Observed::Relist(reason));
        }
    }

    /// The store has accepted the current list, or the list has failed. Without a list, this has no effect.
    pub(super) fn list_ended(&mut self, items: usize, accepted: bool) {
        let Some(began) = self.listing.take() else {
            return;
        };
        if !accepted {
            self.reason = Some(RelistReason::ListFailed);
        }
        self.meter.observe(|| Observed::List {
            took: began.elapsed(),
            items,
            accepted,
        });
    }

    /// The server has not opened the watch.
    pub(super) fn watch_refused(&mut self, class: Class) {
        self.reason = Some(RelistReason::after_refusal(class));
    }

    /// A probe failed: the server does not know the revision, or did not respond.
    pub(super) fn probe_failed(&mut self, class: Class) {
        self.reason = Some(match class {
            Class::TooLargeResourceVersion | Class::WentBack => RelistReason::WentBack,
            _ => RelistReason::WatchFailed,
        });
    }

    /// A list was requested, because the store differs from the server.
    pub(super) fn relist_requested(&mut self, reason: RelistReason) {
        self.reason = Some(reason);
    }

    pub(super) fn watch_opened(&self) {
        self.meter.observe(|| Observed::WatchOpened);
    }

    /// The watch has ended, without an error or with one of this class.
    pub(super) fn watch_ended(&mut self, asked: Instant, events: u64, error: Option<Class>) {
        if let Some(class) = error {
            self.reason = Some(RelistReason::after_watch(class));
        }
        self.meter.observe(|| Observed::WatchEnded {
            open_for: asked.elapsed(),
            events,
            short: error == Some(Class::VeryShortWatch),
        });
    }

    /// Returns the current time, if metrics are enabled.
    pub(super) fn now(&self) -> Option<Instant> {
        self.meter.now()
    }

    /// Sets the receive time of the next events.
    pub(super) fn received(&mut self, at: Option<Instant>) {
        self.received = at;
    }

    pub(super) fn event(&self, kind: &FrameKind) {
        self.meter.observe(|| {
            Observed::Event(match kind {
                FrameKind::Added | FrameKind::Item => WatchEvent::Added,
                FrameKind::Modified => WatchEvent::Modified,
                FrameKind::Deleted => WatchEvent::Deleted,
                FrameKind::Bookmark => WatchEvent::Bookmark,
                FrameKind::Error => WatchEvent::Error,
                FrameKind::Unknown(_) => WatchEvent::Unknown,
            })
        });
    }

    /// Sets the receive time of a change, unless it is a list, which is received over some time.
    pub(super) fn stamped<K>(&self, mut delta: Delta<K>) -> Delta<K> {
        if !matches!(delta.kind, DeltaKind::ReplacedAll { .. }) {
            delta.received = self.received;
        }
        delta
    }
}
