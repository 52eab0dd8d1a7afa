//! What answers hold while they are read: the objects of a list, what a watch is told first, and the text of one long answer.
//!
//! Guarantees:
//! - the objects of lists and watches are shared with the store; what such an answer has of its own is a place for each object, a chunk, and the text of one object that is longer;
//! - any other answer of more than [`FREE_BYTES`] has a place for each 8 bytes, and for each 8 of the piece that is on its way;
//! - all answers together hold at most [`PLACES_MAX`];
//! - when that is reached, answers that were begun more than [`READ_TIME`] ago break off to make room, also those that nobody reads any more; if that is not enough, a request is to come again (429).
//!
//! No timer runs: whoever needs the room looks who had theirs for long.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::status::ApiError;
use crate::storage::Entry;

/// Places of all answers together, [`PLACE_BYTES`] each: 64 lists of a million objects.
const PLACES_MAX: usize = 64 * 1024 * 1024;

/// The bytes of a place.
const PLACE_BYTES: usize = size_of::<usize>();

/// What an answer takes besides its objects: a chunk on its way.
const PLACES_OF_ANSWER: usize = 8 * 1024;

/// The longest answer that takes no place: far below what a connection takes for the heads of requests.
pub(crate) const FREE_BYTES: usize = 4 * 1024;

/// How long an answer can be read before it has to make room: what Kubernetes gives a request that does not watch (`RequestTimeout` in `server/config.go`).
const READ_TIME: Duration = Duration::from_secs(60);

/// All answers that are being read.
pub(crate) struct Readers {
    places_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    places: usize,
    last: u64,
    /// In the order in which they began.
    answers: BTreeMap<u64, Answer>,
}

struct Answer {
    begun: Instant,
    places: usize,
    content: Weak<dyn Content>,
}

/// What can be taken away from an answer.
trait Content: Send + Sync {
    fn give_up(&self);
}

/// The content of one answer.
pub(crate) struct Held<T> {
    content: Arc<Mutex<Option<T>>>,
    readers: Arc<Readers>,
    number: u64,
}

/// It was taken away.
#[derive(Debug, thiserror::Error)]
#[error("the answer was not read in time")]
pub(crate) struct GivenUp;

impl Default for Readers {
    fn default() -> Readers {
        Readers {
            places_max: PLACES_MAX,
            open: Mutex::default(),
        }
    }
}

impl Readers {
    /// Holds an answer that shares no byte with anything.
    pub(crate) fn hold_bytes(self: &Arc<Readers>, bytes: Bytes) -> Result<Held<Bytes>, ApiError> {
        let places = bytes.len() / PLACE_BYTES;
        self.take(places + places.min(PLACES_OF_ANSWER), bytes)
    }

    /// The places that objects take: one each, and the text of the longest, which is written at once and sent in pieces.
    pub(crate) fn places<'a>(entries: impl ExactSizeIterator<Item = &'a Arc<Entry>>) -> usize {
        let count = entries.len();
        let longest = entries.map(|entry| entry.bytes()).max().unwrap_or(0);
        count + longest / PLACE_BYTES
    }

    /// Holds the content of an answer, of so many places and those of any answer.
    pub(crate) fn hold<T>(
        self: &Arc<Readers>,
        places: usize,
        content: T,
    ) -> Result<Held<T>, ApiError>
    where
        T: Send + 'static,
    {
        self.take(places + PLACES_OF_ANSWER, content)
    }

    /// Gives up the answers that were begun until then, however little room they take: for what they hold of the past.
    pub(crate) fn give_up_until(&self, then: Instant) {
        let given_up = self.open.lock().forget(|begun| begun <= then);
        for content in given_up {
            content.give_up();
        }
    }

    fn take<T>(self: &Arc<Readers>, places: usize, content: T) -> Result<Held<T>, ApiError>
    where
        T: Send + 'static,
    {
        let content = Arc::new(Mutex::new(Some(content)));
        let mut open = self.open.lock();
        let given_up = if open.places + places > self.places_max {
            open.forget(|begun| begun.elapsed() > READ_TIME)
        } else {
            Vec::new()
        };
        let fits = open.places + places <= self.places_max;
        if fits {
            open.last += 1;
            open.places += places;
        }
        let number = open.last;
        if fits {
            let erased: Arc<dyn Content> = content.clone();
            let answer = Answer {
                begun: Instant::now(),
                places,
                content: Arc::downgrade(&erased),
            };
            open.answers.insert(number, answer);
        }
        drop(open);
        for content in given_up {
            content.give_up();
        }
        if !fits {
            return Err(ApiError::too_many_requests().retry_in(1));
        }
        Ok(Held {
            content,
            readers: Arc::clone(self),
            number,
        })
    }
}

