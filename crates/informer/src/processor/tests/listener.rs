//! Tests the task that delivers events to a handler: panics of the handler, the closing of the listener
//! during a callback, and the deadline for draining the buffer.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{Heard, World, added, buffer, object, show};
use crate::{
    event_handler::{Callbacks, Event, EventHandler},
    processor::{
        Buffer, Closing, Delivery, Expansion, Listener, ListenerBuffer, ListenerId, Listening,
        Notification, SyncReport, listen,
    },
    reflector::DeltaKind,
};

/// A test handler that waits for a permit before it records each event.
///
/// `handle` panics if the name of the added pod starts with `early`.
/// The future that `handle` returns panics if the name starts with `late`.
struct Gated {
    gate: Arc<Semaphore>,
    heard: Heard,
}

impl EventHandler<Pod> for Gated {
    // Not `async fn`, because the handler must also be able to panic before it returns a future.
    fn handle(&mut self, event: Event<Pod>) -> impl Future<Output = ()> + Send {
        let text = show(&event);
        assert!(!text.starts_with("+early"), "planted");
        async move {
            self.gate.acquire().await.unwrap().forget();
            assert!(!text.starts_with("+late"), "planted");
            self.heard.lock().push(text);
        }
    }
}

struct Told {
    buffer: Arc<Buffer<Pod>>,
    gate: Arc<Semaphore>,
    heard: Heard,
    synced: watch::Receiver<bool>,
    task: JoinSet<()>,
}

fn listening(permits: usize) -> Told {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let (gate, heard) = (Arc::new(Semaphore::new(permits)), Heard::default());
    let handler = Gated {
        gate: Arc::clone(&gate),
        heard: Arc::clone(&heard),
    };
    let (sync_report, _, synced) = SyncReport::new();
    let mut task = JoinSet::new();
    task.spawn(listen(
        handler,
        Listening::new(&buffer, Expansion::default()),
        Arc::from("test"),
        sync_report,
    ));
    Told {
        buffer,
        gate,
        heard,
        synced,
        task,
    }
}

impl Told {
    fn heard(&self) -> String {
        std::mem::take(&mut *self.heard.lock()).join(", ")
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_of_either_kind_the_next_event_comes_a_second_later() {
    for bad in ["early", "late"] {
        let listener = listening(10);
        listener.buffer.push(added(bad, 1));
        listener.buffer.push(added("b", 2));
        listener.buffer.push(Notification::One(Event::Synced));
        sleep(Duration::from_millis(999)).await;
        listener.buffer.push(added("c", 3));
        assert_eq!(listener.heard(), "");
        sleep(Duration::from_millis(2)).await;
        assert_eq!(listener.heard(), "+b@2, synced, +c@3");
        assert!(*listener.synced.borrow());
        assert_eq!(listener.buffer.depth(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_discard_ends_the_pause_after_a_panic_at_once() {
    let mut listener = listening(10);
    listener.buffer.push(added("late", 1));
    sleep(Duration::from_millis(10)).await;
    listener.buffer.push(added("b", 2));
    let began = Instant::now();
    listener.buffer.close(Closing::Discard);
    listener.task.join_next().await.unwrap().unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(
        (
            listener.heard().as_str(),
            listener.buffer.status().discarded
        ),
        ("", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_discard_lets_the_callback_end_and_counts_the_rest_of_its_message() {
    let mut world = World::new();
    world.list(&[("a", 1), ("b", 2), ("c", 3)], true);
    let mut listener = listening(0);
    listener
        .buffer
        .push(Notification::Join(world.writer.snapshot()));
    listener.buffer.push(Notification::One(Event::Synced));
    sleep(Duration::from_secs(1)).await;
    listener.buffer.close(Closing::Discard);
    sleep(Duration::from_secs(1)).await;
    assert!(
        listener.task.try_join_next().is_none(),
        "a callback is in progress"
    );
    listener.gate.add_permits(10);
    listener.task.join_next().await.unwrap().unwrap();
    assert_eq!(listener.heard(), "+a@1!");
    assert_eq!(listener.buffer.status().discarded, 2 + 1);
    assert!(!*listener.synced.borrow());
}

#[tokio::test(start_paused = true)]
async fn a_listener_has_synced_when_the_marker_was_handled_and_not_when_it_was_handed_over() {
    let listener = listening(1);
    listener.buffer.push(added("a", 1));
    listener.buffer.push(Notification::One(Event::Synced));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(listener.heard(), "+a@1");
    assert!(!*listener.synced.borrow(), "its callback is in progress");
    listener.gate.add_permits(1);
    sleep(Duration::from_secs(1)).await;
    assert!(*listener.synced.borrow());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_deadline_and_what_is_left_is_counted() {
    for (allowed, told, left) in [(1, 1, 2), (15, 2, 1), (60, 3, 0)] {
        let mut world = World::new();
        let (buffer, _) = buffer(ListenerBuffer::Grow);
        let heard = Heard::default();
        let notes = Arc::clone(&heard);
        let handler = Callbacks::<Pod>::new().on_add(move |pod, _| {
            let notes = Arc::clone(&notes);
            async move {
                sleep(Duration::from_secs(10)).await;
                notes.lock().push(pod.name().to_owned());
            }
        });
        let listening = listen(
            handler,
            Listening::new(&buffer, Expansion::default()),
            Arc::from("test"),
            SyncReport::new().0,
        );
        let new = Listener {
            id: ListenerId(0),
            buffer,
            resync: None,
            delivery: Delivery::Changes,
            has_task: true,
        };
        let task = Some(Box::pin(listening) as _);
        world
            .processor
            .add(new, task, world.writer.snapshot(), false);
        world.list(&[("a", 1), ("b", 2)], true);
        world.apply(DeltaKind::Added(object("c", 3)), false);
        sleep(Duration::from_millis(1)).await;
        let deadline = Instant::now() + Duration::from_secs(allowed);
        let discarded = world.processor.close(Closing::Drain(deadline)).await;
        // The callback that runs at the deadline is not cancelled.
        assert_eq!((heard.lock().len(), discarded), (told, left));
    }
}
