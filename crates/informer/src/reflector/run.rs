//! The shell: sends the requests that the machine decides on, and hands on what comes back.

mod decoding;
mod initial_events;
mod probing;
mod repacking;
mod watch;

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use self::{
    decoding::{Piece, Pieces},
    repacking::{Pending, Repacking, Training},
};
use super::{
    Delta, DeltaKind, Error, InitialList, Reflector, ReflectorStore, Reporter, StoreError,
    list_steps::ListSteps,
    machine::{Action, Machine},
    meter::ReflectorMeter,
};
use crate::{
    clock,
    decode::{Decoded, KnownStates, OtherKind},
    logs::{LINES, Ration},
    metrics::RelistReason,
    object::{Object, ObjectName, ResourceVersion, Timeline},
    status::Activity,
    transport::{self, Body, Class, ListBudget, ListEnd, ListOptions, ListSplitter},
};

/// A store that takes longer than this over a change is said to be full. Shorter waits are what a burst
/// of events costs.
const FULL_AFTER: Duration = Duration::from_secs(1);

/// Why something can't go on as it is.
enum Stop {
    /// The store is gone, and so is the reflector.
    Gone,
    /// The list or the watch under way has failed.
    Failed(transport::Error),
    /// The list is complete, and is repeated instead of applied.
    Again(Again),
}

/// Why a complete list is repeated.
enum Again {
    /// A doubt has come meanwhile, and the list has left objects undecoded as known.
    Doubted(RelistReason),
    /// A streaming list has no objects, and the cache has some.
    Unconfirmed,
}

impl From<transport::Error> for Stop {
    fn from(error: transport::Error) -> Self {
        Self::Failed(error)
    }
}

/// The store is gone.
struct Gone;

pub(super) struct Running<K, S> {
    /// The watch under way, until it ends or is let go of. First, so that it is gone when the
    /// reflector says that it has stopped.
    open: Option<Body>,
    reflector: Reflector<K, S>,
    machine: Machine,
    meter: ReflectorMeter,
    /// What has come of the body under way and is not staged or handed on yet.
    pieces: Pieces<K>,
    /// Of the list under way, whether something in it was known and not decoded; and on which timeline.
    unchanged: Option<Timeline>,
    /// The list under way; void until it is complete.
    staged: Vec<Object<K>>,
    /// The same of a streaming list, of which objects can change and go while it is under way.
    initial: BTreeMap<ObjectName, Object<K>>,
    /// What is left of the limits of the list under way.
    budget: ListBudget,
    /// Of the list under way, with whatever it is repeated for at once.
    steps: Option<ListSteps>,
    /// Objects of the list under way that were broken or left out.
    skipped: usize,
    /// Of the watches, what was broken or left out.
    skips: Ration,
    /// Events of the watch under way.
    events: u64,
    /// Failures since something worked, for people.
    failures: u32,
    training: Training,
    repacking: Repacking,
    pending: Pending<K>,
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    pub(super) fn new(reflector: Reflector<K, S>) -> Self {
        let mut requests = reflector.requests;
        let streams_lists = reflector.lister_watcher.streams_lists();
        if !streams_lists {
            requests.initial_list = Some(InitialList::List);
        }
        let mut machine = Machine::new(requests, reflector.rng.clone());
        if !streams_lists {
            // Neither need it know what "not older than" means.
            machine.skip_probes();
        }
        machine.not_before(reflector.not_before.clone());
        if let Some(revision) = &reflector.from {
            machine.begin_at(revision.clone());
        }
        Self {
            open: None,
            machine,
            meter: ReflectorMeter::new(reflector.report.meter.clone(), reflector.relists),
            pieces: Pieces::new(reflector.decoder.clone()),
            unchanged: None,
            reflector,
            staged: Vec::new(),
            initial: BTreeMap::new(),
            budget: ListBudget::begin(requests.limits()),
            steps: None,
            skipped: 0,
            skips: Ration::default(),
            events: 0,
            failures: 0,
            training: Training::new(),
            repacking: Repacking::default(),
            pending: Pending::new(),
        }
    }

