//! Checks the properties of a simulated run, such as a cache that equals the server's state.
//!
//! Some properties must hold after each step, and others after all faults have ended. The simulation's
//! `README.md` lists all of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube_informer::{ObjectName, Snapshot, object::SourceId, shared_informer::ListenerBuffer};
use tokio::time::{Instant, sleep, timeout};

use super::{
    World, Wrong,
    users::{LATE_INDEX, User},
};
use crate::{
    life::{Key, NAMES, NAMESPACES, Queue, Scope, Written},
    planted,
    stored::Stored,
    truth::{self, States},
};

/// Maximum time for which handlers with a bounded buffer may block the informer.
///
/// At 200 ms per event, the time is sufficient for 3,000 queued events.
pub(super) const HELD_UP: Duration = Duration::from_secs(600);

/// Maximum time to wait until all handlers have processed their queued events.
///
/// Handlers need less than 200 ms per event, so the time is sufficient for 9,000 queued events.
const TOLD_WITHIN: Duration = Duration::from_secs(1800);

/// Time without changes in which every handler with a resync period must receive at least one resync.
///
/// The time is longer than the sum of two periods, each less than 60 s: the handler's resync period, and the
/// period with which the informer checks whether resyncs are due.
const RESYNCED_WITHIN: Duration = Duration::from_secs(121);

/// Fixed part of the maximum number of requests that each source (reflector) may send in a checked period.
///
/// The other part depends on the length of the period.
const BURST: usize = 30;
/// Number of requests that each source may send per started minute, in addition to [`BURST`].
const PER_MINUTE: usize = 20;

/// Value of the label `v` in the valid pods that replace undecodable pods.
const MENDED: u32 = 1_000_000;