impl Open {
    /// Forgets the oldest answers, and returns what they hold.
    fn forget(&mut self, is_old: impl Fn(Instant) -> bool) -> Vec<Arc<dyn Content>> {
        let mut given_up = Vec::new();
        while let Some(oldest) = self.answers.first_entry()
            && is_old(oldest.get().begun)
        {
            let answer = oldest.remove();
            self.places -= answer.places;
            given_up.extend(answer.content.upgrade());
        }
        given_up
    }
}

impl<T: Send> Content for Mutex<Option<T>> {
    fn give_up(&self) {
        self.lock().take();
    }
}

impl<T> Held<T> {
    /// Goes on with the content, if it is still there.
    pub(crate) fn with<R>(&self, read: impl FnOnce(&mut T) -> R) -> Result<R, GivenUp> {
        self.content.lock().as_mut().map(read).ok_or(GivenUp)
    }
}

impl<T> Drop for Held<T> {
    fn drop(&mut self) {
        let mut open = self.readers.open.lock();
        if let Some(answer) = open.answers.remove(&self.number) {
            open.places -= answer.places;
        }
    }
}

#[cfg(test)]
impl Readers {
    /// With a bound of its own.
    pub(crate) fn of(places_max: usize) -> Readers {
        Readers {
            places_max,
            open: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readers(answers: usize) -> Arc<Readers> {
        Arc::new(Readers::of(answers * (PLACES_OF_ANSWER + 100)))
    }

    #[tokio::test(start_paused = true)]
    async fn answers_that_nobody_reads_make_room_when_their_time_is_up() {
        let readers = readers(2);
        let first = readers.hold(100, "first").unwrap();
        tokio::time::advance(READ_TIME / 2).await;
        let second = readers.hold(100, "second").unwrap();
        let refused = readers.hold(100, "third").err().expect("there is no room");
        assert_eq!(
            (refused.code(), refused.status().retry_after()),
            (429, Some(1))
        );
        tokio::time::advance(READ_TIME / 2 + Duration::from_millis(1)).await;
        assert!(first.with(|_| ()).is_ok(), "nobody needed its room");
        let third = readers.hold(100, "third").unwrap();
        assert!(first.with(|_| ()).is_err());
        assert_eq!(second.with(|content| *content).unwrap(), "second");
        drop(first);
        assert!(
            readers.hold(100, "fourth").is_err(),
            "its room is the third's"
        );
        drop(third);
        assert!(readers.hold(100, "fourth").is_ok());
        drop(second);
        assert_eq!(readers.open.lock().places, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_taken_away_is_dropped() {
        let readers = readers(1);
        let objects = Arc::new(());
        let stopped = readers.hold(1, Arc::clone(&objects)).unwrap();
        tokio::time::advance(2 * READ_TIME).await;
        let _other = readers.hold(1, ()).unwrap();
        assert_eq!(Arc::strong_count(&objects), 1, "though nobody reads it");
        drop(stopped);
    }

    #[test]
    fn there_is_room_for_many_large_lists() {
        assert!(Readers::default().places_max / (1_000_000 + PLACES_OF_ANSWER) >= 64);
    }
}
