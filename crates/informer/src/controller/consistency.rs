//! Compares the store with the server every so often, and has listed anew what differs.
//!
//! It runs beside the reflectors and never holds one up: it looks at snapshots, and its requests are its
//! own. One that fails is not repeated before the next round.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{mpsc, oneshot},
    time::{sleep, sleep_until, timeout_at},
};

use super::{Command, InnerReflector};
use crate::{
    clock,
    consistency::{Comparison, Found},
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
    warm_start::SaveError,
};

/// What is asked for more often than this is asked for this often: a check costs the server a list.
const PERIOD_MIN: Duration = Duration::from_secs(1);

/// A queue by keys is empty between two changes, so one moment or the next will do.
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// If none of so many did, the next round may find one.
const SETTLE_TRIES: u32 = 20;

/// What lists do not mend is listed for once in so many rounds in the end, each of which costs a list
/// too; a choice.
const GAP_MAX: u32 = 64;

/// The checks of one informer.
pub(super) struct ConsistencyCheck<K> {
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

/// What everything was listed for last. If the same still differs, the list has lost what the watch
/// before it had, or no list mends it: an object that the informer has left out, for example. Nothing
/// tells which, so it is listed for again, ever more seldom.
struct ListedFor {
    fingerprint: u64,
    /// From one list to the next, in rounds.
    gap: u32,
    /// Rounds since the last one.
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

    /// The same differs after one round more: whether everything is to be listed again.
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

/// Never ends.
pub(super) async fn check_every_so_often<K>(check: Option<ConsistencyCheck<K>>)
where
    K: Send + Sync + 'static,
{
    match check {
        Some(check) => check.run().await,
        None => std::future::pending().await,
    }
}

impl<K: Send + Sync + 'static> ConsistencyCheck<K> {
    /// Has these reflectors listen to it.
    pub(super) fn new(
        every: Duration,
        reflectors: &mut [InnerReflector<K>],
        commands: mpsc::UnboundedSender<Command<K>>,
        report: Reporter,
        rng: fastrand::Rng,
    ) -> Self {
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
        Self {
            every: every.max(PERIOD_MIN),
            sources: sources.collect(),
            commands,
            report,
            rng,
        }
    }

    async fn run(mut self) {
        loop {
            sleep_until(clock::from_now(self.pause())).await;
            for at in 0..self.sources.len() {
                self.check(at).await;
            }
        }
    }

    /// Half a period to a whole one, so that informers that started together don't ask together.
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
        // Revisions without an order name no state.
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

    /// A moment in which the store has what its sources had at their revisions.
    async fn settled(&self) -> Option<Snapshot<K>> {
        for _ in 0..SETTLE_TRIES {
            let (reply, moment) = oneshot::channel();
            self.commands.send(Command::Moment(reply)).ok()?;
            match moment.await.ok()? {
                Ok(snapshot) => return Some(snapshot),
                Err(SaveError::Unsettled) => sleep(SETTLE_PAUSE).await,
                Err(_) => return None,
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
                tracing::debug!(informer = %name, %difference, again, "a list has not mended it");
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

/// Has the server tell what it had at the revision of the store.
async fn compare<K>(
    source: &dyn ListerWatcher,
    limits: Limits,
    comparison: &mut Comparison<'_, K>,
) -> Result<(), transport::Error> {
    let mut budget = ListBudget::begin(limits);
    let revision = comparison.revision().clone();
    // In pages whatever is set for lists: an exact state costs the server the same so.
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
        let mut splitter = body.codec().list_splitter(limits.object_bytes);
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
                "the server was asked for revision {revision}, and answered with {}",
                end.resource_version
            );
            return Err(transport::Error::new(Class::Protocol, what));
        }
        match pager.page(&end) {
            AfterPage::More => {}
            AfterPage::Done(_) => return Ok(()),
            AfterPage::Endless => {
                let what = "the server sends the same continue token again and again";
                return Err(transport::Error::new(Class::Protocol, what));
            }
        }
    }
}