impl<K: Stored> World<'_, K> {
    /// Checks the properties that must hold after each step.
    pub(super) fn check_now(&mut self) -> Result<(), Wrong> {
        let snapshot = self.informer.informer.indexer().snapshot();
        check_indices(&snapshot, self.life.setting.reads_each_state())?;
        truth::check_bodies(&snapshot)?;
        self.check_broken(&snapshot)?;
        self.check_revision(&snapshot)?;
        self.check_synced(&snapshot)?;
        let (queued, most) = (self.informer.queued(), self.queue_max());
        if queued > most {
            return Err(format!(
                "{queued} changes are queued, more than the limit of {most}"
            ));
        }
        for user in &self.users {
            user.check_history()?;
            let (depth, most) = (user.registration.depth(), user.depth_max());
            // The first list bypasses a full buffer: whether an informer has synced does not depend on
            // handlers.
            if depth > most && user.registration.has_synced() {
                return Err(format!(
                    "{depth} notifications are queued, more than the limit of {most}"
                ));
            }
            if user.registration.has_synced() && !user.history.has_synced() {
                return Err(
                    "a registration has synced before its handler has received everything"
                        .to_owned(),
                );
            }
        }
        while let Some(read) = self.reads.try_join_next() {
            self.check_read(read.map_err(|error| error.to_string())?)?;
        }
        self.wire.wrong().map_or(Ok(()), Err)
    }

    /// Checks how the informer handles objects that fail to decode.
    ///
    /// The informer's status and `snapshot` must report the same number of these objects.
    ///
    /// The function also decodes each object in `snapshot`. If the decoding fails, the informer must replace
    /// the object's handle in the cache. A later call checks that the cache no longer contains the old
    /// handle.
    fn check_broken(&mut self, snapshot: &Snapshot<K>) -> Result<(), Wrong> {
        let (counted, now) = (
            self.informer.informer.status().get().broken_count,
            Instant::now(),
        );
        if counted != snapshot.broken_count() {
            let broken = snapshot.broken_count();
            return Err(format!(
                "{broken} objects are broken, but the status reports {counted}"
            ));
        }
        let read: Vec<_> = self
            .unreadable
            .extract_if(.., |(at, _)| *at < now)
            .collect();
        for (_, object) in read {
            if planted::lists(self.bug, snapshot, &object) {
                return Err(format!("{object:?} is listed although it failed to decode"));
            }
            self.outcome.seen.checked("broken when read");
        }
        let unreadable = snapshot.iter().filter(|object| object.get().is_err());
        self.unreadable = unreadable.map(|object| (now, object.clone())).collect();
        Ok(())
    }

    /// Returns the maximum number of waiting changes, in the queue and in the channel to the queue together.
    ///
    /// The queue and the channel have the same capacity. The first list and a resync can each exceed the
    /// queue's capacity by one change per object.
    fn queue_max(&self) -> usize {
        let objects = NAMES * NAMESPACES.len();
        2 * self.life.setting.capacity + 2 * objects
    }

    /// Checks that a synced informer and its synced handlers have all objects that existed at the start and
    /// have not changed since.
    ///
    /// A filtered handler needs only the objects that its filter selects.
    fn check_synced(&self, snapshot: &Snapshot<K>) -> Result<(), Wrong> {
        if !self.harm.is_empty() {
            return Ok(());
        }
        let lasting = self.truth.lasting();
        let missing = |have: &States, web_only: bool| {
            let wanted = lasting.iter().filter(|(_, state)| state.web || !web_only);
            let mut missing = wanted.filter(|(name, state)| have.get(*name) != Some(state));
            missing.next().map(|(name, _)| name.clone())
        };
        if self.informer.informer.has_synced()
            && let Some(name) = missing(&truth::cached(snapshot), false)
        {
            return Err(format!("the informer has synced without {name}"));
        }
        let synced = self.users.iter().filter(|user| user.history.has_synced());
        for user in synced {
            if let Some(name) = missing(&user.history.state(), user.handler.filtered) {
                return Err(format!("a handler has synced without {name}"));
            }
        }
        Ok(())
    }

    /// Makes no changes for [`RESYNCED_WITHIN`], and then checks the events that the handlers received.
    ///
    /// A handler with a resync period must receive a resync of each object that the handler selects. Any
    /// other handler must receive no events, unless earlier faults can be the cause.
    pub(super) async fn check_resyncs(&mut self) -> Result<(), Wrong> {
        let heard = |user: &User<K>| (user.history.events(), user.history.resynced());
        let before: Vec<_> = self.users.iter().map(heard).collect();
        let asked = self.wire.requests();
        sleep(RESYNCED_WITHIN).await;
        self.check_rate(RESYNCED_WITHIN, self.wire.requests() - asked)?;
        let told = timeout(TOLD_WITHIN, self.informer.informer.handlers_idle()).await;
        told.map_err(|_| "handlers have not finished a resync in time".to_owned())?;
        let want = truth::on_server(&self.server, &self.life.setting);
        for (user, (events, resynced)) in self.users.iter().zip(before) {
            user.check_history()?;
            let is_quiet = user.handler.resync == 0 && self.harm.is_empty();
            if is_quiet && user.history.events() != events {
                return Err(
                    "a handler without resyncs received an event while nothing changed".to_owned(),
                );
            }
            let now = user.history.resynced();
            let mut wanted = want.iter().filter(|(_, state)| {
                user.handler.resync > 0 && (state.web || !user.handler.filtered)
            });
            if let Some((name, _)) = wanted.find(|(name, _)| now.get(*name) == resynced.get(*name))
            {
                return Err(format!("no resync of {name} in {RESYNCED_WITHIN:?}"));
            }
        }
        self.outcome.seen.checked("resync received");
        Ok(())
    }

    /// Checks the result of a task that waited until the cache contained the task's own write.
    ///
    /// Ignores the task's error if an earlier fault can be the cause.
    fn check_read(&mut self, read: Result<(), Wrong>) -> Result<(), Wrong> {
        self.outcome.seen.checked("read of an own write");
        if self.harm.is_empty() { read } else { Ok(()) }
    }

    /// Checks that each source's part of the cache equals the server's state at the source's revision.
    ///
    /// A source is a reflector for one namespace or for all namespaces. The function checks nothing for a
    /// [`Queue::DeltaFifo`], because this queue does not apply changes in the order of revisions. The
    /// function also checks nothing after a fault that disables some checks (`World::harm`).
    fn check_revision(&mut self, snapshot: &Snapshot<K>) -> Result<(), Wrong> {
        let in_order = matches!(self.life.setting.queue, Queue::InOrder(_));
        if !in_order || !self.harm.is_empty() {
            return Ok(());
        }
        let have = truth::cached(snapshot);
        for (number, namespace) in (0..).zip(self.namespaces()) {
            let revision = snapshot.source_revision(SourceId::new(number)).to_string();
            let Ok(revision) = revision.parse() else {
                continue;
            };
            let have = truth::part(&have, namespace);
            match self.truth.was(revision, namespace, &have) {
                Some(true) => self.outcome.seen.checked("cache compared at its revision"),
                None => {}
                Some(false) => {
                    let want = self.truth.at(revision).cloned().unwrap_or_default();
                    let differs = truth::difference(&have, &truth::part(&want, namespace));
                    return Err(format!(
                        "the cache differs from the server's state at revision {revision}:\n    {differs}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the namespace that each reflector of the informer watches.
    ///
    /// A reflector of all namespaces has the value `None`.
    fn namespaces(&self) -> Vec<Option<&'static str>> {
        match self.life.setting.scope {
            Scope::TwoNamespaces => NAMESPACES[..2].iter().copied().map(Some).collect(),
            Scope::Everywhere | Scope::Labelled => vec![None],
        }
    }

    /// Checks that the informer has not sent too many requests. `asked` is the number of requests within
    /// `time`.
    ///
    /// Each source may send [`BURST`] requests, [`PER_MINUTE`] more requests for each started minute, and two
    /// more requests for each interval of the consistency check.
    pub(super) fn check_rate(&self, time: Duration, asked: usize) -> Result<(), Wrong> {
        let minutes = usize::try_from(time.as_secs().div_ceil(60)).unwrap_or(usize::MAX);
        let mut most = BURST + minutes.saturating_mul(PER_MINUTE);
        let compared = (2 * time.as_secs()).checked_div(self.life.setting.consistency);
        most += usize::try_from(compared.unwrap_or_default()).unwrap_or(usize::MAX);
        let most = most.saturating_mul(self.life.setting.sources());
        if asked > most {
            return Err(format!(
                "{asked} requests in {time:?}, more than the limit of {most}"
            ));
        }
        Ok(())
    }

    /// Waits at most `within` until the cache equals the server's state.
    ///
    /// If `mends` is true, writes a valid state to the server for each object that failed to decode.
    /// Otherwise, the comparison ignores these objects.
    pub(super) async fn heal(&mut self, within: Duration, mends: bool) -> Result<(), Wrong> {
        let began = Instant::now();
        loop {
            let asked = self.wire.requests();
            // A bookmark advances an idle watch to the current revision.
            self.server.faults().send_bookmarks();
            sleep(Duration::from_secs(1)).await;
            self.check_rate(Duration::from_secs(1), self.wire.requests() - asked)?;
            self.check_now()?;
            if mends {
                self.write_broken();
            }
            let snapshot = self.informer.informer.indexer().snapshot();
            let have = truth::cached(&snapshot);
            let mut want = truth::on_server(&self.server, &self.life.setting);
            let broken = truth::broken(&snapshot);
            want.retain(|name, _| mends || !broken.contains(name));
            let have = truth::without(have, &broken);
            if have == want && self.informer.informer.has_synced() && self.is_newest(&snapshot) {
                return Ok(());
            }
            if began.elapsed() > within {
                let status = self.informer.informer.status().get();
                let differs = truth::difference(&have, &want);
                return Err(format!(
                    "{within:?} after the faults: {status}\n    {differs}"
                ));
            }
        }
    }

    /// Writes a new, valid state to the server for each object that failed to decode.
    fn write_broken(&mut self) {
        let snapshot = self.informer.informer.indexer().snapshot();
        let broken = truth::broken(&snapshot);
        for key in Key::all().filter(|key| broken.contains(&key.object_name())) {
            self.write(Written {
                key,
                value: MENDED,
                web: true,
            });
        }
    }

    /// Returns whether the revision of each reflector in `snapshot` is the server's current revision.
    ///
    /// Compares only revisions, not objects: after a lost event, `snapshot` can lack changes.
    fn is_newest(&self, snapshot: &Snapshot<K>) -> bool {
        let newest = self.server.revision().to_string();
        let sources = (0..).zip(self.namespaces());
        let mut revisions =
            sources.map(|(number, _)| snapshot.source_revision(SourceId::new(number)));
        revisions.all(|revision| revision.to_string() == newest)
    }

    /// Waits until all handlers have received their events, and checks the final state.
    pub(super) async fn check_all(&mut self) -> Result<(), Wrong> {
        let informer = &self.informer.informer;
        let told = timeout(TOLD_WITHIN, informer.handlers_idle()).await;
        if told.is_err() {
            return Err(format!(
                "handlers have not received everything within {TOLD_WITHIN:?}"
            ));
        }
        let want = truth::on_server(&self.server, &self.life.setting);
        for user in &self.users {
            let differs = self.check_user(user, &want);
            differs.map_err(|wrong| format!("{}: {wrong}", user.registration.status().name))?;
        }
        while !self.reads.is_empty() && self.harm.is_empty() {
            let Ok(Some(read)) = timeout(Duration::from_secs(1), self.reads.join_next()).await
            else {
                return Err("a read of an own write is still pending".to_owned());
            };
            self.check_read(read.map_err(|error| error.to_string())?)?;
        }
        let laid = self
            .informer
            .overlay
            .list(&kube_informer::Selector::default());
        let laid: States = laid
            .iter()
            .map(|object| (object.object_name().clone(), truth::State::of(object)))
            .collect();
        // A write that the server has lost stays in the overlay until it expires.
        if laid != want && self.harm.is_empty() {
            let differs = truth::difference(&laid, &want);
            return Err(format!("read through the overlay:\n    {differs}"));
        }
        self.check_woken(&want).await?;
        let different = self.informer.informer.status().get().consistency.different;
        if different > 0 && self.harm.is_empty() {
            return Err("a comparison found a difference although no event was lost".to_owned());
        }
        self.outcome.seen.checked("final state");
        self.check_now()
    }

    /// Checks that the object states that the simulated controller ([`woken`](super::woken)) last read equal
    /// `want`. Waits up to one second until they are equal.
    ///
    /// Checks nothing after a fault that disables some checks (`World::harm`).
    async fn check_woken(&self, want: &States) -> Result<(), Wrong> {
        if !self.harm.is_empty() {
            return Ok(());
        }
        let woken = &self.informer.woken;
        for _ in 0..10 {
            if woken.states() == *want {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        let differs = truth::difference(&woken.states(), want);
        Err(format!(
            "a controller that reads the overlay when woken has another state:\n    {differs}"
        ))
    }

    fn check_user(&self, user: &User<K>, want: &States) -> Result<(), Wrong> {
        user.check_history()?;
        if !user.registration.has_synced() {
            return Err("the registration has not synced".to_owned());
        }
        let mut want = want.clone();
        want.retain(|_, state| state.web || !user.handler.filtered);
        let told = user.history.state();
        if told != want {
            let differs = truth::difference(&told, &want);
            return Err(format!("its events lead to another state:\n    {differs}"));
        }
        let in_order = matches!(self.life.setting.queue, Queue::InOrder(_)) && !self.gaps;
        let merged = user.handler.buffer == ListenerBuffer::Coalesce;
        if !in_order || merged || !self.harm.is_empty() || user.handler.filtered {
            return Ok(());
        }
        let at_sync = user.history.at_sync().unwrap_or_default();
        for namespace in self.namespaces() {
            let was = self
                .truth
                .was_ever(namespace, &truth::part(&at_sync, namespace));
            if !was {
                return Err(format!(
                    "it synced with a state that the server never had: {at_sync:?}"
                ));
            }
        }
        Ok(())
    }
}

/// Checks that each index of a snapshot contains the expected objects.
///
/// `reads_each_state` is whether the index by the label `app` decodes the objects. If so, this index must not
/// contain objects that fail to decode. Otherwise, the index must contain these objects too.
fn check_indices<K: Stored>(snapshot: &Snapshot<K>, reads_each_state: bool) -> Result<(), Wrong> {
    let states = truth::cached(snapshot);
    // Index functions that read the whole object can't index broken objects.
    let broken = truth::broken(snapshot);
    let is_placed =
        |index: &str, name| !broken.contains(name) || index == "app" && !reads_each_state;
    for index in snapshot.index_names() {
        let mut want: BTreeMap<String, BTreeSet<ObjectName>> = BTreeMap::new();
        for (name, state) in &states {
            let value = match &*index {
                LATE_INDEX | "app" if !is_placed(&index, name) => None,
                LATE_INDEX => state.value.parse().ok().map(crate::planted::third),
                "app" => state.web.then(|| "web".to_owned()),
                _ => name.namespace().map(str::to_owned),
            };
            if let Some(value) = value {
                want.entry(value).or_default().insert(name.clone());
            }
        }
        let mut have = BTreeMap::new();
        for value in snapshot
            .index_values(&*index)
            .map_err(|error| error.to_string())?
        {
            let keys = snapshot.index_keys(&*index, &value);
            let keys = keys.map_err(|error| error.to_string())?;
            have.insert(value.to_string(), keys.into_iter().collect::<BTreeSet<_>>());
        }
        if have != want {
            return Err(format!("index {index}: {have:?} instead of {want:?}"));
        }
    }
    Ok(())
}
