//! Tests of how a factory constructs informers: concurrent requests, custom constructors, and constructors
//! that request informers from the same factory.

mod lifetimes;

use std::{sync::Barrier, thread};

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_core::ApiResource;
use kube_informer::{
    Controller, SharedInformer,
    client::{ClientSource, ListWatch},
};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::*;
use crate::setting::factory_builder;

const MINUTE: Duration = Duration::from_secs(60);

const THREADS: usize = 4;

fn factory(server: &Server) -> SharedInformerFactory {
    factory_builder(server.client())
        .initial_list(InitialList::List)
        .build()
}

/// A custom constructor of an informer of the pods in namespace `default`.
fn own(client: impl ClientSource, resync: Duration) -> (SharedInformer<Pod>, Controller<Pod>) {
    SharedInformer::builder(ListWatch::<Pod>::new(client).namespace("default"))
        .initial_list(InitialList::List)
        .name("own")
        .resync(resync)
        .build()
}

/// Calls `ask` in [`THREADS`] threads at the same time, and returns the results.
fn at_once<T: Send>(ask: impl Fn() -> T + Sync) -> Vec<T> {
    let (runtime, together) = (Handle::current(), Barrier::new(THREADS));
    thread::scope(|scope| {
        let asking = [(); THREADS].map(|()| {
            scope.spawn(|| {
                let _inside = runtime.enter();
                together.wait();
                ask()
            })
        });
        asking.map(|thread| thread.join().unwrap()).into()
    })
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_receive_one_informer() {
    for _ in 0..20 {
        let server = Server::builder().build();
        let factory = factory(&server);
        let resource = ApiResource::erase::<Node>(&());
        let typed = at_once(|| factory.informer::<Pod>());
        assert!(typed.iter().all(|other| typed[0].is_same(other)));
        let web = || InformerOptions::<Pod>::new().labels("app=web".parse().unwrap());
        let selecting = at_once(|| factory.informer_with(web()).unwrap());
        assert!(selecting.iter().all(|other| selecting[0].is_same(other)));
        let dynamic = at_once(|| factory.for_resource(&resource).unwrap());
        assert!(dynamic.iter().all(|other| dynamic[0].is_same(other)));
        at_once(|| factory.lister::<ConfigMap>());
        let debug = format!("{factory:?}");
        assert_eq!(debug, "SharedInformerFactory { informers: 4, .. }");
        factory.shutdown().await;
    }
}

/// Regression test for a race in client-go: concurrent calls of `Run` can start an informer twice.
#[tokio::test(start_paused = true)]
async fn concurrent_starts_of_a_factory_start_each_informer_once() {
    for _ in 0..20 {
        let server = Server::builder().seed([pod("a")]).build();
        let factory = factory(&server);
        let pods = factory.informer::<Pod>();
        factory.informer::<ConfigMap>();
        at_once(|| factory.start());
        let both = factory.wait_for_cache_sync().deadline(LONG);
        both.await.unwrap();
        tokio::time::sleep(MINUTE).await;
        assert_eq!(pods.indexer().len(), 1);
        let log = server.requests();
        assert_eq!(log.lists("pods").len(), 1);
        assert_eq!(log.watches("pods").len(), 1);
        assert_eq!(log.lists("configmaps").len(), 1);
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn requesting_a_lister_runs_the_informer() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.lister::<Pod>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(pods.namespace("default").get("a").is_ok());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_custom_constructor_creates_the_informer_that_the_factory_runs() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .resync(MINUTE)
        .resync_for::<Pod>(2 * MINUTE)
        .build();
    let mut period = None;
    let ours = factory.informer_for::<Pod>(|client, resync| {
        period = Some(resync);
        own(client, resync)
    });
    let ours = ours.unwrap();
    assert_eq!(period, Some(2 * MINUTE), "the period of the type is used");
    assert_eq!(ours.name(), "own");
    assert!(factory.informer::<Pod>().is_same(&ours));
    assert!(factory.informer_with(InformerOptions::<Pod>::new()).is_ok());
    let conflict = factory.informer_with(InformerOptions::<Pod>::new().resync(MINUTE));
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the factory already has an informer of Pod in this scope with another constructor; use the same options, or another factory"
    );
    let again = factory.informer_for::<Pod>(|_, _| panic!("the informer exists"));
    assert!(again.unwrap().is_same(&ours));
    let maps = factory.informer::<ConfigMap>();
    let usual = factory.informer_for::<ConfigMap>(|_, _| panic!("the informer exists"));
    assert!(usual.unwrap().is_same(&maps));

    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(
        factory
            .lister::<Pod>()
            .namespace("default")
            .get("a")
            .is_ok()
    );
    factory.shutdown().await;
    assert!(ours.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn of_informers_constructed_concurrently_one_is_shared_and_the_others_never_run() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let constructed = Mutex::new(Vec::new());
    let together = Barrier::new(THREADS);
    let own = |client: Arc<dyn ClientSource>, resync: Duration| {
        together.wait();
        // Meanwhile other kinds can be requested.
        factory.informer::<ConfigMap>();
        let (informer, controller) = own(client, resync);
        constructed.lock().push(informer.clone());
        (informer, controller)
    };
    let made = at_once(|| factory.informer_for::<Pod>(own).unwrap());
    assert!(made.iter().all(|other| made[0].is_same(other)));
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let constructed = constructed.into_inner();
    assert_eq!(constructed.len(), THREADS);
    for one in &constructed {
        assert_eq!(one.is_stopped(), !one.is_same(&made[0]));
    }
    assert_eq!(server.requests().lists("pods").len(), 1);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_constructor_does_not_block_the_next_request() {
    let server = Server::builder().build();
    let factory = factory(&server);
    let attempt = std::panic::AssertUnwindSafe(|| {
        drop(factory.informer_for::<ConfigMap>(|_, _| panic!("planted")));
    });
    assert!(std::panic::catch_unwind(attempt).is_err());
    let maps = at_once(|| factory.informer::<ConfigMap>());
    assert!(maps[0].is_same(&maps[1]));
    let ours = factory.informer_for::<Pod>(own);
    assert_eq!(
        ours.unwrap().name(),
        "own",
        "the panic does not affect the next request"
    );
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_constructor_that_requests_its_own_informer_receives_an_error() {
    fn recursive(
        factory: &SharedInformerFactory,
        errors: &mut Vec<String>,
        client: Arc<dyn ClientSource>,
        resync: Duration,
    ) -> (SharedInformer<Pod>, Controller<Pod>) {
        let inner =
            factory.informer_for(|client, resync| recursive(factory, errors, client, resync));
        errors.push(inner.unwrap_err().to_string());
        own(client, resync)
    }
    let server = Server::builder().build();
    let factory = factory(&server);
    let mut errors = Vec::new();
    let outer =
        factory.informer_for(|client, resync| recursive(&factory, &mut errors, client, resync));
    errors.push(outer.unwrap_err().to_string());
    let expected = "the constructor of the informer of Pod requested that informer from its own factory; build the informer in the constructor instead";
    assert_eq!(errors, [expected; 2]);

    let inner = std::cell::OnceCell::new();
    let through_another = factory.informer_for::<Pod>(|client, resync| {
        let maps = factory.informer_for::<ConfigMap>(|client, _| {
            let usual = inner.get_or_init(|| factory.informer::<Pod>());
            assert_ne!(usual.name(), "own", "it is being constructed");
            SharedInformer::builder(ListWatch::<ConfigMap>::new(client)).build()
        });
        assert!(
            maps.is_ok(),
            "the constructor has not requested its own informer"
        );
        own(client, resync)
    });
    assert_eq!(through_another.unwrap_err().to_string(), expected);
    assert!(factory.informer::<Pod>().is_same(inner.get().unwrap()));
    factory.shutdown().await;
}

/// Three threads construct one informer each. Each constructor requests the informer of the next thread.
#[tokio::test(start_paused = true)]
async fn constructors_that_request_each_other_in_a_cycle_across_threads_do_not_deadlock() {
    for _ in 0..20 {
        let server = Server::builder().build();
        let factory = factory(&server);
        let together = Arc::new(Barrier::new(3));
        let (made, results) = std::sync::mpsc::channel();
        let (pods, maps, nodes) = (made.clone(), made.clone(), made);
        in_a_thread(&factory, &together, move |factory, together| {
            let informer = factory.informer_for::<Pod>(|client, resync| {
                together.wait();
                factory.informer::<ConfigMap>();
                own(client, resync)
            });
            pods.send(informer.unwrap().is_same(&factory.informer::<Pod>()))
        });
        in_a_thread(&factory, &together, move |factory, together| {
            let informer = factory.informer_for::<ConfigMap>(|client, _| {
                together.wait();
                factory.informer::<Node>();
                SharedInformer::builder(ListWatch::<ConfigMap>::new(client)).build()
            });
            maps.send(informer.unwrap().is_same(&factory.informer::<ConfigMap>()))
        });
        in_a_thread(&factory, &together, move |factory, together| {
            let informer = factory.informer_for::<Node>(|client, _| {
                together.wait();
                factory.informer::<Pod>();
                SharedInformer::builder(ListWatch::<Node>::new(client)).build()
            });
            nodes.send(informer.unwrap().is_same(&factory.informer::<Node>()))
        });
        for _ in 0..3 {
            let is_same = results.recv_timeout(Duration::from_secs(10));
            assert_eq!(is_same, Ok(true), "the constructors do not deadlock");
        }
        let debug = format!("{factory:?}");
        assert_eq!(debug, "SharedInformerFactory { informers: 3, .. }");
        factory.shutdown().await;
    }
}

/// Calls `ask` in a new thread, without waiting for it.
///
/// A wait would block the test forever if `ask` deadlocked.
fn in_a_thread<T>(
    factory: &SharedInformerFactory,
    together: &Arc<Barrier>,
    ask: impl FnOnce(&SharedInformerFactory, &Barrier) -> T + Send + 'static,
) {
    let (runtime, factory, together) = (Handle::current(), factory.clone(), Arc::clone(together));
    let thread = thread::Builder::new();
    let spawned = thread.spawn(move || {
        let _inside = runtime.enter();
        ask(&factory, &together);
    });
    drop(spawned.unwrap());
}
