//! Tests which events a listener receives when it is added after the informer has synced.

use super::*;

fn join(world: &mut World, delivery: Delivery) -> Arc<Buffer<Pod>> {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let new = Listener {
        id: ListenerId(9),
        buffer: Arc::clone(&buffer),
        resync: None,
        delivery,
        has_task: false,
    };
    world
        .processor
        .add(new, None, world.writer.snapshot(), true);
    buffer
}

#[tokio::test]
async fn a_listener_of_all_deliveries_does_not_receive_the_cache_again() {
    let mut world = World::new();
    world.list(&[("a", 1)], true);
    assert_eq!(received(&join(&mut world, Delivery::All)), "synced");
    assert_eq!(
        received(&join(&mut world, Delivery::Changes)),
        "+a@1!, synced"
    );
}

#[tokio::test]
async fn an_empty_cache_adds_no_message() {
    let mut world = World::new();
    for delivery in [Delivery::All, Delivery::Changes] {
        let buffer = join(&mut world, delivery);
        assert_eq!(buffer.depth(), 1, "the marker");
        assert_eq!(received(&buffer), "synced");
    }
}
