//! When it is worth asking whether the server has gone back (pure, told the time), and how.

use std::time::Duration;

use tokio::time::Instant;

use super::rollback::RollbackDetection;
use crate::{
    clock,
    limits::Limits,
    object::ResourceVersion,
    transport::{Body, Error, ListOptions, ListerWatcher, ResourceVersionMatch},
};

/// A reflector asks at most this often: a connection that flaps must not become a load.
const EVERY: Duration = Duration::from_secs(60);

/// One that is put off again and again comes after twice as long each time, up to this: each costs the
/// watch the time that the server takes to refuse it, and a pause.
const PUT_OFF_MAX: Duration = Duration::from_secs(3600);

/// Whether a server that was away may be another one now.
#[derive(Debug, Default)]
pub(super) struct Probe {
    is_enabled: bool,
    /// A watch has ended in a way that a server's restart can be behind, and nobody has asked since.
    is_required: bool,
    order: Order,
    /// Before when it comes too early; unset before the first one.
    not_before: Option<Instant>,
    /// How long the last one was put off for; zero if it was answered.
    put_off: Duration,
}

/// Whether events arrive in order of revision, as far as this list and its watches have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Ordered,
    /// An event below the last revision has arrived, and the server has not answered since.
    Suspected,
    /// The server has answered after such an event, so that these are no reason to ask it.
    Unordered,
}

impl Probe {
    pub(super) fn new(detection: RollbackDetection) -> Self {
        Self {
            is_enabled: detection == RollbackDetection::Enabled,
            ..Self::default()
        }
    }

    /// The server is never to be asked.
    pub(super) fn disable(&mut self) {
        self.is_enabled = false;
    }

    /// The connection was lost, the watch ended before its time, or nobody listens where there was a
    /// server.
    pub(super) fn require(&mut self) {
        self.is_required = true;
    }

    /// An event below the last revision has arrived.
    pub(super) fn suspect(&mut self) {
        if self.order == Order::Ordered {
            self.order = Order::Suspected;
        }
    }

    /// Whether the server is to be asked, now or later.
    pub(super) fn is_required(&self) -> bool {
        self.is_enabled && (self.is_required || self.order == Order::Suspected)
    }

    /// Whether to ask before watching on. One that comes too early is postponed.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at(now).is_some_and(|due| now >= due)
    }

    /// When a probe that is required is due, which may be now; `None` if none is required.
    pub(super) fn due_at(&self, now: Instant) -> Option<Instant> {
        self.is_required().then(|| self.not_before.unwrap_or(now))
    }

    /// It was not answered, which may change: it is still required, and comes too early for a while from when
    /// the watch goes on.
    pub(super) fn put_off(&mut self, watched: Instant) {
        self.put_off = (2 * self.put_off).clamp(EVERY, PUT_OFF_MAX);
        self.not_before = Some(clock::after(watched, self.put_off));
    }

    /// The server has answered, or won't. Returns whether the collection counts as unordered from now on,
    /// as an event below the last revision was a reason to ask.
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

    /// Everything was listed, so there is nothing to doubt.
    pub(super) fn listed(&mut self) {
        self.is_required = false;
        self.order = Order::Ordered;
        // The server answers: what it did not answer before says nothing about the next probe.
        self.put_off = Duration::ZERO;
    }
}

/// Asks for one object, not older than a revision that the server must have come to.
pub(crate) fn probe_options(revision: ResourceVersion) -> ListOptions {
    ListOptions {
        resource_version: revision,
        resource_version_match: Some(ResourceVersionMatch::NotOlderThan),
        limit: Some(1),
        ..ListOptions::default()
    }
}

/// The revision that the answer is of; its object is of no interest.
pub(crate) async fn read_probe(
    lister_watcher: &dyn ListerWatcher,
    options: &ListOptions,
    limits: Limits,
) -> Result<ResourceVersion, Error> {
    let mut body = Body::new(lister_watcher.list(options).await?)?;
    let mut splitter = body.codec().list_splitter(limits.object_bytes);
    let mut items = Vec::new();
    while let Ok(Some(chunk)) = body.next(None).await {
        splitter.feed(chunk?, &mut items)?;
        items.clear();
        // A caller that stops waiting must be able to, however fast the bytes are.
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

    /// Answers every list with this one.
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
    async fn a_probe_takes_no_larger_object_than_a_list_does() {
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
