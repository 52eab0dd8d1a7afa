//! Tests that the queue of waiting messages does not grow when an object is created and deleted repeatedly.

use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;

use super::*;
use crate::object::Object;

impl<K> Waiting<K> {
    pub(in crate::processor) fn capacity(&self) -> usize {
        match &self.slots {
            Slots::Each { slots, .. } => slots.capacity(),
            Slots::Merged(slots) => slots.positions.capacity(),
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
fn repeated_creation_and_deletion_of_an_object_uses_constant_memory() {
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
