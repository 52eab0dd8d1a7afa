//! Limits the memory that response bodies occupy until clients have read them.
//!
//! The budget counts memory in slots of [`SLOT_BYTES`](ResponseBudget::SLOT_BYTES) bytes.
//!
//! Guarantees:
//! - all responses together reserve at most [`SLOTS_MAX`] slots. A body that is complete in memory and has at
//!   most [`FREE_BYTES`] bytes reserves no slots;
//! - if a new response needs more slots than are free, the budget evicts the responses that started more than
//!   [`READ_TIMEOUT`] ago, even if their clients are still reading;
//! - if too few slots are free after the eviction, the new response fails with a 429 error.
//!
//! The budget has no timer. It evicts responses only when a new response reserves slots, and in
//! [`ResponseBudget::evict_until`].

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::status::ApiError;
use crate::storage::Entry;

/// Maximum memory of all responses together, in slots of [`ResponseBudget::SLOT_BYTES`].
///
/// The value is enough for 64 lists of a million objects.
const SLOTS_MAX: usize = 64 * 1024 * 1024;

/// Maximum memory that a response reserves for the chunk that is being sent, in slots of
/// [`ResponseBudget::SLOT_BYTES`] bytes.
///
/// The value is 64 KiB on a 64-bit platform.
const SLOTS_OF_CHUNK: usize = 8 * 1024;

/// Maximum size in bytes of a complete response body that reserves no memory in the [`ResponseBudget`].
pub(crate) const FREE_BYTES: usize = 4 * 1024;

/// Time that a client has to read a response before a new response that needs memory can evict it.
///
/// The value is Kubernetes' `RequestTimeout` in `server/config.go`.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Limits the total memory of the response bodies that clients have not finished reading.
///
/// A response's memory is reserved until the response's [`Reserved`] is dropped, or until the budget evicts
/// the response. A list reserves memory even if the body is small.
pub(crate) struct ResponseBudget {
    slots_max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    slots: usize,
    last: u64,
    /// The responses that have reserved memory, in the order of their start times.
    responses: BTreeMap<u64, Response>,
}

struct Response {
    started: Instant,
    slots: usize,
    content: Weak<dyn Content>,
}

/// The content of a response, which can be evicted before the client has read it.
trait Content: Send + Sync {
    fn evict(&self);
}

/// The content of one response, with its reserved memory. Dropping this value drops the content and releases
/// the memory to the budget.
pub(crate) struct Reserved<T> {
    content: Arc<Mutex<Option<T>>>,
    budget: Arc<ResponseBudget>,
    number: u64,
}

/// Error of [`Reserved::with`] after the budget has evicted the response and dropped its content.
#[derive(Debug, thiserror::Error)]
#[error("the client did not read the response in time")]
pub(crate) struct Evicted;

impl Default for ResponseBudget {
    fn default() -> ResponseBudget {
        ResponseBudget {
            slots_max: SLOTS_MAX,
            open: Mutex::default(),
        }
    }
}

impl ResponseBudget {
    /// Reserves memory for the complete response body `bytes`, and for the copy of one chunk.
    ///
    /// The body is copied in chunks when it is sent.
    ///
    /// # Errors
    ///
    /// Returns a 429 error if the budget has too little free memory.
    pub(crate) fn hold_bytes(self: &Arc<Self>, bytes: Bytes) -> Result<Reserved<Bytes>, ApiError> {
        let slots = bytes.len() / ResponseBudget::SLOT_BYTES;
        self.reserve(slots + slots.min(SLOTS_OF_CHUNK), bytes)
    }

    /// Size in bytes of a slot, the unit in which the budget counts memory.
    ///
    /// A slot has the size of a pointer, because a list response needs one pointer per object.
    pub(crate) const SLOT_BYTES: usize = size_of::<usize>();

