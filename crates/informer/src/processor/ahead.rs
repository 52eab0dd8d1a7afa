//! [`Ahead`]: opens packed objects beside a handler that is about to look into them.
//!
//! A handler that hears of a whole list looks into one object after the other, and decodes each. If it is
//! seen to do so, threads beside it decode some of the next ones meanwhile: with one thread every second,
//! and the handler finds it decoded. Nobody waits for anybody, and what a handler is told, and in which
//! order, is the same. On a runtime with one thread there is nothing beside.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
};

use super::notification::Expansion;
use crate::{beside, event_handler::Event, object::Object};

/// So many events are looked at together, to see whether the handler looks into their objects.
const SEEN: u32 = 16;

/// It does, if it has looked into so many of those.
const LOOKED_MIN: u32 = 12;

/// So many events are taken at a time at most; those of two windows are fewer than an opener knows the places of.
const WINDOW: usize = 32;

/// Or as few as the server sent so much for: what is open ahead is several times as large, and should not drive
/// from a processor's cache what is read before it. With four times as much a first list of pods takes 5 % longer.
const WINDOW_BYTES: u64 = 64_000;

/// Notifications of fewer events are told as they are.
const EVENTS_MIN: u64 = 64;

/// So many threads of a process open objects at a time at most, however many handlers it has: those of one
/// informer share what is open.
static THREADS: Semaphore = Semaphore::const_new(beside::WIDTH_MAX);

pub(super) struct Ahead<K> {
    /// So many threads would be of use.
    width: usize,
    looking: Looking,
    /// What comes next of the notification, taken out of it.
    telling: VecDeque<Event<K>>,
    /// What comes behind that.
    upcoming: VecDeque<Event<K>>,
    /// How many events of this notification have been given out.
    given: Arc<AtomicUsize>,
    /// Those who open objects. Each ends when it is told of no more.
    helpers: Vec<SyncSender<Vec<Upcoming<K>>>>,
    threads: JoinSet<()>,
}

/// Whether the handler looks into what it is told.
#[derive(Clone, Copy)]
enum Looking {
    /// It does not, or nothing can be done beside it.
    Off,
    /// Of so many events, into so many it has looked. Goes on while objects are opened: those that are left
    /// to the handler show it.
    Noting { seen: u32, looked: u32 },
}

impl Looking {
    const BEGIN: Self = Self::Noting { seen: 0, looked: 0 };
}

/// An object that the handler will be told of.
struct Upcoming<K> {
    /// As the event of this number of the notification.
    number: usize,
    object: Object<K>,
}

