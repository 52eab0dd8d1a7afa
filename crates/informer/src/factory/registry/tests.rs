//! Tests races between requests to the registry. Each test runs the steps of a race in a fixed order.

use std::convert::Infallible;

use futures_core::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::{
    factory::{make, scope::Level},
    transport::{Error, ListOptions, ListerWatcher, Response},
};

/// A server that never sends a response.
struct Silent;

impl ListerWatcher for Silent {
    fn list(&self, _: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        Box::pin(std::future::pending())
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.list(options)
    }
}

fn pods() -> Key {
    Key {
        type_id: TypeId::of::<Pod>(),
        kind: ApiResource::erase::<Pod>(&()),
        scope: Scope::resolve(&[&Level::default()], true),
    }
}

fn hold(registry: &Arc<Registry>) -> Lookup<Pod> {
    hold_made(registry, new)
}

fn hold_made(registry: &Arc<Registry>, make: impl FnOnce() -> New<Pod>) -> Lookup<Pod> {
    let any = |_: Option<&_>| Ok::<_, Infallible>(());
    let Ok(found) = registry.get_if_or_make(&pods(), Want::Held, any, make);
    found
}

fn new() -> New<Pod> {
    let (informer, controller) = SharedInformer::builder(Silent).build();
    New {
        registered: Registered {
            informer,
            kind: pods().kind,
            coverage: None,
            options: None,
        },
        run: Some(make::run(controller, || None)),
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_held_again_is_not_retired() {
    let registry = Registry::new(Duration::ZERO);
    let first = hold(&registry);
    assert!(!registry.retire(first.id), "the informer is held");
    registry.release(first.id);
    let second = hold(&registry);
    assert!(second.informer.is_same(&first.informer));
    assert!(!registry.retire(first.id), "the informer is held again");
    registry.release(second.id);
    assert!(registry.retire(first.id));
    assert_eq!(registry.len(), 0);
    let third = hold(&registry);
    assert!(!third.informer.is_same(&first.informer));
    registry.release(first.id);
    assert!(!registry.retire(third.id), "another informer was released");
    registry.shut_down();
    registry.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_must_end_ends_regardless_of_its_holders() {
    let registry = Registry::new(Duration::ZERO);
    let held = hold(&registry);
    let Ending::Told(demand) = registry.end(&held.informer) else {
        panic!("the informer runs");
    };
    registry.release(held.id);
    registry.hold(held.id);
    assert_eq!(*demand.borrow(), Demand::Ended);
    let next = hold(&registry);
    assert!(!next.informer.is_same(&held.informer));
    drop((registry.end(&next.informer), held));
    demand.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_rejected_informer_that_the_constructor_registered_is_not_held() {
    let registry = Registry::new(Duration::ZERO);
    let mut inner = None;
    let refused = registry.get_if_or_make(
        &pods(),
        Want::Held,
        |_| Err("not this one"),
        || {
            inner = Some(hold(&registry));
            new()
        },
    );
    assert_eq!(refused.err(), Some("not this one"));
    let inner = inner.unwrap();
    assert!(!registry.retire(inner.id), "the constructor holds it");
    registry.release(inner.id);
    assert!(registry.retire(inner.id), "nothing else holds it");
    registry.shut_down();
    registry.all_ended().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_constructed_informers_is_registered_and_the_other_never_runs() {
    let registry = Registry::new(Duration::ZERO);
    let mut slow = None;
    let found = hold_made(&registry, || {
        let fast = hold(&registry);
        let loser = new();
        slow = Some((fast, loser.registered.informer.clone()));
        loser
    });
    let (fast, loser) = slow.unwrap();
    assert!(found.informer.is_same(&fast.informer));
    assert_eq!(registry.len(), 1);
    let mut status = loser.status();
    status.wait_for(crate::status::Status::is_stopped).await;
    assert!(!found.informer.is_stopped());
    registry.shut_down();
    registry.all_ended().await;
}