    /// Returns the memory that a response with the objects `entries` needs, in slots of
    /// [`SLOT_BYTES`](ResponseBudget::SLOT_BYTES) bytes.
    ///
    /// Each object needs one slot for a pointer. The other slots are for the JSON of the largest object.
    pub(crate) fn slots<'a>(entries: impl ExactSizeIterator<Item = &'a Arc<Entry>>) -> usize {
        let count = entries.len();
        let longest = entries.map(|entry| entry.bytes()).max().unwrap_or(0);
        count + longest / ResponseBudget::SLOT_BYTES
    }

    /// Reserves memory for the content of a response, and for one chunk of the response body.
    ///
    /// `slots` is the memory of `content`, in units of [`SLOT_BYTES`](ResponseBudget::SLOT_BYTES) bytes.
    ///
    /// # Errors
    ///
    /// Returns a 429 error if the budget has too little free memory.
    pub(crate) fn hold<T: Send + 'static>(
        self: &Arc<Self>,
        slots: usize,
        content: T,
    ) -> Result<Reserved<T>, ApiError> {
        self.reserve(slots + SLOTS_OF_CHUNK, content)
    }

    /// Drops the contents of all responses that started at or before `then`, and frees their memory.
    /// [`Reserved::with`] then returns [`Evicted`] for these responses.
    pub(crate) fn evict_until(&self, then: Instant) {
        let evicted = self.open.lock().remove(|started| started <= then);
        for content in evicted {
            content.evict();
        }
    }

    fn reserve<T: Send + 'static>(
        self: &Arc<Self>,
        slots: usize,
        content: T,
    ) -> Result<Reserved<T>, ApiError> {
        let content = Arc::new(Mutex::new(Some(content)));
        let mut open = self.open.lock();
        let evicted = if open.slots + slots > self.slots_max {
            open.remove(|started| started.elapsed() > READ_TIMEOUT)
        } else {
            Vec::new()
        };
        let fits = open.slots + slots <= self.slots_max;
        let number = open.last + 1;
        if fits {
            open.last = number;
            open.slots += slots;
            let erased: Arc<dyn Content> = content.clone();
            let response = Response {
                started: Instant::now(),
                slots,
                content: Arc::downgrade(&erased),
            };
            open.responses.insert(number, response);
        }
        drop(open);
        for content in evicted {
            content.evict();
        }
        if !fits {
            return Err(ApiError::too_many_requests().retry_in(1));
        }
        Ok(Reserved {
            content,
            budget: Arc::clone(self),
            number,
        })
    }
}

impl Open {
    /// Removes the responses whose start time satisfies `is_old`, and returns their contents, oldest first.
    fn remove(&mut self, is_old: impl Fn(Instant) -> bool) -> Vec<Arc<dyn Content>> {
        let mut removed = Vec::new();
        while let Some(oldest) = self.responses.first_entry()
            && is_old(oldest.get().started)
        {
            let response = oldest.remove();
            self.slots -= response.slots;
            removed.extend(response.content.upgrade());
        }
        removed
    }
}

impl<T: Send> Content for Mutex<Option<T>> {
    fn evict(&self) {
        self.lock().take();
    }
}

impl<T> Reserved<T> {
    /// Calls `read` with the content of the response.
    ///
    /// # Errors
    ///
    /// Returns [`Evicted`] if the budget has evicted the response.
    pub(crate) fn with<R>(&self, read: impl FnOnce(&mut T) -> R) -> Result<R, Evicted> {
        self.content.lock().as_mut().map(read).ok_or(Evicted)
    }
}

impl<T> Drop for Reserved<T> {
    fn drop(&mut self) {
        let mut open = self.budget.open.lock();
        if let Some(response) = open.responses.remove(&self.number) {
            open.slots -= response.slots;
        }
    }
}

#[cfg(test)]
impl ResponseBudget {
    pub(crate) fn of(slots_max: usize) -> ResponseBudget {
        ResponseBudget {
            slots_max,
            open: Mutex::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(responses: usize) -> Arc<ResponseBudget> {
        Arc::new(ResponseBudget::of(responses * (SLOTS_OF_CHUNK + 100)))
    }

    #[tokio::test(start_paused = true)]
    async fn unread_responses_are_evicted_after_their_time_when_slots_are_needed() {
        let budget = budget(2);
        let first = budget.hold(100, "first").unwrap();
        tokio::time::advance(READ_TIMEOUT / 2).await;
        let second = budget.hold(100, "second").unwrap();
        let rejected = budget.hold(100, "third").err().expect("no slot is free");
        assert_eq!(
            (rejected.code(), rejected.status().retry_after()),
            (429, Some(1))
        );
        tokio::time::advance(READ_TIMEOUT / 2 + Duration::from_millis(1)).await;
        assert!(first.with(|_| ()).is_ok(), "no request needed its slots");
        let third = budget.hold(100, "third").unwrap();
        assert!(first.with(|_| ()).is_err());
        assert_eq!(second.with(|content| *content).unwrap(), "second");
        drop(first);
        assert!(
            budget.hold(100, "fourth").is_err(),
            "the third holds the slots of the first"
        );
        drop(third);
        assert!(budget.hold(100, "fourth").is_ok());
        drop(second);
        assert_eq!(budget.open.lock().slots, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn evicted_content_is_dropped_although_its_handle_exists() {
        let budget = budget(1);
        let objects = Arc::new(());
        let stopped = budget.hold(1, Arc::clone(&objects)).unwrap();
        tokio::time::advance(2 * READ_TIMEOUT).await;
        let _other = budget.hold(1, ()).unwrap();
        assert_eq!(Arc::strong_count(&objects), 1);
        drop(stopped);
    }

    #[test]
    fn many_large_lists_fit_into_the_budget() {
        assert!(ResponseBudget::default().slots_max / (1_000_000 + SLOTS_OF_CHUNK) >= 64);
    }
}
