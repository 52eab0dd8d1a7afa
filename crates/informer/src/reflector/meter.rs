//! Reports metrics of the lists and watches of one reflector.

use tokio::time::Instant;

use super::{Delta, DeltaKind};
use crate::{
    codec::FrameKind,
    metrics::{Meter, Observed, RelistReason, WatchEvent},
    transport::Class,
};

/// Reports the metrics of one reflector. A reflector has one list or one watch in progress at a time.
pub(super) struct ReflectorMeter {
    meter: Meter,
    /// Time at which the first request of the list in progress was sent.
    ///
    /// If the list is repeated at once after a failure, this time does not change. `None` if no list is in
    /// progress or metrics are disabled.
    listing: Option<Instant>,
    /// Reason for the next list, for the metrics; `None` if the next list is the first one of the source.
    reason: Option<RelistReason>,
    /// Time at which the bytes of the current event were received; `None` if metrics are disabled.
    ///
    /// The current event is the one that the reflector is delivering to the store.
    received: Option<Instant>,
}

impl ReflectorMeter {
    /// Creates the meter of a reflector. `reason` is the reason for the reflector's first list; `None` for
    /// the first reflector of the source.
    pub(super) fn new(meter: Meter, reason: Option<RelistReason>) -> Self {
        Self {
            meter,
            listing: None,
            reason,
            received: None,
        }
    }

    /// Records that a LIST or a streaming list begins. Has no effect if a list is already in progress.
    ///
    /// A list that is repeated at once after a failure is still the same list in progress.
    pub(super) fn list_begins(&mut self) {
        if self.listing.is_some() {
            return;
        }
        self.listing = self.meter.now();
        if let Some(reason) = self.reason {
            self.meter.observe(|| Observed::Relist(reason));
        }
    }

    /// Records the end of the list in progress. `items` is the number of listed objects. `accepted` is
    /// whether the store has accepted the list. Has no effect if no list is in progress.
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

    /// Records that a watch or a streaming list was not opened, because of an error of this class.
    ///
    /// The request was rejected, the connection failed, or no response headers arrived in time. The class
    /// determines the reason for the next list.
    pub(super) fn watch_refused(&mut self, class: Class) {
        self.reason = Some(RelistReason::after_refusal(class));
    }

    /// Records that a probe has failed with an error of this class. The class determines the reason for the
    /// next list.
    ///
    /// A probe is a request that checks whether the server has gone back to an earlier state.
    pub(super) fn probe_failed(&mut self, class: Class) {
        self.reason = Some(match class {
            Class::TooLargeResourceVersion | Class::WentBack => RelistReason::WentBack,
            _ => RelistReason::WatchFailed,
        });
    }

    /// Records that a consistency check has requested a list. `reason` becomes the reason for the next list.
    pub(super) fn relist_requested(&mut self, reason: RelistReason) {
        self.reason = Some(reason);
    }

    pub(super) fn watch_opened(&self) {
        self.meter.observe(|| Observed::WatchOpened);
    }

    /// Records the end of a watch. `asked` is the time at which the watch was requested, and `events` is the
    /// number of received events. `error` is the class of the error that ended the watch; `None` if there was
    /// no error.
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

    /// Sets the time at which the bytes of the next events were received; `None` if metrics are disabled.
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

    /// Returns the change with the receive time of the current event, as set by `received`.
    ///
    /// A complete list gets no receive time.
    pub(super) fn stamped<K>(&self, mut delta: Delta<K>) -> Delta<K> {
        if !matches!(delta.kind, DeltaKind::ReplacedAll { .. }) {
            delta.received = self.received;
        }
        delta
    }
}
