//! Reports metrics of the lists and watches of one reflector.

use tokio::time::Instant;

use super::{Delta, DeltaKind};
use crate::{
    codec::FrameKind,
    metrics::{Meter, Observed, RelistReason, WatchEvent},
    transport::Class,
};

/// Reports the metrics of one reflector, which has one list or watch at a time.
pub(super) struct ReflectorMeter {
    meter: Meter,
    /// Start time of the first attempt of the list in progress, if metrics are enabled.
    listing: Option<Instant>,
    /// Reason for the next list; `None` if the next list is not a relist.
    reason: Option<RelistReason>,
    /// Receipt time of the event that is being delivered, if metrics are enabled.
    received: Option<Instant>,
}

impl ReflectorMeter {
    /// `reason` is the reason for the first list; `None` if that list is no relist.
    pub(super) fn new(meter: Meter, reason: Option<RelistReason>) -> Self {
        Self {
            meter,
            listing: None,
            reason,
            received: None,
        }
    }

    /// Records the start of a LIST or streaming list.
    ///
    /// Has no effect if a list is in progress, so a retry keeps the start time of the first attempt.
    pub(super) fn list_begins(&mut self) {
        if self.listing.is_some() {
            return;
        }
        self.listing = self.meter.now();
        if let Some(reason) = self.reason {
            self.meter.observe(|| Observed::Relist(reason));
        }
    }

    /// Records the end of a list of `items` objects. `accepted` is whether the store accepted the list.
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

    /// Sets the reason for the next list after a watch or streaming list failed to open.
    pub(super) fn watch_refused(&mut self, class: Class) {
        self.reason = Some(RelistReason::after_refusal(class));
    }

    /// Sets the reason for the next list after a probe has failed with an error of this class.
    ///
    /// A probe is a LIST of one object. The probe also fails if the response shows that the server has gone
    /// back to an earlier state.
    pub(super) fn probe_failed(&mut self, class: Class) {
        self.reason = Some(match class {
            Class::TooLargeResourceVersion | Class::WentBack => RelistReason::WentBack,
            _ => RelistReason::WatchFailed,
        });
    }

    pub(super) fn relist_requested(&mut self, reason: RelistReason) {
        self.reason = Some(reason);
    }

    pub(super) fn watch_opened(&self) {
        self.meter.observe(|| Observed::WatchOpened);
    }

    /// Records the end of a watch: its request time, number of events, and error class.
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

    /// Sets the receipt time of the events that are delivered next; `None` if metrics are disabled.
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

    /// Sets the receipt time of `delta` to the time that [`received`](Self::received) has set.
    pub(super) fn stamped<K>(&self, mut delta: Delta<K>) -> Delta<K> {
        if !matches!(delta.kind, DeltaKind::ReplacedAll { .. }) {
            delta.received = self.received;
        }
        delta
    }
}
