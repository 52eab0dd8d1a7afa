//! Implements the bounded queue between the watch cache and the response body of one watch.
//!
//! The queue contains deliveries: events, bookmarks, and bytes that a test injects into the response body.
//!
//! Guarantees:
//! - the receiver gets the deliveries in the order in which they were sent;
//! - a full queue rejects a delivery, and the sender does not wait;
//! - after the sender is dropped, the receiver gets the remaining deliveries and then the end of the queue;
//! - after [`Sender::abandon`], the receiver gets none of the deliveries that were queued;
//! - a queue that was long and is empty again keeps memory for only a few deliveries.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::Delivery;

/// Maximum number of deliveries for which an empty queue keeps memory.
const ROOM_KEPT: usize = 32;

/// The sender of a watcher's queue, held by the watch cache.
pub(crate) struct Sender(Arc<Inbox>);

/// The receiver of a watcher's queue, held by the response body.
pub(crate) struct Receiver(Arc<Inbox>);

/// The reason why a queue rejected a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    /// The receiver was dropped.
    Gone,
}

struct Inbox {
    capacity: usize,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    deliveries: VecDeque<Delivery>,
    /// Whether the sender or the receiver was dropped.
    over: bool,
    /// Waker of the task that waits for a delivery.
    reader: Option<Waker>,
}

/// Creates an empty queue for at most `capacity` deliveries.
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

    /// Returns whether the queue is more than half full.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.queue.lock().deliveries.len() > self.0.capacity / 2
    }

    /// Returns whether the queue contains an event whose revision is at most `revision`.
    ///
    /// Bookmarks and injected bytes in the queue are ignored.
    pub(crate) fn waits_since(&self, revision: u64) -> bool {
        let queue = self.0.queue.lock();
        let mut events = queue.deliveries.iter().filter_map(Delivery::revision);
        events.next().is_some_and(|oldest| oldest <= revision)
    }

    /// Drops all queued deliveries, but does not close the queue.
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
    /// Polls for the next delivery. Returns `None` if the sender was dropped and no delivery is left.
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
    fn deliveries_keep_their_order_and_a_full_queue_rejects() {
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
    fn deliveries_sent_before_the_end_are_received() {
        let cx = Context::from_waker(Waker::noop());
        let (sender, mut receiver) = inbox(2);
        sender.send(Delivery::Bookmark(1)).unwrap();
        drop(sender);
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(Some(1)));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(None));
        assert_eq!(bookmark(receiver.poll_next(&cx)), Poll::Ready(None));
    }

    #[test]
    fn a_send_after_the_receiver_is_dropped_fails() {
        let (sender, receiver) = inbox(2);
        drop(receiver);
        assert_eq!(sender.send(Delivery::Bookmark(1)), Err(Refused::Gone));
    }

    #[test]
    fn a_waiting_receiver_is_woken_by_a_delivery_and_by_the_end() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        let count = || woken.0.load(Ordering::Relaxed);
        let (sender, mut receiver) = inbox(3);
        sender.send(Delivery::Bookmark(1)).unwrap();
        assert_eq!(count(), 0, "no receiver waits yet");
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
    fn the_memory_of_a_burst_is_freed() {
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
