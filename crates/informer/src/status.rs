//! Reports the state and progress of an informer, as a [`Status`] that a program can read and wait for.
//!
//! The reflectors, the informer's loop and the other tasks of the informer write the status. A read sends no
//! request and blocks no task.

mod consistency;
mod failure;
mod source;
mod wait;
mod warm_start;

pub use self::{
    consistency::{ConsistencyChecks, Difference},
    failure::{FailureCause, InformerError},
    source::{Activity, SourceStatus},
    wait::{SyncError, SyncFailure, WaitForSync},
    warm_start::{ColdReason, WarmStart},
};

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use crate::{
    object::{DecodeError, ResourceVersion, SourceId},
    transport,
};

/// The state and progress of one informer at the time at which the program read the status.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Status {
    /// Whether the cache contains the complete first list of the informer. Once `true`, the value stays
    /// `true`. If the informer has several sources, such as namespaces, each must have listed.
    ///
    /// After a warm start, the value becomes `true` when the cache contains the saved objects, and the server
    /// has confirmed that every watch can resume from its saved revision. If a list replaces the saved
    /// objects, the value becomes `true` when the cache contains the list.
    pub synced: bool,
    /// Reason why the informer failed; `None` while the informer runs, and after the program has stopped it.
    pub failure: Option<Arc<InformerError>>,
    /// Result of the [warm start](crate::warm_start). `None` if no warm start is configured, or until the
    /// result is known.
    pub warm_start: Option<WarmStart>,
    /// Error of the last automatic save (periodic, or at the informer's end). `None` if the last automatic
    /// save succeeded, or no automatic save was made. [`save`](crate::shared_informer::SharedInformer::save)
    /// returns its errors only to its caller.
    pub last_save_error: Option<String>,
    /// Status of each source. An informer of one namespace, or of all namespaces, has one source.
    pub sources: Vec<SourceStatus>,
    /// Decode errors of the broken objects in the cache. An object that failed to decode is called broken.
    /// The vector has at most 100 ([`Status::BROKEN_LISTED`]) errors.
    pub broken: Vec<DecodeError>,
    /// Number of broken objects in the cache, which are objects that failed to decode.
    pub broken_count: usize,
    /// Number of failed calls of index functions.
    pub index_errors: u64,
    /// Error of the last failed call of an index function; `None` if no call has failed.
    pub last_index_error: Option<String>,
    /// Number of cached objects that the program has mutated. An object counts again if the program also
    /// mutates a newer revision of it. Always zero without
    /// [`detect_mutations`](crate::shared_informer::Builder::detect_mutations).
    pub mutated: u64,
    /// Results of the consistency checks. All counts are zero if the checks are disabled.
    pub consistency: ConsistencyChecks,
    /// Number of events that the handlers had not received when the informer stopped.
    pub discarded: u64,
}

impl Status {
    /// Maximum length of [`Status::broken`]. [`Status::broken_count`] counts all broken objects.
    pub const BROKEN_LISTED: usize = 100;

    /// Returns the activity of the informer's source.
    ///
    /// With several sources, returns the activity of the source that is first in this order:
    ///
    /// 1. [`Stopped`](Activity::Stopped)
    /// 2. [`BackingOff`](Activity::BackingOff) and [`NotServed`](Activity::NotServed)
    /// 3. [`Idle`](Activity::Idle)
    /// 4. [`Listing`](Activity::Listing) and [`Streaming`](Activity::Streaming)
    /// 5. [`Opening`](Activity::Opening)
    /// 6. [`StoreFull`](Activity::StoreFull)
    /// 7. [`Watching`](Activity::Watching)
    ///
    /// Among sources with the same position, the first in [`Status::sources`] is used.
    pub fn activity(&self) -> Activity {
        let source = self.sources.iter().min_by_key(|source| source.rank());
        source.map(|source| source.activity).unwrap_or_default()
    }

