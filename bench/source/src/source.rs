//! Stores the changes of the benchmark's objects, and provides objects and changes to all lists and watches.
//!
//! Each list and each watch has a [`Reader`] with a position in the sequence of changes.
//!
//! Guarantees:
//! - every watch receives every change, in order;
//! - no reader has more than [`LEAD_MAX`] unread changes, because a new change waits for the slowest reader;
//! - the timestamps of changes come from the clock that is passed to [`Source::new`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::corpus::{Corpus, Version};
use crate::history::{History, Moment, NoMoment};

/// Maximum number of unread changes of a [`Reader`]; the next change waits for the reader.
const LEAD_MAX: u64 = 64;

/// Number of changes after which [`Source::emit`] yields, if their rate is not limited.
///
/// All tasks share one thread, so other tasks can run only when [`Source::emit`] yields.
const CHANGES_IN_A_ROW: u64 = 256;

/// A function that returns the current time in nanoseconds since 1970.
pub type Clock = fn() -> u64;

/// The benchmark's objects, their changes, and the positions of all readers.
#[derive(Debug)]
pub struct Source {
    corpus: Corpus,
    clock: Clock,
    state: Mutex<State>,
    counts: watch::Sender<Counts>,
    /// Notified when a reader has read changes or is dropped.
    progress: Notify,
    /// Serializes concurrent calls of [`Source::emit`].
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    history: History,
    /// Maps the id of each reader to the reader's position. The position is the number of changes before the
    /// reader's next unread change.
    readers: BTreeMap<u64, u64>,
    last_reader: u64,
    stats: Stats,
}

/// Number of changes, and number of `POST /cut` requests. An increase of either wakes waiting watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    changes: u64,
    cuts: u64,
}

/// Numbers of requests, changes and sent events, which `GET /stats` returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Number of list requests that were answered; each page of a list is one request.
    pub(crate) lists: u64,
    pub(crate) watches: u64,
    /// Number of changes made.
    pub(crate) changes: u64,
    /// Number of events written to watches, including initial events and bookmarks.
    pub(crate) events: u64,
    /// Number of bytes written to the bodies of lists and watches.
    pub(crate) bytes: u64,
    /// Number of open watches.
    pub(crate) watching: u64,
}

/// Result of a `POST /emit` request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Emitted {
    pub(crate) changes: u64,
    pub(crate) took: Duration,
    pub(crate) revision: u64,
}

/// Reads objects and changes for a list or a watch, from a position in the sequence of changes.
///
/// While a reader has [`LEAD_MAX`] unread changes, the source makes no further change.
#[derive(Debug)]
pub(crate) struct Reader {
    source: Arc<Source>,
    id: u64,
    at: Moment,
}

/// A [`Reader`] for a watch, which can also wait for the next change.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) reader: Reader,
    counts: watch::Receiver<Counts>,
    /// Number of `POST /cut` requests before this follower was created. If the current number is higher, the
    /// watch ends.
    cuts: u64,
}

// === impl Source ===

impl Source {
    /// Creates a source whose objects have no changes yet; `clock` returns the timestamps of changes.
    pub fn new(corpus: Corpus, clock: Clock) -> Arc<Source> {
        let state = State {
            history: History::new(corpus.len()),
            readers: BTreeMap::new(),
            last_reader: 0,
            stats: Stats::default(),
        };
        Arc::new(Source {
            corpus,
            clock,
            state: Mutex::new(state),
            counts: watch::Sender::new(Counts::default()),
            progress: Notify::new(),
            turn: tokio::sync::Mutex::new(()),
        })
    }

