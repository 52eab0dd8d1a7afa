//! What waits for one watcher: a bounded queue with one sender, the cache, and one reader, the watch's body.
//!
//! Guarantees:
//! - deliveries come out in the order in which they went in, and a full queue takes none;
//! - the reader gets what went in before the sender was dropped, and then the end, unless the sender has abandoned it;
//! - room that a burst has taken is given back once the reader has caught up.
//!
//! Both ends take one lock for one delivery, which is less than a channel for many senders costs, and there are as many of these as watchers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::Delivery;

/// Deliveries for which an empty queue keeps its room.
const ROOM_KEPT: usize = 32;

/// The cache's end.
pub(crate) struct Sender(Arc<Inbox>);

/// The body's end.
pub(crate) struct Receiver(Arc<Inbox>);

/// Why a delivery was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// As many wait as may.
    Full,
    /// Nobody reads any more.
    Gone,
}

struct Inbox {
    capacity: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    deliveries: VecDeque<Delivery>,
    /// Whether one of the ends was dropped.
    over: bool,
    /// Who found nothing.
    reader: Option<Waker>,
}

/// A queue for so many deliveries.
pub(crate) fn inbox(capacity: usize) -> (Sender, Receiver) {
    let inbox = Arc::new(Inbox {
        capacity,
        queue: Mutex::default(),
    });
    (Sender(Arc::clone(&inbox)), Receiver(inbox))
}

// === impl Sender ===

impl Sender {
    pub(crate) fn send(&self, delivery: Delivery) -> Result<(), Refused> {
        let mut queue = self.0.queue.lock();
        if queue.over {
            return Err(Refused::Gone);
        }
        if queue.deliveries.len() >= self.0.capacity {
            return Err(Refused::Full);
        }
        queue.deliveries.push_back(delivery);
        queue.wake_reader();
        Ok(())
    }

    /// Whether an event of this revision or an older one waits.
    pub(crate) fn waits_since(&self, revision: u64) -> bool {
        let queue = self.0.queue.lock();
        let mut events = queue.deliveries.iter().filter_map(Delivery::revision);
        events.next().is_some_and(|oldest| oldest <= revision)
    }

    /// Forgets what waits: the reader finds the end.
    pub(crate) fn abandon(&self) {
        let mut queue = self.0.queue.lock();
        queue.deliveries = VecDeque::new();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.over = true;
        queue.wake_reader();
    }
}

// === impl Receiver ===

impl Receiver {
    /// The next delivery; `None` when there will be none.
    pub(crate) fn poll_next(&mut self, cx: &Context<'_>) -> Poll<Option<Delivery>> {
        let mut queue = self.0.queue.lock();
        if let Some(delivery) = queue.deliveries.pop_front() {
            if queue.deliveries.is_empty() {
                queue.deliveries.shrink_to(ROOM_KEPT);
            }
            return Poll::Ready(Some(delivery));
        }
        if queue.over {
            return Poll::Ready(None);
        }
        match &mut queue.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.over = true;
        queue.deliveries = VecDeque::new();
    }
}

// === impl Queue ===

impl Queue {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn bookmark(polled: Poll<Option<Delivery>>) -> Poll<Option<u64>> {
        polled.map(|delivery| {
            delivery.map(|delivery| match delivery {
                Delivery::Bookmark(revision) => revision,
                other => panic!("only bookmarks were sent: {other:?}"),
            })
        })
    }

    #[test]
    fn deliveries_keep_their_order_and_a_full_queue_takes_none() {
        let cx = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = inbox(2);
        assert_eq!(sender.send(Delivery::Bookmark(1)), Ok(()));
        assert_eq!(sender.send(Delivery::Bookmark(2)), Ok(()));
        assert_eq!(sender.send(Delivery::Bookmark(3)), Err(Refused::Full));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(Some(1)));
        assert_eq!(sender.send(Delivery::Bookmark(4)), Ok(()));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(Some(2)));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(Some(4)));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Pending);
    }

    #[test]
    fn what_was_sent_before_the_end_is_read_before_it() {
        let cx = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = inbox(2);
        sender.send(Delivery::Bookmark(1)).unwrap();
        drop(sender);
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(Some(1)));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(None));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(None));
    }

    #[test]
    fn a_sender_hears_that_nobody_reads() {
        let (sender, receiver) = inbox(2);
        drop(receiver);
        assert_eq!(sender.send(Delivery::Bookmark(1)), Err(Refused::Gone));
    }

    #[test]
    fn whoever_found_nothing_is_woken_once_by_a_delivery_and_by_the_end() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        let count = || woken.0.load(Ordering::Relaxed);
        let (sender, mut receiver) = inbox(3);
        sender.send(Delivery::Bookmark(1)).unwrap();
        assert_eq!(count(), 0, "nobody waits yet");
        assert!(receiver.poll_next(&cx).is_ready());
        assert!(receiver.poll_next(&cx).is_pending());
        sender.send(Delivery::Bookmark(2)).unwrap();
        sender.send(Delivery::Bookmark(3)).unwrap();
        assert_eq!(count(), 1);
        while receiver.poll_next(&cx).is_ready() {}
        drop(sender);
        assert_eq!(count(), 2);
    }

    #[test]
    fn the_room_of_a_burst_is_given_back() {
        let cx = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = inbox(1_000);
        for revision in 0..1_000 {
            sender.send(Delivery::Bookmark(revision)).unwrap();
        }
        while receiver.poll_next(&cx).is_ready() {}
        let room = receiver.0.queue.lock().deliveries.capacity();
        assert!(room <= 2 * ROOM_KEPT, "{room}");
    }
}
