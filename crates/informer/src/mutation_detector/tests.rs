//! Tests which object states the mutation detector copies, when it compares them, and when it drops a copy.
//! The tests run without an informer.

use std::collections::BTreeMap;

use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_core::Resource;
use parking_lot::Mutex;
use tokio::time::advance;

use super::*;

/// An object whose `count` a test can change inside an `Arc`.
///
/// The comparison `a == b` panics if the `count` of `a` is [`POISON`].
#[derive(Debug, Default)]
struct Tally {
    metadata: ObjectMeta,
    count: Mutex<f64>,
}

const POISON: f64 = -1.0;

impl Clone for Tally {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            count: Mutex::new(*self.count.lock()),
        }
    }
}

impl PartialEq for Tally {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (*self.count.lock(), *other.count.lock());
        assert!(ours != POISON, "poisoned");
        ours == theirs && self.metadata == other.metadata
    }
}

impl Resource for Tally {
    type DynamicType = ();
    type Scope = ClusterResourceScope;

    fn kind((): &()) -> std::borrow::Cow<'_, str> {
        "Tally".into()
    }

    fn group((): &()) -> std::borrow::Cow<'_, str> {
        "example.com".into()
    }

    fn version((): &()) -> std::borrow::Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> std::borrow::Cow<'_, str> {
        "tallies".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn tally(name: &str) -> Object<Tally> {
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        resource_version: Some("1".to_owned()),
        ..ObjectMeta::default()
    };
    Object::new(Tally {
        metadata,
        ..Tally::default()
    })
    .unwrap()
}

fn set(object: &Object<Tally>, count: f64) {
    *object.live().unwrap().count.lock() = count;
}

fn names(errors: &[Error]) -> Vec<String> {
    let name = |error: &Error| match error {
        Error::Mutated { object, revision } => format!("{object}@{revision}"),
        other => panic!("{other}"),
    };
    errors.iter().map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn states_of_every_kind_of_delta_are_checked_and_reported_once() {
    let objects: BTreeMap<&str, Object<Tally>> = [
        "added", "deleted", "last", "listed", "put", "synced", "updated",
    ]
    .map(|name| (name, tally(name)))
    .into();
    let take = |name: &str| objects[name].clone();
    let mut detector = MutationDetector::new();
    for delta in [
        DeltaKind::Added(take("added")),
        DeltaKind::Updated(take("updated")),
        DeltaKind::Replaced(take("put")),
        DeltaKind::Sync(take("synced")),
        DeltaKind::Deleted(Deleted::Known(take("deleted"))),
        DeltaKind::Deleted(Deleted::FinalStateUnknown {
            name: ObjectName::new(None, "last"),
            last_known: Some(take("last")),
        }),
        DeltaKind::ReplacedAll {
            objects: vec![take("listed")],
            revision: ResourceVersion::from("1"),
        },
    ] {
        detector.take_in(&delta);
    }
    assert_eq!(names(&detector.check()), [""; 0], "no object was changed");
    for object in objects.values() {
        set(object, 1.0);
    }
    let mut found = names(&detector.check());
    found.sort();
    let all: Vec<_> = objects.keys().map(|name| format!("{name}@1")).collect();
    assert_eq!(found, all);
    set(&objects["added"], 2.0);
    assert_eq!(
        names(&detector.check()),
        [""; 0],
        "a change is reported once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_dropped_with_its_state() {
    let mut detector = MutationDetector::new();
    let (kept, dropped) = (tally("kept"), tally("dropped"));
    let body = dropped.get().unwrap();
    detector.copy(&kept);
    detector.copy(&dropped);
    drop(dropped);
    assert!(detector.check().is_empty());
    assert_eq!(detector.copies.len(), 2, "the body is still referenced");
    drop(body);
    assert!(detector.check().is_empty());
    assert_eq!(detector.copies.len(), 1);
    drop(kept);
    assert!(detector.check().is_empty());
    assert_eq!(detector.copies.capacity(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_check_is_due_each_second_unless_nothing_can_be_compared() {
    let mut detector = MutationDetector::new();
    let mut idle = tokio_test::task::spawn(clock::until(detector.due()));
    assert!(idle.poll().is_pending());
    advance(10 * PERIOD).await;
    assert!(idle.poll().is_pending(), "no timer is set");
    drop(idle);

    let object = tally("a");
    detector.copy(&object);
    let before = Instant::now();
    clock::until(detector.due()).await;
    assert_eq!(before.elapsed(), PERIOD);
    detector.check();
    clock::until(detector.due()).await;
    assert_eq!(before.elapsed(), 2 * PERIOD);
}

#[tokio::test(start_paused = true)]
async fn a_large_cache_is_compared_in_slices_without_a_pause() {
    let objects: Vec<_> = (0..=2 * SLICE).map(|n| tally(&n.to_string())).collect();
    let mut detector = MutationDetector::new();
    for object in &objects {
        detector.copy(object);
    }
    clock::until(detector.due()).await;
    let due = Instant::now();
    set(objects.last().unwrap(), 1.0);
    for _ in 0..2 {
        assert_eq!(names(&detector.check()), [""; 0]);
        clock::until(detector.due()).await;
        assert_eq!(Instant::now(), due, "the next slice follows at once");
    }
    let last = format!("{}@1", 2 * SLICE);
    assert_eq!(names(&detector.check()), [last]);
    clock::until(detector.due()).await;
    assert_eq!(Instant::now(), due + PERIOD);
}

#[tokio::test(start_paused = true)]
async fn the_last_check_starts_over_and_compares_all_objects() {
    let objects: Vec<_> = (0..2 * SLICE).map(|n| tally(&n.to_string())).collect();
    let mut detector = MutationDetector::new();
    for object in &objects {
        detector.copy(object);
    }
    assert!(detector.check().is_empty(), "the first half");
    set(&objects[0], 1.0);
    // Not the last object, which is moved to the position of the first when that is removed.
    let far = 3 * SLICE / 2;
    set(&objects[far], 1.0);
    let far = format!("{far}@1");
    assert_eq!(names(&detector.check_all()), ["0@1".to_owned(), far]);
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_compared_are_not_checked() {
    let mut detector = MutationDetector::new();
    let (unequal, broken) = (tally("unequal"), tally("broken"));
    set(&unequal, f64::NAN);
    detector.copy(&unequal);
    assert_eq!(
        detector.copies.len(),
        0,
        "the object is not equal to itself"
    );
    detector.copy(&broken);
    set(&broken, POISON);
    assert!(detector.check().is_empty(), "the comparison panics");
    assert_eq!(detector.copies.len(), 0);
}