    /// Runs until the store is gone.
    pub(super) async fn run(mut self) {
        let _stopping = Stopping::after_starting(&self.reflector.report);
        let mut action = self.machine.start(Instant::now());
        loop {
            let next = match action {
                Action::List { options, first } => Ok(self.list(&options, first).await),
                Action::Replace(revision) => self.replace(revision).await,
                // Boxed, as whoever runs a reflector holds all that it may be waiting for.
                Action::Stream(options) => {
                    self.begin_initial_events();
                    Box::pin(self.watch(&options)).await
                }
                Action::Watch(options) => Box::pin(self.watch(&options)).await,
                Action::Probe(options) => Ok(self.probe(&options).await),
                Action::Sleep(pause) => Ok(self.sleep(pause).await),
            };
            match next {
                Ok(next) => action = next,
                Err(Gone) => return,
            }
        }
    }

    async fn list(&mut self, options: &ListOptions, first: bool) -> Action {
        if first {
            self.staged = Vec::new();
            self.budget = ListBudget::begin(self.reflector.requests.limits());
            self.skipped = 0;
            self.unchanged = None;
            self.steps.get_or_insert_with(ListSteps::begin);
            self.meter.list_begins();
        }
        self.listing();
        let (asked, mut answered) = (Instant::now(), None);
        self.pieces.begin(self.known());
        let read = self.read_page(options, &mut answered).await;
        self.pieces.clear();
        if let Some(steps) = &mut self.steps {
            steps.page(asked, answered);
        }
        match read.and_then(|end| self.machine.page(&end)) {
            Ok(action) => action,
            Err(error) => self.list_failed(error, self.staged.len()),
        }
    }

    async fn read_page(
        &mut self,
        options: &ListOptions,
        answered: &mut Option<Instant>,
    ) -> Result<ListEnd, transport::Error> {
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        self.budget.page()?;
        let answer = timeout_at(self.budget.patience(), lister_watcher.list(options)).await;
        let mut body = Body::new(answer.map_err(|_| self.budget.late())??);
        *answered = Some(Instant::now());
        let mut splitter = ListSplitter::new(self.reflector.requests.limits().object_bytes);
        let mut items = Vec::new();
        while let Some(chunk) = self.budget.next(&mut body).await? {
            splitter.feed(chunk, &mut items)?;
            self.budget.more_objects(items.len())?;
            self.pieces.push(items.drain(..), None);
            while !self.pieces.takes_more() && !self.pieces.gathers() {
                self.stage_next().await;
            }
            self.tend_packing(true).await;
            self.listing();
            tokio::task::coop::consume_budget().await;
        }
        while !self.pieces.is_empty() {
            self.stage_next().await;
        }
        splitter.finish()
    }

    async fn stage_next(&mut self) {
        let piece = self.pieces.next().await;
        let object = piece.and_then(|piece| self.usable(piece.decoded?));
        self.staged.extend(object);
        self.pieces.give_way().await;
    }

    /// What the store has from this source, if a list may go by that.
    fn known(&self) -> Option<KnownStates<K>> {
        if !self.machine.believes_revisions() {
            return None;
        }
        Some(KnownStates {
            states: self.reflector.store.known()?,
            source: self.reflector.source,
            timeline: self.machine.timeline(),
        })
    }

    fn list_failed(&mut self, error: transport::Error, objects: usize) -> Action {
        // Void, and not to be kept through a pause.
        self.staged = Vec::new();
        let error = self.failed(error, None);
        let action = self.machine.list_failed(&error, Instant::now());
        if !matches!(action, Action::List { .. }) {
            self.end_list(objects, false);
        }
        action
    }

