//! What a listener hears for joining.

use super::*;

fn join(world: &mut World, tells: Tells) -> Arc<Buffer<Pod>> {
    let (buffer, _) = buffer(ListenerBuffer::Grow);
    let new = NewListener {
        id: ListenerId(9),
        buffer: Arc::clone(&buffer),
        resync: None,
        tells,
        task: None,
        closer: Closer::new(&buffer),
    };
    world.processor.add(new, world.writer.snapshot(), true);
    buffer
}

#[tokio::test]
async fn who_hears_everything_is_not_told_the_cache_that_it_knew_before() {
    let mut world = World::new();
    world.list(&[("a", 1)], true);
    assert_eq!(told(&join(&mut world, Tells::Everything)), "synced");
    assert_eq!(told(&join(&mut world, Tells::News)), "+a@1!, synced");
}

#[tokio::test]
async fn an_empty_cache_is_no_message() {
    let mut world = World::new();
    for tells in [Tells::Everything, Tells::News] {
        let buffer = join(&mut world, tells);
        assert_eq!(buffer.depth(), 1, "the marker");
        assert_eq!(told(&buffer), "synced");
    }
}
