//! Reports metrics of the lists and watches of one reflector.

use tokio::time::Instant;

use super::{Delta, DeltaKind};
use crate::{
    codec::FrameKind,
    metrics::{Meter, Observed, RelistReason, WatchEvent},
    transport::Class,
};

/// Reports the metrics of one reflector, which has one list or one watch at a time.
pub(super) struct ReflectorMeter {
    meter: Meter,
    /// Start time of the current list, which includes its immediate repetitions; `None` without a list or
    /// without metrics.
    listing: Option<Instant>,
    /// Reason of the next list, for the metric of relists; `None` if the next list is the first.
    reason: Option<RelistReason>,
    /// Time at which the bytes of the current events were received; `None` without metrics.
    received: Option<Instant>,
}

impl ReflectorMeter {
    /// Creates the meter. `reason` is the reason of the reflector's first list; `None` for the first
    /// reflector of the source.
    pub(super) fn new(meter: Meter, reason: Option<RelistReason>) -> Self {
        Self {
            meter,
            listing: None,
            reason,
            received: None,
        }
    }

    /// Records that a LIST or a streaming list begins. An immediate repetition of the current list has no
    /// effect.
    pub(super) fn list_begins(&mut self) {
        if self.listing.is_some() {
            return;
        }
        self.listing = self.meter.now();
        if let Some(reason) = self.reason {
            self.meter.observe(|| Observed::Relist(reason));
        }
    }

    /// Records that the store has accepted the current list, or that the list has failed. `items` is the
    /// number of listed objects.
    ///
    /// Has no effect without a current list.
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

    /// Records that the server has not opened a watch, and the class of the error as the reason of the next
    /// list.
    pub(super) fn watch_refused(&mut self, class: Class) {
        self.reason = Some(RelistReason::after_refusal(class));
    }

    /// Records that a probe failed: the server does not know the revision, or did not respond.
    pub(super) fn probe_failed(&mut self, class: Class) {
        self.reason = Some(match class {
            Class::TooLargeResourceVersion | Class::WentBack => RelistReason::WentBack,
            _ => RelistReason::WatchFailed,
        });
    }

    /// Records that a consistency check requested a list, because the store differs from the server.
    pub(super) fn relist_requested(&mut self, reason: RelistReason) {
        self.reason = Some(reason);
    }

    pub(super) fn watch_opened(&self) {
        self.meter.observe(|| Observed::WatchOpened);
    }

    /// Records the end of a watch. `asked` is the time of the watch's request, `events` is the number of
    /// received events, and `error` is the class of the error with which the watch ended, if there was one.
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

    /// Returns the current time; `None` if metrics are disabled.
    pub(super) fn now(&self) -> Option<Instant> {
        self.meter.now()
    }

    /// Sets the time at which the bytes of the next events were received; `None` without metrics.
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

    /// Returns the change with the receive time of the current events. A complete list has no receive time,
    /// because its bytes arrive over a longer time.
    pub(super) fn stamped<K>(&self, mut delta: Delta<K>) -> Delta<K> {
        if !matches!(delta.kind, DeltaKind::ReplacedAll { .. }) {
            delta.received = self.received;
        }
        delta
    }
}
