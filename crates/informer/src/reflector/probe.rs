//! Decides when to send a probe, and sends it. A probe is a LIST of one object that shows whether the server
//! has gone back to an earlier state.
//!
//! The module does not read the clock: the caller passes the current time.

use std::time::Duration;

use tokio::time::Instant;

use super::rollback::RollbackDetection;
use crate::{
    clock,
    limits::Limits,
    object::ResourceVersion,
    transport::{Body, Error, ListOptions, ListerWatcher, ResourceVersionMatch},
};

/// Minimum time between an answered probe and the next probe, to limit the load on the server.
const EVERY: Duration = Duration::from_secs(60);

/// Maximum delay of a probe that follows failed probes. Each further failure doubles the delay.
const PUT_OFF_MAX: Duration = Duration::from_secs(3600);

/// Whether and when a reflector sends a probe.
#[derive(Debug, Default)]
pub(super) struct Probe {
    is_enabled: bool,
    /// Whether a watch failed or ended early since the last answered probe or completed list.
    is_required: bool,
    order: Order,
    not_before: Option<Instant>,
    /// Delay of the next probe because of failed probes. An answered probe or a completed list resets the
    /// delay to zero.
    put_off: Duration,
}

/// Whether the events since the last list were in order of revision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Ordered,
    /// An event was out of order, and a probe must show whether the server has gone back.
    Suspected,
    /// An event or bookmark was older than the newest accepted revision. The probe that was then required was
    /// answered or failed permanently.
    ///
    /// Until the next list, further such events require no probe. Aggregated API servers send them regularly.
    Unordered,
}

impl Probe {
    pub(super) fn new(detection: RollbackDetection) -> Self {
        Self {
            is_enabled: detection == RollbackDetection::Enabled,
            ..Self::default()
        }
    }

    pub(super) fn disable(&mut self) {
        self.is_enabled = false;
    }

    /// Marks a probe as required, because the server may have restarted.
    pub(super) fn require(&mut self) {
        self.is_required = true;
    }

    /// Records that an event or bookmark was older than the newest revision that the store has accepted.
    ///
    /// The first such event after a list requires a probe. A probe is a LIST of one object that shows whether
    /// the server has gone back to an earlier state.
    pub(super) fn suspect(&mut self) {
        if self.order == Order::Ordered {
            self.order = Order::Suspected;
        }
    }

    /// Returns whether the reflector must send a probe. The probe may not be due yet.
    ///
    /// A probe is a LIST of one object that shows whether the server has gone back to an earlier state.
    pub(super) fn is_required(&self) -> bool {
        self.is_enabled && (self.is_required || self.order == Order::Suspected)
    }

    /// Returns whether a probe is required and due at the time `now`.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at(now).is_some_and(|due| now >= due)
    }

    /// Returns the earliest time at which the reflector may send a probe; `None` if no probe is required.
    pub(super) fn due_at(&self, now: Instant) -> Option<Instant> {
        self.is_required().then(|| self.not_before.unwrap_or(now))
    }

    /// Delays the next probe after a temporary failure of a probe.
    ///
    /// The delay is [`EVERY`] after the first failure, doubles with each further failure, and is at most
    /// [`PUT_OFF_MAX`]. The delay begins at `watched`, the end of the reflector's pause after the failure.
    pub(super) fn put_off(&mut self, watched: Instant) {
        self.put_off = (2 * self.put_off).clamp(EVERY, PUT_OFF_MAX);
        self.not_before = Some(clock::after(watched, self.put_off));
    }

    /// Records that a probe was answered or failed permanently, and that no probe is required anymore.
    ///
    /// Returns true on the first call after [`Probe::suspect`] has recorded an old event. Later calls return
    /// false until a list is completed.
    pub(super) fn answered(&mut self, now: Instant) -> bool {
        self.is_required = false;
        self.put_off = Duration::ZERO;
        self.not_before = Some(clock::after(now, EVERY));
        let was_suspected = self.order == Order::Suspected;
        if was_suspected {
            self.order = Order::Unordered;
        }
        was_suspected
    }

    /// Records that a list was completed, so no probe is required.
    pub(super) fn listed(&mut self) {
        self.is_required = false;
        self.order = Order::Ordered;
        if !self.put_off.is_zero() {
            // The server responds again. The next restart must not remain unnoticed for up to an hour.
            self.put_off = Duration::ZERO;
            self.not_before = None;
        }
    }
}

/// Returns the options of a probe: a LIST of one object at `revision` or newer.
pub(crate) fn probe_options(revision: ResourceVersion) -> ListOptions {
    ListOptions {
        resource_version: revision,
        resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
        limit: Some(1),
        ..ListOptions::default()
    }
}

/// Sends a probe, and returns the revision of its response.
pub(crate) async fn read_probe(
    lister_watcher: &dyn ListerWatcher,
    options: &ListOptions,
    limits: Limits,
) -> Result<ResourceVersion, Error> {
    let mut body = Body::new(lister_watcher.list(options).await?)?;
    let mut splitter = body.encoding().list_splitter(limits.object_bytes);
    let mut items = Vec::new();
    while let Ok(Some(chunk)) = body.next(None).await {
        splitter.feed(chunk?, &mut items)?;
        items.clear();
        // Lets the caller cancel, even if bytes arrive without interruption.
        tokio::task::coop::consume_budget().await;
    }
    Ok(splitter.finish()?.resource_version.as_str().into())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_core::future::BoxFuture;
    use futures_util::{FutureExt, StreamExt, stream};

    use super::*;
    use crate::transport::{Class, Response};

    /// A test source that responds to every LIST with this JSON text.
    struct Says(&'static str);

    impl ListerWatcher for Says {
        fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
            let body = stream::iter([Ok(Bytes::from_static(self.0.as_bytes()))]);
            std::future::ready(Ok(body.boxed().into())).boxed()
        }

        fn watch(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
            std::future::pending().boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_ends_the_delay_after_failed_probes() {
        let now = Instant::now();
        let mut probe = Probe::new(RollbackDetection::Enabled);
        for _ in 0..8 {
            probe.put_off(now);
        }
        probe.require();
        assert_eq!(probe.due_at(now), Some(now + PUT_OFF_MAX));
        probe.listed();
        assert!(!probe.is_required());
        probe.require();
        assert!(probe.is_due(now), "the next restart is detected at once");

        probe.answered(now);
        probe.listed();
        probe.require();
        assert_eq!(
            probe.due_at(now),
            Some(now + EVERY),
            "the minimum between two probes"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_has_the_same_object_size_limit_as_a_list() {
        let answer = Says(r#"{"metadata":{"resourceVersion":"7"},"items":[{"a":"0123456789"}]}"#);
        let options = probe_options(5.into());
        let ask = async |object_bytes| {
            let limits = Limits {
                object_bytes,
                ..Limits::default()
            };
            read_probe(&answer, &options, limits).await
        };
        assert_eq!(ask(18).await.unwrap(), 7.into());
        assert_eq!(ask(10).await.unwrap_err().class(), Class::Protocol);
    }
}
