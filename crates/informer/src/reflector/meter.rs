//! What a reflector's shell measures of its lists and watches; each place there is one call.

use tokio::time::Instant;

use super::{Delta, DeltaKind};
use crate::{
    codec::FrameKind,
    metrics::{Meter, Observed, RelistReason, WatchEvent},
    transport::Class,
};

/// Of one reflector, which has one list or one watch at a time.
pub(super) struct ReflectorMeter {
    meter: Meter,
    /// When the list under way was begun, with whatever it is repeated for at once.
    listing: Option<Instant>,
    /// Why the next list comes; unset before anything has failed.
    reason: Option<RelistReason>,
    /// When the bytes came whose events are being handed on.
    received: Option<Instant>,
}

impl ReflectorMeter {
    /// With the reason of the first list, if it is not the first of all.
    pub(super) fn new(meter: Meter, reason: Option<RelistReason>) -> Self {
        Self {
            meter,
            listing: None,
            reason,
            received: None,
        }
    }

    /// A list begins, however its objects come, or is begun again at once.
    pub(super) fn list_begins(&mut self) {
        if self.listing.is_some() {
            return;
        }
        self.listing = self.meter.now();
        if let Some(reason) = self.reason {
            self.meter.observe(|| Observed::Relist(reason));
        }
    }

    /// The store has accepted the list, or it is given up; nothing if there is none under way.
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

    /// The server does not know the revision of the watch before, or was not to be asked.
    pub(super) fn probe_failed(&mut self, class: Class) {
        self.reason = Some(match class {
            Class::TooLargeResourceVersion | Class::WentBack => RelistReason::WentBack,
            _ => RelistReason::WatchFailed,
        });
    }

    /// A list was requested, because what was received so far is not what the server has.
    pub(super) fn relist_requested(&mut self, reason: RelistReason) {
        self.reason = Some(reason);
    }

    pub(super) fn watch_opened(&self) {
        self.meter.observe(|| Observed::WatchOpened);
    }

    /// The watch has ended, in order or with an error of some class.
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

    /// When the bytes came that have just come, if that is measured.
    pub(super) fn now(&self) -> Option<Instant> {
        self.meter.now()
    }

    /// Events are handed on next whose bytes came at that time.
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

    /// Notes on a change when it was received; a list was received over some time.
    pub(super) fn stamped<K>(&self, mut delta: Delta<K>) -> Delta<K> {
        if !matches!(delta.kind, DeltaKind::ReplacedAll { .. }) {
            delta.received = self.received;
        }
        delta
    }
}