impl<K: Send + Sync + 'static> Ahead<K> {
    /// For the runtime that this is called in.
    pub(super) fn here() -> Self {
        Self {
            width: beside::width_here(),
            looking: Looking::Off,
            telling: VecDeque::new(),
            upcoming: VecDeque::new(),
            given: Arc::default(),
            helpers: Vec::new(),
            threads: JoinSet::new(),
        }
    }

    /// Another notification is being told.
    pub(super) fn begin(&mut self, expansion: &Expansion<K>) {
        let is_worth_it = self.width > 0 && expansion.is_bulk() && expansion.rest() >= EVENTS_MIN;
        self.looking = if is_worth_it {
            Looking::BEGIN
        } else {
            Looking::Off
        };
        self.given = Arc::default();
    }

    /// How many events it has taken that have not been told.
    pub(super) fn rest(&self) -> u64 {
        (self.telling.len() + self.upcoming.len()) as u64
    }

    /// The next event of the notification, until there are no more.
    pub(super) fn next(&mut self, expansion: &mut Expansion<K>) -> Option<Event<K>> {
        if self.telling.is_empty() {
            self.telling = std::mem::take(&mut self.upcoming);
            if !self.helpers.is_empty() {
                if self.telling.is_empty() {
                    self.telling = window(expansion);
                }
                self.look_ahead(expansion);
            }
        }
        // Nothing is upcoming when there is nothing to tell before it.
        let event = self.telling.pop_front().or_else(|| expansion.next());
        match event {
            Some(_) => _ = self.given.fetch_add(1, Ordering::Relaxed),
            None => self.helpers.clear(),
        }
        event
    }

    /// Takes what comes behind what is told next, and has some of it opened.
    fn look_ahead(&mut self, expansion: &mut Expansion<K>) {
        self.upcoming = window(expansion);
        let first = self.given.load(Ordering::Relaxed) + self.telling.len();
        let mut shares: Vec<_> = self.helpers.iter().map(|_| Vec::new()).collect();
        for (number, event) in (first..).zip(&self.upcoming) {
            let share = (number % (shares.len() + 1)).checked_sub(1);
            if let (Some(share), Some(object)) = (share, now(event)) {
                shares[share].push(Upcoming {
                    number,
                    object: object.clone(),
                });
            }
        }
        for (helper, share) in self.helpers.iter().zip(shares) {
            // One that is behind need not do what the handler will have done before.
            let _ = helper.try_send(share);
        }
    }

    /// What is to be looked at when this event has been told.
    pub(super) fn noted(&self, event: &Event<K>) -> Option<Object<K>> {
        let Looking::Noting { .. } = self.looking else {
            return None;
        };
        let number = self.given.load(Ordering::Relaxed) - 1;
        let is_left_to_handler = number.is_multiple_of(self.helpers.len() + 1);
        let object = now(event).filter(|object| is_left_to_handler && object.is_packed());
        object.cloned()
    }

    /// The event with this object has been told.
    pub(super) fn told(&mut self, object: &Object<K>) {
        let Looking::Noting { seen, looked } = &mut self.looking else {
            return;
        };
        *seen += 1;
        *looked += u32::from(object.is_open());
        if *seen < SEEN {
            return;
        }
        if *looked >= LOOKED_MIN {
            self.looking = Looking::BEGIN;
            self.help();
        } else {
            self.looking = Looking::Off;
            self.helpers.clear();
        }
    }

    /// Has objects opened beside from now on, if there are threads for it.
    fn help(&mut self) {
        if !self.helpers.is_empty() {
            return;
        }
        while self.threads.try_join_next().is_some() {}
        for _ in 0..self.width {
            let Ok(permit) = THREADS.try_acquire() else {
                return;
            };
            let (helper, upcoming) = sync_channel(1);
            let given = Arc::clone(&self.given);
            self.threads
                .spawn_blocking(move || open_all(&upcoming, &given, permit));
            self.helpers.push(helper);
        }
    }
}

fn window<K>(expansion: &mut Expansion<K>) -> VecDeque<Event<K>> {
    let (mut events, mut bytes) = (VecDeque::new(), 0);
    while events.len() < WINDOW
        && bytes < WINDOW_BYTES
        && let Some(event) = expansion.next()
    {
        bytes += now(&event).map_or(0, Object::wire_bytes);
        events.push_back(event);
    }
    events
}

/// Opens what comes, and keeps it open until the handler has been told.
fn open_all<K>(
    upcoming: &Receiver<Vec<Upcoming<K>>>,
    given: &AtomicUsize,
    _permit: SemaphorePermit<'static>,
) {
    let mut open = VecDeque::new();
    while let Ok(share) = upcoming.recv() {
        // The handler has got to the window before this one, and so is behind the one before that.
        open.truncate(1);
        let is_to_come = |next: &&Upcoming<K>| next.number >= given.load(Ordering::Relaxed);
        let share = share.iter().filter(is_to_come);
        let opened = share.filter_map(|next| next.object.open_ahead());
        open.push_front(opened.collect::<Vec<_>>());
    }
}

/// The state that an event tells.
fn now<K>(event: &Event<K>) -> Option<&Object<K>> {
    match event {
        Event::Added { object, .. } => Some(object),
        Event::Updated { new, .. } => Some(new),
        Event::Deleted(_) | Event::Synced => None,
    }
}

#[cfg(test)]
mod tests;
