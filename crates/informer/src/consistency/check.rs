//! Periodically compares the store of an informer with the server ([`ConsistencyCheck`]).
//!
//! A source is one list with its watch. If the objects of a source differ from the server's objects, the
//! check requests a new list from the reflector of the source. Only this list modifies the store. The check
//! itself does not.
//!
//! Guarantees:
//! - a check does not delay the reflectors, because it reads a snapshot and sends its own requests;
//! - a failed request is not retried before the next periodic check.

use std::{future, sync::Arc, time::Duration};

use futures_core::future::BoxFuture;
use tokio::{
    sync::mpsc,
    time::{sleep, sleep_until, timeout_at},
};

use super::{Comparison, Found};
use crate::{
    clock,
    controller::{Command, Guest, InnerReflector, NoSnapshot, settled_snapshot},
    indexer::Snapshot,
    limits::Limits,
    metrics::{Checked, Observed, RelistReason},
    object::SourceId,
    reflector::{Error, PAGE_SIZE, RelistRequest, Reporter},
    status::Difference,
    transport::{
        self, AfterPage, Body, Class, ListBudget, ListOptions, ListerWatcher, Pager,
        ResourceVersionMatch,
    },
};

/// Minimum interval between checks. Limits the load of complete lists on the server.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// Delay between two attempts to get a snapshot.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of attempts to get a snapshot of the store for one check.
///
/// An attempt fails while the informer's queue contains changes. If all attempts fail, the check is skipped.
const SETTLE_TRIES: u32 = 20;

/// Maximum number of checks that must find the same difference again before the next list is requested.
const GAP_MAX: u32 = 64;

/// Task that periodically compares the store of one informer with the server.
pub(crate) struct ConsistencyCheck<K> {
    every: Duration,
    sources: Vec<Source>,
    commands: mpsc::UnboundedSender<Command<K>>,
    report: Reporter,
    rng: fastrand::Rng,
}

struct Source {
    id: SourceId,
    lister_watcher: Arc<dyn ListerWatcher>,
    limits: Limits,
    relist: RelistRequest,
    listed_for: Option<ListedFor>,
}

/// A difference for which the check has already requested a list.
///
/// While the difference remains, the check requests further lists: the first after one more periodic check,
/// and then after 2, 4, 8, … more checks, up to [`GAP_MAX`].
struct ListedFor {
    fingerprint: u64,
    /// Value of `rounds` at which the check requests the next list.
    gap: u32,
    /// Number of periodic checks since the last request for a list.
    rounds: u32,
}

impl ListedFor {
    fn new(fingerprint: u64) -> Self {
        Self {
            fingerprint,
            gap: 1,
            rounds: 0,
        }
    }

    /// Counts a periodic check that found this difference again. Returns whether to request another list.
    fn is_due(&mut self) -> bool {
        self.rounds += 1;
        if self.rounds < self.gap {
            return false;
        }
        self.rounds = 0;
        self.gap = (self.gap * 2).min(GAP_MAX);
        true
    }
}

impl<K: Send + Sync + 'static> Guest<K> for ConsistencyCheck<K> {
    fn begin<'a>(&'a mut self, reflectors: &'a mut [InnerReflector<K>]) -> BoxFuture<'a, ()> {
        let sources = reflectors.iter_mut().map(|reflector| {
            let (relist, signal) = RelistRequest::new();
            reflector.relist = signal;
            Source {
                id: reflector.source,
                lister_watcher: Arc::clone(&reflector.lister_watcher),
                limits: reflector.requests.limits(),
                relist,
                listed_for: None,
            }
        });
        self.sources = sources.collect();
        Box::pin(future::ready(()))
    }

    fn run(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.check_periodically())
    }
}

