//! Runs a reflector: sends the requests that `machine` selects, and delivers the responses to the store.

mod decoding;
mod events;
mod initial_events;
mod list;
mod watch_probe;
mod probing;
mod watch;

use std::{pin::pin, sync::Arc, time::Duration};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};

use self::{
    decoding::{Piece, Pieces},
    list::List,
    watch::OpenWatch,
};
use super::{
    Delta, DeltaKind, Error, InitialList, Reflector, ReflectorStore, Reporter, StoreError,
    machine::{Action, Machine},
    meter::ReflectorMeter,
    relist_request::RelistSignal,
};
use crate::{
    clock,
    codec::ListEnd,
    decode::KnownStates,
    logs::LogLimiter,
    metrics::RelistReason,
    object::{Housekeeping, ResourceVersion, SourceId},
    status::Activity,
    transport::{self, Body, Class, ListOptions},
};

/// If the store does not accept a change within this time, the status reports the store as full. The
/// reflector continues to wait.
const FULL_AFTER: Duration = Duration::from_secs(1);

/// The reason why the current list or watch ends.
enum Stop {
    /// The store accepts no more changes, so the reflector ends.
    Gone,
    /// The current list or watch has failed.
    Failed(transport::Error),
    /// The list is complete, but must not be applied. The reflector lists again.
    Again(Again),
}

/// The reason why the reflector requests a complete list again.
enum Again {
    /// A consistency check requested a new list while this list was in progress.
    ///
    /// This list reused cached objects whose revisions are unchanged. This list therefore can't correct a
    /// wrong cached object.
    Requested(RelistReason),
    /// A streaming list contained no objects, although the cache contains objects.
    ///
    /// A LIST must confirm that the server has no objects before the reflector empties the cache.
    Unconfirmed,
}

impl From<transport::Error> for Stop {
    fn from(error: transport::Error) -> Self {
        Self::Failed(error)
    }
}

/// The store accepts no more changes, so the reflector must end.
struct Gone;