    /// The list is repeated, in the same attempt if at once.
    fn list_again(&mut self, why: &Again, objects: usize) -> Action {
        let action = match why {
            Again::Doubted(_) => self.machine.list_doubted(Instant::now()),
            Again::Unconfirmed => self.machine.list_unconfirmed(),
        };
        if matches!(action, Action::Sleep(_)) {
            self.end_list(objects, false);
        }
        if let Again::Doubted(reason) = why {
            self.meter.doubted(*reason);
        }
        action
    }

    async fn replace(&mut self, revision: ResourceVersion) -> Result<Action, Gone> {
        self.tend_packing(false).await;
        let objects = std::mem::take(&mut self.staged);
        let count = objects.len();
        match self.hand_on_all(objects, revision.clone()).await {
            Ok(()) => {}
            Err(Stop::Gone) => return Err(Gone),
            Err(Stop::Failed(error)) => return Ok(self.list_failed(error, count)),
            Err(Stop::Again(why)) => return Ok(self.list_again(&why, count)),
        }
        Ok(self.machine.replaced(revision, Instant::now()))
    }

    /// Hands on everything there is, as one change, and says so.
    async fn hand_on_all(
        &mut self,
        objects: Vec<Object<K>>,
        revision: ResourceVersion,
    ) -> Result<(), Stop> {
        let count = objects.len();
        self.machine.listed(&revision);
        let known_on = self.unchanged.take();
        if known_on.is_some_and(|timeline| timeline != self.machine.timeline()) {
            let what = "the server has gone back, so what is known of its objects does not count";
            return Err(transport::Error::new(Class::WentBack, what).into());
        }
        if let Some(reason) = self.reflector.trust.restore() {
            self.machine.doubt();
            if known_on.is_some() {
                return Err(Stop::Again(Again::Doubted(reason)));
            }
        }
        let revision = revision.on(self.machine.timeline());
        let kind = DeltaKind::ReplacedAll {
            objects,
            revision: revision.clone(),
        };
        self.hand_on(kind).await?;
        self.end_list(count, true);
        self.failures = 0;
        self.reflector.report.is_served();
        let Reporter {
            name,
            expects,
            status,
            ..
        } = &self.reflector.report;
        let what = if self.machine.is_streaming() {
            "streamed"
        } else {
            "listed"
        };
        tracing::debug!(reflector = %name, %expects, %revision, count, "{what}");
        status.progress(self.reflector.source, &revision, false);
        if self.reflector.alone.is_some() {
            status.set_synced();
        }
        Ok(())
    }

    async fn hand_on(&mut self, kind: DeltaKind<K>) -> Result<(), Stop> {
        let kind = kind.on(self.machine.timeline());
        match &kind {
            DeltaKind::Added(object) | DeltaKind::Updated(object) => self.pending.push(object),
            DeltaKind::Bookmark { .. } => self.pending.pack(),
            _ => {}
        }
        let delta = self.meter.stamped(Delta::new(self.reflector.source, kind));
        let mut accepting = pin!(self.reflector.store.accept(delta));
        let allowed = self.machine.full_store_allowed();
        let until = clock::from_now(allowed);
        let mut accepted = timeout(FULL_AFTER.min(allowed), &mut accepting).await.ok();
        let was_full = accepted.is_none();
        let Reporter { status, .. } = &self.reflector.report;
        if was_full {
            status.activity(self.reflector.source, Activity::StoreFull);
        }
        if was_full && self.open.is_some() {
            accepted = timeout_at(until, &mut accepting).await.ok();
            if accepted.is_none() {
                let Reporter { name, expects, .. } = &self.reflector.report;
                tracing::info!(reflector = %name, %expects, "the store is full; the watch is let go of");
                self.open = None;
            }
        }
        let accepted = match accepted {
            Some(accepted) => accepted,
            None => accepting.await,
        };
        match accepted {
            Ok(()) => {
                if was_full && self.open.is_some() {
                    status.activity(self.reflector.source, Activity::Watching);
                }
                self.reflector.from = None;
                Ok(())
            }
            Err(StoreError::Gone) => Err(Stop::Gone),
            Err(refused) => Err(transport::Error::new(Class::Store, refused.to_string()).into()),
        }
    }