    /// Returns the newest revision that the informer has delivered to its queue. The revision is unset before
    /// the first list. If the informer has several sources, the result is the revision of the first source.
    ///
    /// [`Snapshot::revision`](crate::indexer::Snapshot::revision) is the revision of the cache.
    pub fn revision(&self) -> ResourceVersion {
        let first = self.sources.first();
        first
            .map(|source| source.revision.clone())
            .unwrap_or_default()
    }

    /// Returns the last failure of a list or watch of the informer's source; `None` if none has failed.
    ///
    /// An informer of several namespaces has one source per namespace. If several sources have failed, the
    /// method returns the last failure of only one of them: the source whose activity is first in the order
    /// of [`Status::activity`].
    pub fn last_error(&self) -> Option<&Arc<transport::Error>> {
        self.failed()?.last_error.as_ref()
    }

    /// Returns the time since the failure that [`Status::last_error`] returns; `None` without a failure.
    pub fn since_last_error(&self) -> Option<Duration> {
        self.failed()?.since_last_error()
    }

    /// Returns how long the source of [`Status::last_error`] has been failing.
    ///
    /// The time starts at the first failure after the source's last success. A success is a complete list, an
    /// opened watch or an event. Returns `None` if the source has not failed since its last success.
    pub fn failing_for(&self) -> Option<Duration> {
        self.failed()?.failing_for()
    }

    /// Returns whether the informer has synced ([`Status::synced`]) and has not failed ([`Status::failure`]).
    ///
    /// An error of a list or watch is not a failure of the informer. The result stays `true` after the
    /// program has stopped the informer.
    pub fn has_synced(&self) -> bool {
        self.synced && self.failure.is_none()
    }

    fn failed(&self) -> Option<&SourceStatus> {
        let sources = self.sources.iter();
        let failed = sources.filter(|source| source.last_error.is_some());
        failed.min_by_key(|source| source.rank())
    }

    /// Returns the number of sources that have delivered a list or resumed from saved objects.
    fn listed(&self) -> usize {
        let sources = self.sources.iter();
        sources.filter(|source| source.is_listed()).count()
    }

    /// Returns whether the informer has ended.
    pub fn is_stopped(&self) -> bool {
        let is_stopped = |source: &SourceStatus| source.activity == Activity::Stopped;
        !self.sources.is_empty() && self.sources.iter().all(is_stopped)
    }
}

/// Prints one line: whether the informer has synced, its activity, and its errors.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listed, sources) = (self.listed(), self.sources.len());
        let synced = match (self.synced, self.is_stopped()) {
            (true, _) => "synced".to_owned(),
            (false, false) if matches!(self.warm_start, Some(WarmStart::Warm { .. })) => {
                "not synced (the cache has the saved objects, which the server has not confirmed)"
                    .to_owned()
            }
            (false, false) if listed > 0 && listed == sources => {
                "not synced (listed, but not yet completely in the cache)".to_owned()
            }
            (false, _) if sources > 1 => format!("not synced ({listed} of {sources} sources)"),
            (false, _) => "not synced".to_owned(),
        };
        write!(f, "{synced}, ")?;
        match self.activity() {
            Activity::Idle => f.write_str("not started")?,
            Activity::Listing { page, objects } => {
                write!(f, "listing (page {page}, {objects} objects so far)")?;
            }
            Activity::Streaming { objects } => {
                write!(f, "streaming a list ({objects} objects so far)")?;
            }
            Activity::Opening => f.write_str("opening a watch")?,
            Activity::Watching => f.write_str("watching")?,
            Activity::StoreFull => f.write_str("paused, because the store is full")?,
            Activity::BackingOff { attempt, .. } => write!(f, "waiting after failure {attempt}")?,
            Activity::NotServed => f.write_str("the kind is not served")?,
            Activity::Stopped => f.write_str("stopped")?,
        }
        if let Some(failure) = &self.failure {
            write!(f, "; failed: {}", failure.cause)?;
        }
        if let Some(error) = self.last_error() {
            let source = self.failed().filter(|_| self.sources.len() > 1);
            let of = source.map_or("", |source| &*source.description);
            let separator = if of.is_empty() { "" } else { ": " };
            let ago = self.since_last_error().unwrap_or_default();
            write!(f, "; last error: {of}{separator}{error} ({ago:.0?} ago")?;
            match self.failing_for() {
                Some(failing) => write!(f, ", failing for {failing:.0?})")?,
                None => f.write_str(")")?,
            }
        }
        if self.broken_count > 0 {
            write!(f, "; {} broken objects", self.broken_count)?;
        }
        if let Some(error) = &self.last_index_error {
            write!(f, "; {} index errors, the last: {error}", self.index_errors)?;
        }
        if let Some(error) = &self.last_save_error {
            write!(f, "; not saved: {error}")?;
        }
        if self.mutated > 0 {
            write!(f, "; {} mutated objects", self.mutated)?;
        }
        if let Some(difference) = &self.consistency.last_difference {
            let found = self.consistency.different;
            write!(
                f,
                "; {found} differences found by checks, the last: {difference}"
            )?;
        }
        Ok(())
    }
}

