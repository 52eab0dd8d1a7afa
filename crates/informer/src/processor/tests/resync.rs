//! Tests when a resync of a listener is due. Also tests that a subscription can still receive its buffered
//! events after the processor was closed with [`Closing::Drain`].

use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task::spawn};

use super::*;
use crate::processor::Closing;

const PERIOD: Duration = Duration::from_secs(10);

#[tokio::test(start_paused = true)]
async fn the_first_resync_is_due_one_period_after_the_start() {
    let mut world = World::new();
    let _listener = world.join(ListenerBuffer::Grow, false);
    advance(PERIOD).await;
    assert_pending!(spawn(world.processor.next_resync()).poll());
    world.processor.started();
    let mut next = spawn(world.processor.next_resync());
    assert_pending!(next.poll());
    advance(Duration::from_millis(9_999)).await;
    assert_pending!(next.poll());
    advance(Duration::from_millis(1)).await;
    assert_ready!(next.poll());
}

#[tokio::test(start_paused = true)]
async fn an_unfinished_resync_skips_further_ones_until_it_is_delivered() {
    let mut world = World::new();
    let (_, buffer) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("a", 1)], true);
    received(&buffer);
    world.processor.started();
    for _ in 0..2 {
        advance(PERIOD).await;
        assert!(world.processor.tick());
        world.apply(DeltaKind::SyncAll, false);
        advance(PERIOD).await;
        assert!(!world.processor.tick(), "it waits");
        let being_told = buffer.next().now_or_never().unwrap();
        advance(PERIOD).await;
        assert!(!world.processor.tick(), "it is being delivered");
        drop(being_told);
        assert_eq!(received(&buffer), "", "nothing else waits");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_drain_remaining_events_can_still_be_received() {
    let mut world = World::new();
    let (_, buffer) = world.join(ListenerBuffer::Grow, false);
    world.list(&[("a", 1)], true);
    let deadline = Instant::now() + PERIOD;
    assert_eq!(world.processor.close(Closing::Drain(deadline)).await, 0);
    assert_eq!(received(&buffer), "+a@1!");
    assert!(!buffer.is_discarding());
}
