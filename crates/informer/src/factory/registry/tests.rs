//! What a race would show now and then, step by step: a place that is held in the very moment in which
//! its informer gives it up.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_core::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::Handle;

use super::*;
use crate::{
    factory::{make, scope::Level},
    transport::{ByteStream, Error, ListOptions, ListerWatcher},
};

/// A server that never answers.
struct Silent;

impl ListerWatcher for Silent {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        Box::pin(std::future::pending())
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<ByteStream, Error>> {
        self.list(options)
    }
}

fn pods() -> Key {
    let nothing = Level::default();
    let own = (&nothing.everywhere, None);
    Key {
        kind: TypeId::of::<Pod>(),
        names: ["v1", "Pod", "pods"].map(str::to_owned),
        scope: Scope::resolve(own, &nothing, &nothing, true),
    }
}

fn hold(places: &Arc<Places>) -> Found<Pod> {
    places.get_or_make(&pods(), Want::Held, made)
}

fn made() -> Made<Pod> {
    let (informer, controller) = SharedInformer::builder(Silent).build();
    Made {
        informer,
        options: Comparable::constructed(),
        run: Some(make::run(controller, || None)),
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_holds_again_is_not_given_up() {
    let places = Places::new(Duration::ZERO);
    let first = hold(&places);
    assert!(!places.retire(first.id), "it is held");
    places.release(first.id);
    let second = hold(&places);
    assert!(second.informer.is_same(&first.informer));
    assert!(!places.retire(first.id), "it is held again");
    places.release(second.id);
    assert!(places.retire(first.id));
    assert_eq!(places.len(), 0);
    let third = hold(&places);
    assert!(!third.informer.is_same(&first.informer));
    places.release(first.id);
    assert!(!places.retire(third.id), "what was released is another one");
    places.shut_down();
    places.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_is_told_to_end_stays_so_whoever_lets_go_of_it() {
    let places = Places::new(Duration::ZERO);
    let held = hold(&places);
    let Ending::Told(demand) = places.end(&held.informer) else {
        panic!("it runs");
    };
    places.release(held.id);
    places.hold(held.id);
    assert_eq!(*demand.borrow(), Demand::Ended);
    let next = hold(&places);
    assert!(!next.informer.is_same(&held.informer));
    drop((places.end(&next.informer), held));
    demand.closed().await;
}

#[tokio::test(start_paused = true)]
async fn who_does_not_accept_what_the_constructor_put_there_itself_does_not_hold_it() {
    let places = Places::new(Duration::ZERO);
    let mut inner = None;
    let refused = places.get_if_or_make(
        &pods(),
        Want::Held,
        |_| Err("not this one"),
        || {
            inner = Some(hold(&places));
            made()
        },
    );
    assert_eq!(refused.err(), Some("not this one"));
    let inner = inner.unwrap();
    assert!(!places.retire(inner.id), "the constructor holds it");
    places.release(inner.id);
    assert!(places.retire(inner.id), "and nobody else");
    places.shut_down();
    places.all_ended().await;
}

/// Whether this comes to hold while other threads go on.
fn comes(holds: impl Fn() -> bool) -> bool {
    let looks = std::iter::repeat_with(|| {
        thread::yield_now();
        holds()
    });
    looks.take(1_000_000).any(|holds| holds)
}

fn named(name: &str) -> Key {
    Key {
        names: ["v1", name, name].map(str::to_owned),
        ..pods()
    }
}

/// As a constructor does that asks for other places.
fn make(places: &Arc<Places>, runtime: &Handle, key: &Key, ask: impl FnOnce()) {
    let _inside = runtime.enter();
    places.get_or_make(key, Want::Pinned, || {
        ask();
        made()
    });
}

fn until(free: &AtomicBool) {
    comes(|| free.load(Ordering::Relaxed));
}

#[tokio::test]
async fn a_row_of_constructors_that_wait_is_no_circle() {
    let (places, runtime) = (Places::new(Duration::ZERO), Handle::current());
    let [first, second, third] = ["First", "Second", "Third"].map(named);
    let [free, has_first, has_second] = [const { AtomicBool::new(false) }; 3];
    let look = |key, has: &AtomicBool| {
        has.store(places.look::<Pod>(key).is_some(), Ordering::Relaxed);
    };
    let waiting = |count| comes(|| places.state.lock().waiting.len() == count);
    let waited = thread::scope(|scope| {
        scope.spawn(|| make(&places, &runtime, &first, || until(&free)));
        let none_waits = comes(|| places.state.lock().making.len() == 1);
        scope.spawn(|| make(&places, &runtime, &second, || look(&first, &has_first)));
        let one_waits = waiting(1);
        scope.spawn(|| make(&places, &runtime, &third, || look(&second, &has_second)));
        let two_wait = waiting(2);
        free.store(true, Ordering::Relaxed);
        [none_waits, one_waits, two_wait]
    });
    assert_eq!(waited, [true; 3]);
    assert!(has_first.into_inner() && has_second.into_inner());
}

#[tokio::test]
async fn who_waits_is_known_as_long_as_he_does() {
    let (places, runtime) = (Places::new(Duration::ZERO), Handle::current());
    let others = || named("Others");
    let free = [const { AtomicBool::new(false) }; 2];
    let wait = |key: Key| assert!(places.look::<Pod>(&key).is_some());
    let waiting = |key: &Key| {
        let state = places.state.lock();
        let waiting = state.waiting.iter();
        waiting.filter(|(_, wanted)| wanted == key).count()
    };
    let seen = thread::scope(|scope| {
        scope.spawn(|| make(&places, &runtime, &pods(), || until(&free[0])));
        scope.spawn(|| make(&places, &runtime, &others(), || until(&free[1])));
        let both_make = comes(|| places.state.lock().making.len() == 2);
        scope.spawn(|| wait(pods()));
        scope.spawn(|| wait(others()));
        scope.spawn(|| wait(others()));
        let all_wait = comes(|| waiting(&pods()) == 1 && waiting(&others()) == 2);
        free[0].store(true, Ordering::Relaxed);
        let one_has_it = comes(|| waiting(&pods()) == 0 && waiting(&others()) == 2);
        free[1].store(true, Ordering::Relaxed);
        [both_make, all_wait, one_has_it]
    });
    assert_eq!(seen, [true; 3]);
    assert!(places.state.lock().waiting.is_empty());
}