impl<K: Send + Sync + 'static> ConsistencyCheck<K> {
    /// Creates a check with the interval `every`, but at least [`PERIOD_MIN`]. Returns `None` if `every` is
    /// zero.
    pub(crate) fn guest(
        every: Duration,
        commands: &mpsc::UnboundedSender<Command<K>>,
        report: Reporter,
        rng: fastrand::Rng,
    ) -> Option<Box<dyn Guest<K>>> {
        if every.is_zero() {
            return None;
        }
        Some(Box::new(Self {
            every: every.max(PERIOD_MIN),
            sources: Vec::new(),
            commands: commands.clone(),
            report,
            rng,
        }))
    }

    async fn check_periodically(&mut self) {
        loop {
            sleep_until(clock::from_now(self.pause())).await;
            for at in 0..self.sources.len() {
                self.check(at).await;
            }
        }
    }

    /// Returns a random pause from half of the check interval to the whole interval.
    ///
    /// Random pauses spread the requests of informers that started at the same time.
    fn pause(&mut self) -> Duration {
        let half = self.every / 2;
        half + half.mul_f64(self.rng.f64())
    }

    async fn check(&mut self, at: usize) {
        let source = &self.sources[at];
        if !self.report.status.is_synced() || !source.relist.is_watching() {
            return;
        }
        let Some(snapshot) = self.settled().await else {
            return;
        };
        let description = source.lister_watcher.description();
        let mut comparison = Comparison::new(&snapshot, source.id, description);
        // A revision without an order does not identify a state.
        if !comparison.revision().is_comparable() {
            return;
        }
        match compare(&*source.lister_watcher, source.limits, &mut comparison).await {
            Ok(()) => match comparison.finish() {
                None => self.same(at),
                Some(found) => self.differs(at, found),
            },
            Err(error) if error.class() == Class::TooLargeResourceVersion => {
                self.went_back(at, &comparison);
            }
            Err(error) => self.failed(at, error),
        }
    }

    /// Requests a snapshot of the store that contains, for each source, exactly the changes up to a revision.
    ///
    /// Retries while queued changes make such a snapshot impossible. Returns `None` after [`SETTLE_TRIES`]
    /// attempts, or if the informer has not synced or has stopped.
    async fn settled(&self) -> Option<Snapshot<K>> {
        for _ in 0..SETTLE_TRIES {
            match settled_snapshot(&self.commands).await {
                Ok(snapshot) => return Some(snapshot),
                Err(NoSnapshot::Unsettled) => sleep(SETTLE_PAUSE).await,
                Err(NoSnapshot::NotSynced | NoSnapshot::Stopped) => return None,
            }
        }
        let informer = &self.report.name;
        tracing::debug!(%informer, "not checked: the queue does not become empty");
        None
    }

    fn same(&mut self, at: usize) {
        self.sources[at].listed_for = None;
        let Reporter { meter, status, .. } = &self.report;
        meter.observe(|| Observed::Checked(Checked::Same));
        status.update(|status| status.consistency.same += 1);
    }

    fn differs(&mut self, at: usize, found: Found) {
        let difference = self.note(found.difference);
        let source = &mut self.sources[at];
        match &mut source.listed_for {
            Some(listed) if listed.fingerprint == found.fingerprint => {
                let again = listed.is_due();
                if again {
                    source.relist.send(RelistReason::Inconsistent);
                }
                let Reporter { name, meter, .. } = &self.report;
                tracing::debug!(informer = %name, %difference, again, "a list has not removed the difference");
                meter.observe(|| Observed::Checked(Checked::Different));
            }
            listed_for => {
                *listed_for = Some(ListedFor::new(found.fingerprint));
                self.request(at, difference, RelistReason::Inconsistent);
            }
        }
    }

    fn went_back(&mut self, at: usize, comparison: &Comparison<'_, K>) {
        let difference = self.note(Difference {
            description: Arc::from(self.sources[at].lister_watcher.description()),
            revision: comparison.revision().clone(),
            went_back: true,
            ..Difference::default()
        });
        self.request(at, difference, RelistReason::WentBack);
    }

    fn note(&self, difference: Difference) -> Arc<Difference> {
        let difference = Arc::new(difference);
        self.report.status.update(|status| {
            status.consistency.different += 1;
            status.consistency.last_difference = Some(Arc::clone(&difference));
        });
        difference
    }

    fn request(&self, at: usize, difference: Arc<Difference>, reason: RelistReason) {
        let informer = &self.report.name;
        tracing::error!(%informer, %difference, "inconsistent");
        self.report.tell_handler(&Error::Inconsistent(difference));
        self.sources[at].relist.send(reason);
    }

    fn failed(&self, at: usize, error: transport::Error) {
        let Reporter {
            name,
            meter,
            status,
            ..
        } = &self.report;
        let what = self.sources[at].lister_watcher.description();
        if error.class() == Class::Expired {
            tracing::info!(informer = %name, %what, %error, "not checked: the revision is too old");
        } else {
            tracing::warn!(informer = %name, %what, %error, "not checked");
        }
        meter.observe(|| Observed::Checked(Checked::Failed));
        status.update(|status| {
            status.consistency.failed += 1;
            status.consistency.last_failure = Some(Arc::new(error));
        });
    }
}

/// Lists the objects at the revision of the snapshot, and passes each object to `comparison`.
///
/// Returns an error if the list has another revision.
async fn compare<K>(
    source: &dyn ListerWatcher,
    limits: Limits,
    comparison: &mut Comparison<'_, K>,
) -> Result<(), transport::Error> {
    let mut budget = ListBudget::begin(limits);
    let revision = comparison.revision().clone();
    // Always in pages, independent of the settings for lists: the cost for the server is the same.
    let mut pager = Pager::new(ListOptions {
        resource_version: revision.clone(),
        resource_version_match: Some(ResourceVersionMatch::Exact),
        limit: Some(PAGE_SIZE),
        ..ListOptions::default()
    });
    loop {
        budget.page()?;
        let answer = source.list_metadata(pager.request());
        let answer = timeout_at(budget.deadline(), answer).await;
        let mut body = Body::new(answer.map_err(|_| budget.late())??)?;
        let mut splitter = body.encoding().list_splitter(limits.object_bytes);
        let mut items = Vec::new();
        while let Some(chunk) = budget.next(&mut body).await? {
            splitter.feed(chunk, &mut items)?;
            budget.more_objects(items.len())?;
            for item in items.drain(..) {
                comparison.see(item.object())?;
            }
            tokio::task::coop::consume_budget().await;
        }
        let end = splitter.finish()?;
        if revision != end.resource_version.as_str().into() {
            let what = format!(
                "the list was requested at revision {revision}, and the server responded at {}",
                end.resource_version
            );
            return Err(transport::Error::new(Class::Protocol, what));
        }
        match pager.page(&end) {
            AfterPage::More => {}
            AfterPage::Done(_) => return Ok(()),
            AfterPage::Endless => {
                let what = "the server repeats a continue token, so the list has no end";
                return Err(transport::Error::new(Class::Protocol, what));
            }
        }
    }
}
