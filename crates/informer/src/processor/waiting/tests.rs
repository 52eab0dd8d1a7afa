//! What a buffer takes of memory: nothing before it is needed, and little after a burst.

use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;

use super::*;
use crate::object::Object;

impl<K> Waiting<K> {
    fn capacity(&self) -> usize {
        match &self.slots {
            Slots::Each { slots, .. } => slots.capacity(),
            Slots::Merged(slots) => slots.places.capacity(),
        }
    }
}

fn added(name: &str) -> Notification<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let pod = Pod {
        metadata,
        ..Pod::default()
    };
    Notification::One(Event::Added {
        object: Object::new(pod).unwrap(),
        in_initial_list: false,
    })
}

#[test]
fn a_buffer_takes_no_memory_before_something_waits_and_gives_back_what_a_burst_took() {
    for mut waiting in [Waiting::each(), Waiting::merged()] {
        assert_eq!(waiting.capacity(), 0);
        for n in 0..10_000 {
            waiting.push(added(&n.to_string()), Instant::now());
        }
        assert_eq!(waiting.len(), 10_000);
        assert!(waiting.capacity() >= 10_000);
        while waiting.pop().is_some() {}
        waiting.shrink_to(1000);
        assert!(waiting.capacity() < 2000, "{}", waiting.capacity());
    }
}

#[test]
fn what_is_created_and_deleted_again_and_again_leaves_nothing_behind() {
    let mut waiting = Waiting::merged();
    waiting.push(added("first"), Instant::now());
    for n in 0..10_000 {
        let Notification::One(Event::Added { object, .. }) = added(&n.to_string()) else {
            unreachable!("it was made as that");
        };
        let gone = Event::Deleted(crate::object::Deleted::Known(object));
        waiting.push(added(&n.to_string()), Instant::now());
        assert_eq!(waiting.push(Notification::One(gone), Instant::now()), 2);
    }
    assert_eq!((waiting.len(), waiting.pushed()), (1, 20_001));
    assert!(waiting.capacity() < 100, "{}", waiting.capacity());
}
