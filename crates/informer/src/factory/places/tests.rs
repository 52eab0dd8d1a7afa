//! What a race would show now and then, step by step: a place that is held in the very moment in which
//! its informer gives it up.

use futures_core::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;

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
    places.get_or_make(&pods(), Want::Held, || {
        let (informer, controller) = SharedInformer::builder(Silent).build();
        Made {
            informer,
            options: Comparable::constructed(),
            run: Some(make::run(controller, || None)),
        }
    })
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