    /// Returns the corpus, which generates the objects.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    pub(crate) fn now(&self) -> Moment {
        self.state.lock().history.now()
    }

    pub(crate) fn moment(&self, revision: u64) -> Result<Moment, NoMoment> {
        self.state.lock().history.moment(revision)
    }

    pub(crate) fn check(&self, moment: Moment) -> Result<(), NoMoment> {
        self.state.lock().history.check(moment)
    }

    pub(crate) fn stats(&self) -> Stats {
        self.state.lock().stats
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Stats)) {
        count(&mut self.state.lock().stats);
    }

    /// Makes `changes` changes at `rate` per second, or as fast as readers read them if `rate` is 0.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the changes that are already made remain.
    pub(crate) async fn emit(&self, changes: u64, rate: u32) -> Emitted {
        let _turn = self.turn.lock().await;
        let start = Instant::now();
        for at in 0..changes {
            if rate > 0 {
                // Relative to the start, so that a delay does not delay the following changes.
                let nanos = u128::from(at) * 1_000_000_000 / u128::from(rate);
                let due = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                tokio::time::sleep_until(start + due).await;
            } else if (at + 1) % CHANGES_IN_A_ROW == 0 {
                tokio::task::yield_now().await;
            }
            while !self.try_change() {
                self.progress.notified().await;
            }
        }
        Emitted {
            changes,
            took: start.elapsed(),
            revision: self.now().revision,
        }
    }

    /// Makes a change, or returns false if a reader has [`LEAD_MAX`] unread changes.
    fn try_change(&self) -> bool {
        let mut state = self.state.lock();
        let count = state.history.now().changes;
        if state.readers.values().any(|read| count - read >= LEAD_MAX) {
            return false;
        }
        state.history.change((self.clock)());
        state.stats.changes += 1;
        drop(state);
        self.counts.send_modify(|counts| counts.changes = count + 1);
        true
    }

    /// Ends all open watches, each after the event that it is sending.
    pub(crate) fn cut(&self) {
        self.counts.send_modify(|counts| counts.cuts += 1);
    }

    /// Makes all existing revisions too old for new lists and watches.
    ///
    /// Returns the position of the new current revision in the sequence of changes.
    pub(crate) fn expire(&self) -> Moment {
        let mut state = self.state.lock();
        state.history.expire();
        state.history.now()
    }

    /// Creates a reader at the position `at`. The caller must check the position with [`Source::check`].
    pub(crate) fn read(self: &Arc<Self>, at: Moment) -> Reader {
        let mut state = self.state.lock();
        state.last_reader += 1;
        let id = state.last_reader;
        state.readers.insert(id, at.changes);
        Reader {
            source: Arc::clone(self),
            id,
            at,
        }
    }

    /// Creates a follower of the changes after the position `after`. The caller must check the position with
    /// [`Source::check`].
    pub(crate) fn follow(self: &Arc<Self>, after: Moment) -> Follower {
        let counts = self.counts.subscribe();
        let cuts = counts.borrow().cuts;
        self.count(|stats| {
            stats.watches += 1;
            stats.watching += 1;
        });
        Follower {
            reader: self.read(after),
            counts,
            cuts,
        }
    }
}

// === impl Reader ===

impl Reader {
    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.source
    }

    pub(crate) fn moment(&self) -> Moment {
        self.at
    }

    /// Replaces the content of `versions` with the [`Version`] of each object whose index is in `objects`.
    ///
    /// The versions do not include changes after the reader's position in the sequence of changes.
    pub(crate) fn versions(&self, objects: std::ops::Range<usize>, versions: &mut Vec<Version>) {
        let state = self.source.state.lock();
        versions.clear();
        versions.extend(objects.map(|object| state.history.version(object, self.at)));
    }

    /// Replaces `changes` with the next unread changes, at most `most`, and advances the reader past them.
    pub(crate) fn take(&mut self, most: usize, changes: &mut Vec<(usize, Version)>) {
        changes.clear();
        let mut state = self.source.state.lock();
        let next = (self.at.changes..).map_while(|number| state.history.get(number));
        changes.extend(next.take(most));
        let Some((_, last)) = changes.last() else {
            return;
        };
        self.at = Moment {
            changes: self.at.changes + changes.len() as u64,
            revision: last.revision,
        };
        let read = self.at.changes;
        state.readers.insert(self.id, read);
        drop(state);
        self.source.progress.notify_one();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.source.state.lock().readers.remove(&self.id);
        self.source.progress.notify_one();
    }
}

// === impl Follower ===

impl Follower {
    /// Returns whether the watch must end, because a `POST /cut` request ended all open watches.
    pub(crate) fn is_cut(&self) -> bool {
        self.counts.borrow().cuts > self.cuts
    }

    /// Returns whether the reader has read all changes made so far.
    pub(crate) fn is_current(&self) -> bool {
        self.counts.borrow().changes <= self.reader.at.changes
    }

    /// Waits until the watch has an unread change, or until a `POST /cut` request ends the watch.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: the method reads no change.
    pub(crate) async fn wait(&mut self) {
        let (read, cuts) = (self.reader.at.changes, self.cuts);
        let waited = self
            .counts
            .wait_for(|counts| counts.changes > read || counts.cuts > cuts);
        let heard = waited.await.is_ok();
        debug_assert!(heard, "the reader holds the source, which owns the sender");
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.reader.source.count(|stats| stats.watching -= 1);
    }
}

#[cfg(test)]
mod tests;