    async fn sleep(&mut self, pause: Duration) -> Action {
        let Reporter { status, .. } = &self.reflector.report;
        status.back_off(self.reflector.source, pause, self.failures);
        tokio::time::sleep(pause).await;
        self.machine.slept(Instant::now())
    }

    /// What of a decoded piece has a place in the store. What was wrong with it is reported.
    fn usable(&mut self, decoded: Decoded<K>) -> Option<Object<K>> {
        match decoded {
            Decoded::Object(object) => {
                if let Some(error) = object.broken() {
                    self.report(&Error::Decode(error.clone()));
                }
                Some(object)
            }
            Decoded::Known(object) => {
                self.unchanged = Some(self.machine.timeline());
                Some(object)
            }
            Decoded::Unreadable(error) => {
                self.report(&Error::Decode(error));
                None
            }
            Decoded::OtherKind(OtherKind { name, found }) => {
                self.report(&Error::OtherKind {
                    expected: Arc::clone(&self.reflector.report.expects),
                    found,
                    object: name,
                });
                None
            }
        }
    }

    fn listing(&self) {
        let page = self.machine.pages() + 1;
        let objects = self.staged.len();
        self.activity(Activity::Listing { page, objects });
    }

    fn end_list(&mut self, objects: usize, handed_on: bool) {
        self.meter.list_ended(objects, handed_on);
        let Reporter { name, expects, .. } = &self.reflector.report;
        if self.skipped > LINES {
            let skipped = self.skipped;
            tracing::warn!(reflector = %name, %expects, skipped, "a list had more objects like these");
        }
        if let Some(steps) = self.steps.take() {
            steps.end(name, expects, objects, handed_on);
        }
    }

    fn activity(&self, activity: Activity) {
        let Reporter { status, .. } = &self.reflector.report;
        status.activity(self.reflector.source, activity);
    }

    fn report(&mut self, error: &Error) {
        let report = &self.reflector.report;
        if self.steps.is_none() {
            report.skipped(error, &mut self.skips);
            return;
        }
        self.skipped += 1;
        if self.skipped <= LINES {
            report.log_skipped(error);
        }
        report.tell_handler(error);
    }

    /// Notes a failure, and how long the watch had been open, if it was one that ended.
    fn failed(
        &mut self,
        error: transport::Error,
        open_for: Option<Duration>,
    ) -> Arc<transport::Error> {
        self.failures += 1;
        let error = Arc::new(error);
        let Reporter {
            name,
            expects,
            status,
            ..
        } = &self.reflector.report;
        let what = self.reflector.lister_watcher.description();
        let events = open_for.map(|_| self.events);
        let open_for = open_for.map(tracing::field::debug);
        let failures = self.failures;
        match error.class() {
            Class::Expired => {
                tracing::debug!(reflector = %name, %expects, %what, %error, open_for, events, "the revision is too old");
            }
            Class::NotFound if self.reflector.report.is_not_served() => {
                tracing::warn!(reflector = %name, %expects, %what, %error, failures, hint = "is the CRD installed?", "not served");
            }
            Class::NotFound => {
                tracing::debug!(reflector = %name, %expects, %what, %error, failures, "not served");
            }
            _ => {
                tracing::warn!(reflector = %name, %expects, %what, %error, open_for, events, failures, "failed");
            }
        }
        status.failed(self.reflector.source, &error);
        let error_handled = Error::Transport(Arc::clone(&error));
        self.reflector.report.tell_handler(&error_handled);
        error
    }
}

/// Says that a reflector starts, and that it has stopped, however that came about.
struct Stopping {
    name: Arc<str>,
    expects: Arc<str>,
}

impl Stopping {
    fn after_starting(report: &Reporter) -> Self {
        let Reporter { name, expects, .. } = report.clone();
        tracing::debug!(reflector = %name, %expects, "starting");
        Self { name, expects }
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        let Self { name, expects } = self;
        tracing::debug!(reflector = %name, %expects, "stopped");
    }
}