pub(super) struct Running<K, S> {
    /// The response body of the open watch.
    ///
    /// Declared first, so that the connection is closed before the reflector reports that it has stopped.
    open: Option<Body>,
    reflector: Reflector<K, S>,
    machine: Machine,
    meter: ReflectorMeter,
    /// Received events and list items that are not processed yet.
    pieces: Pieces<K>,
    /// State of the LIST in progress. Moved out of this field while a page is read, and while the objects are
    /// delivered to the store.
    ///
    /// If the reflector repeats a LIST at once, the field contains the old LIST until the new one starts.
    list: Option<List<K>>,
    /// Limits the log lines about skipped or undecodable objects of a watch.
    skips: LogLimiter,
    /// Number of consecutive failures of requests and watches.
    ///
    /// Reset when the store accepts a list, or when a watch event is processed without an error.
    failures: u32,
    /// Converts stored objects in the background to a form that needs less memory.
    housekeeping: Option<Box<dyn Housekeeping<K>>>,
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
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
            // Such a source need not support `resourceVersionMatch=NotOlderThan` either.
            machine.skip_probes();
        }
        machine.not_before(reflector.reached.get());
        if let Some(revision) = &reflector.from {
            machine.begin_at(revision.clone());
        }
        Self {
            open: None,
            machine,
            meter: ReflectorMeter::new(reflector.report.meter.clone(), reflector.relists),
            pieces: Pieces::new(reflector.decoder.clone()),
            housekeeping: reflector.decoder.form().housekeeping(),
            reflector,
            list: None,
            skips: LogLimiter::default(),
            failures: 0,
        }
    }

    /// Lists and watches until the store accepts no more changes.
    pub(super) async fn run(mut self) {
        let Reporter { name, expects, .. } = &self.reflector.report;
        tracing::debug!(reflector = %name, %expects, "starting");
        let mut action = self.machine.start(Instant::now());
        loop {
            let next = match action {
                Action::List { options, first } => Ok(self.list(&options, first).await),
                Action::Replace(revision) => self.replace(revision).await,
                // Boxed to keep the future of a reflector small.
                Action::Stream(options) | Action::Watch(options) => {
                    Box::pin(self.watch(&options)).await
                }
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
        let limits = self.reflector.requests.limits();
        let mut list = match self.list.take() {
            Some(list) if !first => list,
            Some(failed) => failed.begin_again(limits),
            None => List::listed(limits),
        };
        self.meter.list_begins();
        self.listing(&list);
        let (asked, mut answered) = (Instant::now(), None);
        self.pieces.begin(self.known());
        let read = self.read_page(options, &mut list, &mut answered).await;
        self.pieces.clear();
        list.page(asked, answered);
        match read.and_then(|end| self.machine.page(&end)) {
            Ok(action) => {
                self.list = Some(list);
                action
            }
            Err(error) => {
                let objects = list.len();
                self.list_failed(list, error, objects)
            }
        }
    }

    async fn read_page(
        &mut self,
        options: &ListOptions,
        list: &mut List<K>,
        answered: &mut Option<Instant>,
    ) -> Result<ListEnd, transport::Error> {
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        list.budget.page()?;
        let answer = timeout_at(list.budget.deadline(), lister_watcher.list(options)).await;
        let mut body = Body::new(answer.map_err(|_| list.budget.late())??)?;
        *answered = Some(Instant::now());
        let object_bytes = self.reflector.requests.limits().object_bytes;
        let mut splitter = body.encoding().list_splitter(object_bytes);
        let mut items = Vec::new();
        while let Some(chunk) = list.budget.next(&mut body).await? {
            splitter.feed(chunk, &mut items)?;
            list.budget.more_objects(items.len())?;
            self.pieces.push(items.drain(..), None);
            while !self.pieces.takes_more() && !self.pieces.gathers() {
                self.stage_next(list).await;
            }
            self.keep_house(Some(list), true).await;
            self.listing(list);
            tokio::task::coop::consume_budget().await;
        }
        while !self.pieces.is_empty() {
            self.stage_next(list).await;
        }
        Ok(splitter.finish()?)
    }

    async fn stage_next(&mut self, list: &mut List<K>) {
        let decoded = self.pieces.next().await.and_then(|piece| piece.decoded);
        let epoch = self.machine.epoch();
        let usable = decoded.and_then(|it| list.usable(it, epoch, &self.reflector.report));
        if let Some(object) = usable {
            list.stage(object);
        }
        self.pieces.give_way().await;
    }

    /// Returns the stored objects, which the decoder can reuse if their revision is unchanged.
    ///
    /// Returns `None` if the server has reported, since the last list, that its data is older than the cache.
    /// Such a server may have been restored from a backup, and may use a revision twice. Also returns `None`
    /// if the store does not provide its objects.
    fn known(&self) -> Option<KnownStates<K>> {
        if !self.machine.believes_revisions() {
            return None;
        }
        Some(KnownStates {
            states: self.reflector.store.known()?,
            source: self.reflector.source,
            epoch: self.machine.epoch(),
        })
    }

    /// Handles a LIST that failed after `objects` objects, and returns the next action.
    fn list_failed(&mut self, list: List<K>, error: transport::Error, objects: usize) -> Action {
        let error = self.failed(error, None);
        let action = self.machine.list_failed(&error, Instant::now());
        self.list_repeated(list, &action, objects);
        action
    }

    /// Reports a failed or discarded LIST of `objects` objects to the metrics and the log.
    ///
    /// Reports nothing if the action `next` repeats the LIST at once. Both LISTs are then reported later, as
    /// one.
    fn list_repeated(&mut self, list: List<K>, next: &Action, objects: usize) {
        if matches!(next, Action::List { .. }) {
            self.list = Some(list);
        } else {
            self.end_list(&list, objects, false);
        }
    }

    async fn replace(&mut self, revision: ResourceVersion) -> Result<Action, Gone> {
        let Some(mut list) = self.list.take() else {
            return Ok(self.machine.slept(Instant::now()));
        };
        self.keep_house(Some(&list), false).await;
        let count = list.len();
        match self.hand_on_all(&mut list, revision.clone()).await {
            Ok(()) => Ok(self.machine.replaced(revision, Instant::now())),
            Err(Stop::Gone) => Err(Gone),
            Err(Stop::Failed(error)) => Ok(self.list_failed(list, error, count)),
            Err(Stop::Again(why)) => {
                let action = match why {
                    Again::Requested(_) => self.machine.relist_requested(Instant::now()),
                    Again::Unconfirmed => self.machine.list_unconfirmed(),
                };
                // A streaming list that follows at once belongs to the same attempt.
                if !matches!(action, Action::Stream(_)) {
                    self.list_repeated(list, &action, count);
                }
                if let Again::Requested(reason) = why {
                    self.meter.relist_requested(reason);
                }
                Ok(action)
            }
        }
    }

    /// Sends the objects of a complete list to the store as one change.
    async fn hand_on_all(
        &mut self,
        list: &mut List<K>,
        revision: ResourceVersion,
    ) -> Result<(), Stop> {
        let objects = list.take().await;
        let count = objects.len();
        self.machine.listed(&revision);
        let epoch = self.machine.epoch();
        if list.known_in.is_some_and(|known_in| known_in != epoch) {
            let what = "the server went back to an older revision during the list, so unchanged objects can't be taken from the cache";
            return Err(transport::Error::new(Class::WentBack, what).into());
        }
        if let Some(reason) = self.reflector.relist.take() {
            self.machine.suspect();
            if list.known_in.is_some() {
                return Err(Stop::Again(Again::Requested(reason)));
            }
        }
        let revision = revision.in_epoch(self.machine.epoch());
        let kind = DeltaKind::ReplacedAll {
            objects,
            revision: revision.clone(),
        };
        self.hand_on(kind).await?;
        self.end_list(list, count, true);
        self.failures = 0;
        let report = &self.reflector.report;
        report.not_served.clear();
        let what = if self.machine.is_streaming() {
            "streamed"
        } else {
            "listed"
        };
        tracing::debug!(reflector = %report.name, expects = %report.expects, %revision, count, "{what}");
        report
            .status
            .progress(self.reflector.source, &revision, false);
        if self.reflector.alone.is_some() {
            report.status.set_synced();
        }
        Ok(())
    }

    /// Creates a compression dictionary if one is due, and compresses some stored objects.
    ///
    /// `more_comes` is whether the server will send more objects of `list`.
    async fn keep_house(&mut self, list: Option<&List<K>>, more_comes: bool) {
        if let Some(housekeeping) = &mut self.housekeeping {
            let staged = || list.map(List::objects).unwrap_or_default();
            housekeeping.decoded(&staged, more_comes).await;
        }
        self.keep_house_some();
    }

    fn keep_house_some(&mut self) {
        if let Some(housekeeping) = &mut self.housekeeping {
            housekeeping.step(&|name| self.reflector.store.object_after(name));
        }
    }

    async fn hand_on(&mut self, kind: DeltaKind<K>) -> Result<(), Stop> {
        let kind = kind.in_epoch(self.machine.epoch());
        if let Some(housekeeping) = &mut self.housekeeping {
            match &kind {
                DeltaKind::Added(object) | DeltaKind::Updated(object) => {
                    housekeeping.handed_on(object);
                }
                DeltaKind::Bookmark { .. } => housekeeping.paused(),
                _ => {}
            }
        }
        let delta = self.meter.stamped(Delta::new(self.reflector.source, kind));
        let mut accepting = pin!(self.reflector.store.accept(delta));
        let allowed = self.machine.full_store_allowed();
        let until = clock::from_now(allowed);
        let mut accepted = timeout(FULL_AFTER.min(allowed), &mut accepting).await.ok();
        let was_full = accepted.is_none();
        if was_full {
            let (report, source) = (&self.reflector.report, self.reflector.source);
            begins(report, source, &self.reflector.relist, Activity::StoreFull);
        }
        if was_full && self.open.is_some() {
            accepted = timeout_at(until, &mut accepting).await.ok();
            if accepted.is_none() {
                let Reporter { name, expects, .. } = &self.reflector.report;
                tracing::info!(reflector = %name, %expects, "the store is full; closing the watch");
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
                    let (report, source) = (&self.reflector.report, self.reflector.source);
                    begins(report, source, &self.reflector.relist, Activity::Watching);
                }
                self.reflector.from = None;
                Ok(())
            }
            Err(StoreError::Gone) => Err(Stop::Gone),
            Err(refused) => Err(transport::Error::new(Class::Store, refused.to_string()).into()),
        }
    }

    async fn sleep(&mut self, pause: Duration) -> Action {
        let attempt = self.failures;
        self.activity(Activity::BackingOff { pause, attempt });
        tokio::time::sleep(pause).await;
        self.machine.slept(Instant::now())
    }

    fn listing(&self, list: &List<K>) {
        let page = self.machine.pages() + 1;
        let objects = list.len();
        self.activity(Activity::Listing { page, objects });
    }

    fn end_list(&mut self, list: &List<K>, objects: usize, handed_on: bool) {
        self.meter.list_ended(objects, handed_on);
        list.end(&self.reflector.report, objects, handed_on);
    }

    fn activity(&self, activity: Activity) {
        let (report, source) = (&self.reflector.report, self.reflector.source);
        begins(report, source, &self.reflector.relist, activity);
    }

    /// Reports a failed request or a failed watch to the log, the status and the error handler.
    ///
    /// `open` is the state of the failed watch, or `None` for a failed request.
    fn failed(
        &mut self,
        error: transport::Error,
        open: Option<&OpenWatch<K>>,
    ) -> Arc<transport::Error> {
        self.failures += 1;
        let error = Arc::new(error);
        let report = &self.reflector.report;
        let Reporter { name, expects, .. } = report;
        let what = self.reflector.lister_watcher.description();
        let events = open.map(|open| open.events);
        let open_for = open.map(|open| tracing::field::debug(open.asked.elapsed()));
        let failures = self.failures;
        match error.class() {
            Class::Expired => {
                tracing::debug!(reflector = %name, %expects, %what, %error, open_for, events, "the revision is too old");
            }
            Class::NotFound if report.not_served.set() => {
                tracing::warn!(reflector = %name, %expects, %what, %error, failures, hint = "is the CRD installed?", "not served");
            }
            Class::NotFound => {
                tracing::debug!(reflector = %name, %expects, %what, %error, failures, "not served");
            }
            _ => {
                tracing::warn!(reflector = %name, %expects, %what, %error, open_for, events, failures, "failed");
            }
        }
        report.status.failed(self.reflector.source, &error);
        report.tell_handler(&Error::Transport(Arc::clone(&error)));
        error
    }
}

impl<K, S> Drop for Running<K, S> {
    /// Saves the last revision that the store accepted, for a reflector that replaces this one.
    fn drop(&mut self) {
        let Reporter { name, expects, .. } = &self.reflector.report;
        tracing::debug!(reflector = %name, %expects, "stopped");
        let reached = self.machine.last_revision().clone();
        self.reflector.reached.set(reached);
        self.reflector.relist.set_watching(false);
    }
}

/// Reports the reflector's activity to the status, and tells the consistency check whether a watch is open.
fn begins(report: &Reporter, source: SourceId, relist: &RelistSignal, activity: Activity) {
    relist.set_watching(activity == Activity::Watching);
    report.status.activity(source, activity);
}