/// Copies of the sync state in the [`Status`]. A read of a copy needs no lock.
#[derive(Debug, Default)]
struct Synced {
    /// Copy of [`Status::synced`].
    synced: AtomicBool,
    /// Result of [`Status::has_synced`] for the newest status.
    has_synced: AtomicBool,
}

/// Reads the [`Status`] of one informer, and waits for changes of this status.
#[derive(Clone)]
pub struct StatusReader {
    receiver: watch::Receiver<Status>,
    synced: Arc<Synced>,
}

impl StatusReader {
    /// Returns a new reader whose [`changed`](Self::changed) ignores all earlier changes.
    pub(crate) fn afresh(&self) -> Self {
        let mut reader = self.clone();
        reader.receiver.mark_unchanged();
        reader
    }

    /// Returns the result of [`Status::has_synced`] for the current status. The method reads one atomic
    /// value, and takes no lock.
    pub fn has_synced(&self) -> bool {
        self.synced.has_synced.load(Ordering::Acquire)
    }

    /// Returns the current status.
    pub fn get(&self) -> Status {
        self.receiver.borrow().clone()
    }

    /// Waits until `until` returns `true` for the status, and returns that status.
    ///
    /// Returns at once if `until` returns `true` for the current status. Returns `None` if the informer is
    /// dropped before `until` returns `true`.
    ///
    /// The method does not call `until` after a change that affects only revisions, times of events, or the
    /// number of objects received so far. These values change with every event or with every chunk of a list.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect on the informer.
    #[doc(alias = "Until")]
    #[doc(alias = "UntilWithSync")]
    pub async fn wait_for(&mut self, mut until: impl FnMut(&Status) -> bool) -> Option<Status> {
        loop {
            // Cloned, so that the lock is released before the caller's code runs.
            let status = self.receiver.borrow_and_update().clone();
            if until(&status) {
                return Some(status);
            }
            self.receiver.changed().await.ok()?;
        }
    }

    /// Waits for the next change that this reader has not received, and returns the status after the change.
    ///
    /// Returns `None` when the informer is dropped. A change that affects only revisions, times of events, or
    /// the number of objects received so far does not end the wait.
    ///
    /// # Cancel safety
    /// Dropping the future loses no change: the next call reports the change.
    pub async fn changed(&mut self) -> Option<Status> {
        self.receiver.changed().await.ok()?;
        Some(self.receiver.borrow_and_update().clone())
    }
}

impl fmt::Debug for StatusReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Shared writer of one informer's [`Status`].
#[derive(Clone, Debug)]
pub(crate) struct StatusWriter {
    sender: Arc<watch::Sender<Status>>,
    synced: Arc<Synced>,
}

impl StatusWriter {
    pub(crate) fn new(sources: usize) -> Self {
        let status = Status {
            sources: vec![SourceStatus::default(); sources],
            ..Status::default()
        };
        Self {
            sender: Arc::new(watch::Sender::new(status)),
            synced: Arc::default(),
        }
    }

    pub(crate) fn reader(&self) -> StatusReader {
        StatusReader {
            receiver: self.sender.subscribe(),
            synced: Arc::clone(&self.synced),
        }
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        self.sender.send_modify(change);
    }

    /// Records that every source's first list is in the cache.
    pub(crate) fn set_synced(&self) {
        self.synced.synced.store(true, Ordering::Release);
        self.update(|status| {
            status.synced = true;
            self.note_synced(status);
        });
    }

    fn note_synced(&self, status: &Status) {
        let has_synced = &self.synced.has_synced;
        has_synced.store(status.has_synced(), Ordering::Release);
    }

    /// Returns whether the informer has synced; stays `true` after a failure.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced.synced.load(Ordering::Acquire)
    }

    pub(crate) fn activity(&self, source: SourceId, activity: Activity) {
        self.source(source, |status| {
            let changed = !status.activity.only_counts_on(activity);
            status.activity = activity;
            if activity == Activity::Watching {
                status.failing = None;
            }
            changed
        });
    }

    pub(crate) fn failed(&self, source: SourceId, error: &Arc<transport::Error>) {
        let now = Instant::now();
        self.source(source, |status| {
            status.last_failure = Some(now);
            status.failing.get_or_insert(now);
            status.last_error = Some(Arc::clone(error));
            true
        });
    }

    /// Records that the store has accepted an event or a list with this revision.
    ///
    /// Does not wake tasks that wait for a change of the status, because the method is called for every
    /// event.
    pub(crate) fn progress(&self, source: SourceId, revision: &ResourceVersion, bookmark: bool) {
        let now = Instant::now();
        self.source(source, |status| {
            status.revision.clone_from(revision);
            status.last_event = Some(now);
            status.failing = None;
            if bookmark {
                status.last_bookmark = Some(now);
            }
            false
        });
    }

    /// Records `error`, unless a failure is already recorded. Returns the recorded failure.
    pub(crate) fn fail(&self, error: InformerError) -> Arc<InformerError> {
        let mut first = Arc::new(error);
        self.sender.send_modify(|status| {
            first = Arc::clone(status.failure.get_or_insert_with(|| Arc::clone(&first)));
            self.note_synced(status);
        });
        first
    }

    pub(crate) fn stopped(&self) {
        self.sender.send_modify(|status| {
            for source in &mut status.sources {
                source.activity = Activity::Stopped;
            }
        });
    }

    pub(crate) fn back_off(&self, source: SourceId, pause: Duration, attempt: u32) {
        self.activity(source, Activity::BackingOff { pause, attempt });
    }

    fn source(&self, source: SourceId, change: impl FnOnce(&mut SourceStatus) -> bool) {
        self.sender.send_if_modified(|status| {
            let slot = status.sources.get_mut(source.number() as usize);
            slot.is_some_and(change)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::{Class, Error};

    #[test]
    fn the_last_error_is_that_of_the_source_furthest_from_watching() {
        let source = |name: &str, activity| SourceStatus {
            description: Arc::from(name),
            activity,
            last_error: Some(Arc::new(Error::new(Class::Forbidden, name))),
            ..SourceStatus::default()
        };
        let waits = Activity::BackingOff {
            pause: Duration::from_secs(1),
            attempt: 2,
        };
        let status = Status {
            sources: vec![
                source("recovered", Activity::Watching),
                source("refused", waits),
                source("asked again", Activity::Opening),
            ],
            ..Status::default()
        };
        assert_eq!(status.activity(), waits);
        assert!(status.last_error().unwrap().to_string().contains("refused"));
        assert!(status.to_string().contains("; last error: refused: "));
    }

    #[tokio::test]
    async fn a_new_page_wakes_waiters_and_new_objects_of_a_page_do_not() {
        let writer = StatusWriter::new(1);
        let source = SourceId::default();
        let listing = |page, objects| Activity::Listing { page, objects };
        writer.activity(source, listing(1, 0));
        let mut reader = writer.reader().afresh();
        let mut changed = tokio_test::task::spawn(reader.changed());
        assert!(changed.poll().is_pending());
        writer.activity(source, listing(1, 500));
        assert!(!changed.is_woken());
        assert_eq!(writer.reader().get().activity(), listing(1, 500));
        writer.activity(source, listing(2, 500));
        assert!(changed.is_woken());
    }
}
