//! Who fills a place, who runs what is in it, and what is there after its end.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use k8s_openapi::api::core::v1::{ConfigMap, Node};

use kube_core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube_informer::{
    Controller, SharedInformer,
    client::{ClientSource, ListWatch},
    shared_informer::Stopped,
};
use tokio::{runtime::Handle, task::JoinSet};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn factory(server: &Server) -> SharedInformerFactory {
    SharedInformerFactory::builder(server.client())
        .initial_list(InitialList::List)
        .build()
}

/// A user's own constructor: of one namespace.
fn own(client: impl ClientSource, resync: Duration) -> (SharedInformer<Pod>, Controller<Pod>) {
    SharedInformer::builder(ListWatch::<Pod>::new(client).namespace("default"))
        .initial_list(InitialList::List)
        .name("own")
        .resync(resync)
        .build()
}

/// What each of several threads gets that ask at the same moment.
fn at_once<T: Send>(ask: impl Fn() -> T + Sync) -> Vec<T> {
    const THREADS: usize = 4;
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
async fn threads_that_ask_at_the_same_moment_get_one_informer() {
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

/// client-go's `Run` checks and starts in two steps, so two at once may both start.
#[tokio::test(start_paused = true)]
async fn a_factory_that_is_started_by_many_at_once_starts_each_informer_once() {
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
async fn a_lister_alone_is_enough_for_the_informer_to_run() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.lister::<Pod>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(pods.namespace("default").get("a").is_ok());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_own_constructor_fills_the_place_and_the_factory_runs_what_it_made() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = SharedInformerFactory::builder(server.client())
        .default_resync(MINUTE)
        .resync_for::<Pod>(2 * MINUTE)
        .build();
    let mut period = None;
    let ours = factory.informer_for::<Pod>(|client, resync| {
        period = Some(resync);
        own(client, resync)
    });
    assert_eq!(period, Some(2 * MINUTE), "that of the type");
    assert_eq!(ours.name(), "own");
    assert!(factory.informer::<Pod>().is_same(&ours));
    assert!(factory.informer_with(InformerOptions::<Pod>::new()).is_ok());
    let conflict = factory.informer_with(InformerOptions::<Pod>::new().resync(MINUTE));
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the informer of Pod in this scope exists with another constructor"
    );
    let again = factory.informer_for::<Pod>(|_, _| panic!("the place is taken"));
    assert!(again.is_same(&ours));
    let maps = factory.informer::<ConfigMap>();
    let usual = factory.informer_for::<ConfigMap>(|_, _| panic!("the place is taken"));
    assert!(usual.is_same(&maps));

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
async fn an_own_constructor_is_called_once_however_many_threads_bring_one() {
    for _ in 0..20 {
        let server = Server::builder().build();
        let factory = factory(&server);
        let calls = AtomicUsize::new(0);
        let slow = |client: Arc<dyn ClientSource>, resync: Duration| {
            calls.fetch_add(1, Ordering::Relaxed);
            // Meanwhile the others ask, and other kinds can be had.
            factory.informer::<ConfigMap>();
            thread::yield_now();
            own(client, resync)
        };
        let made = at_once(|| factory.informer_for::<Pod>(slow));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert!(made.iter().all(|other| made[0].is_same(other)));
        factory.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_constructor_that_panics_or_asks_for_its_own_type_leaves_the_place_to_others() {
    let server = Server::builder().build();
    let factory = factory(&server);
    let attempt = std::panic::AssertUnwindSafe(|| {
        factory.informer_for::<ConfigMap>(|_, _| panic!("on purpose"));
    });
    assert!(std::panic::catch_unwind(attempt).is_err());
    let maps = at_once(|| factory.informer::<ConfigMap>());
    assert!(maps[0].is_same(&maps[1]), "nobody waits for it");

    let mut inner = None;
    let outer = factory.informer_for::<Pod>(|client, resync| {
        inner = Some(factory.informer::<Pod>());
        own(client, resync)
    });
    assert!(outer.is_same(&inner.unwrap()), "first come, first served");
    assert!(factory.informer::<Pod>().is_same(&outer));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn constructors_that_ask_for_each_others_kinds_do_not_stand_still() {
    let server = Server::builder().build();
    let factory = factory(&server);
    let inner = factory.informer_for::<Pod>(|client, resync| {
        factory.informer_for::<ConfigMap>(|client, _| {
            assert_ne!(factory.informer::<Pod>().name(), "own", "it is being made");
            SharedInformer::builder(ListWatch::<ConfigMap>::new(client)).build()
        });
        own(client, resync)
    });
    assert_ne!(
        inner.name(),
        "own",
        "what was asked for first has the place"
    );
    factory.shutdown().await;
}

/// Three threads, each of which makes a kind and asks for that of the next one when all are at it.
#[tokio::test(start_paused = true)]
async fn constructors_in_several_threads_that_ask_in_a_circle_do_not_stand_still() {
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
            pods.send(informer.is_same(&factory.informer::<Pod>()))
        });
        in_a_thread(&factory, &together, move |factory, together| {
            let informer = factory.informer_for::<ConfigMap>(|client, _| {
                together.wait();
                factory.informer::<Node>();
                SharedInformer::builder(ListWatch::<ConfigMap>::new(client)).build()
            });
            maps.send(informer.is_same(&factory.informer::<ConfigMap>()))
        });
        in_a_thread(&factory, &together, move |factory, together| {
            let informer = factory.informer_for::<Node>(|client, _| {
                together.wait();
                factory.informer::<Pod>();
                SharedInformer::builder(ListWatch::<Node>::new(client)).build()
            });
            nodes.send(informer.is_same(&factory.informer::<Node>()))
        });
        for _ in 0..3 {
            let is_same = results.recv_timeout(Duration::from_secs(10));
            assert_eq!(is_same, Ok(true), "nobody waits for ever");
        }
        let debug = format!("{factory:?}");
        assert_eq!(debug, "SharedInformerFactory { informers: 3, .. }");
        factory.shutdown().await;
    }
}

/// Nobody waits for the thread's end, which does not come if constructors stand still.
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

#[tokio::test(start_paused = true)]
async fn an_adopted_informer_is_shared_and_waited_for_but_neither_started_nor_stopped() {
    let server = Server::builder().seed([pod("a")]).build();
    let (theirs, ours) = (factory(&server), factory(&server));
    let pods = theirs.informer::<Pod>();
    ours.adopt(pods.clone()).unwrap();
    ours.adopt(pods.clone())
        .expect("the same one again is fine");
    assert!(ours.informer::<Pod>().is_same(&pods));
    let conflict = ours.adopt(factory(&server).informer::<Pod>());
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the factory has another informer of Pod already"
    );
    ours.informer::<ConfigMap>();
    ours.start();
    let error = ours
        .wait_for_cache_sync()
        .deadline(MINUTE)
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(" (v1 Pod) has not") && text.ends_with("not synced, not started"),
        "{text}"
    );

    theirs.start();
    ours.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(ours.lister::<Pod>().namespace("default").get("a").is_ok());
    assert_eq!(server.requests().lists("pods").len(), 1);
    ours.shutdown().await;

    server.create(pod("b")).unwrap();
    let reached = pods.wait_for_revision(server.revision(), LONG);
    reached
        .await
        .expect("it outlives the factory that adopted it");
    assert!(ours.informer::<Pod>().is_same(&pods));
    theirs.shutdown().await;
    assert!(pods.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_somebody_else_runs_is_replaced_when_it_has_stopped() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let (pods, controller) = own(server.client(), Duration::ZERO);
    factory.adopt(pods.clone()).unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(sleep(MINUTE)));
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert!(factory.informer::<Pod>().is_same(&pods));
    tasks.join_next().await.unwrap().unwrap().unwrap();

    let fresh = factory.informer::<Pod>();
    assert!(!fresh.is_same(&pods) && !fresh.is_stopped());
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    assert_eq!((fresh.indexer().len(), pods.indexer().len()), (1, 1));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_shutdown_the_same_informers_are_there_stopped_and_readable() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let pods = factory.informer::<Pod>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let never_ran = factory.informer::<ConfigMap>();
    factory.shutdown().await;

    assert!(factory.informer::<Pod>().is_same(&pods));
    assert!(
        factory
            .lister::<Pod>()
            .namespace("default")
            .get("a")
            .is_ok()
    );
    assert_eq!(pods.on_delete(|_| {}).register().unwrap_err(), Stopped);
    assert!(factory.informer::<ConfigMap>().is_same(&never_ran));
    let late = factory.informer::<PartialObjectMeta<Pod>>();
    let constructed = factory.informer_for::<Node>(|client, _| {
        SharedInformer::builder(ListWatch::<Node>::new(client)).build()
    });
    for wait in [
        never_ran.wait_for_sync(),
        late.wait_for_sync(),
        constructed.wait_for_sync(),
    ] {
        let error = wait.deadline(LONG).await.unwrap_err().to_string();
        let expected = "ended before it had synced: not synced, stopped";
        assert!(error.ends_with(expected), "{error}");
    }
    factory.start();
    assert!(factory.informer::<PartialObjectMeta<Pod>>().is_same(&late));
    assert_eq!(late.subscribe().unwrap_err(), Stopped);
    factory.shutdown().await;
    assert_eq!(server.requests().lists("pods").len(), 1, "nothing was run");
    assert_eq!(server.requests().lists("nodes").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn one_wait_is_over_informers_of_several_types_and_factories() {
    let server = Server::builder().seed([pod("a")]).build();
    let (one, two) = (factory(&server), factory(&server));
    let pods: SharedInformer<Pod> = one.informer();
    let maps: SharedInformer<DynamicObject> = two
        .for_resource(&ApiResource::erase::<ConfigMap>(&()))
        .unwrap();
    let (alone, controller) = own(server.client(), Duration::ZERO);
    let waits = || {
        wait_for_cache_sync([
            pods.wait_for_sync(),
            maps.wait_for_sync(),
            alone.wait_for_sync(),
        ])
    };
    one.start();
    let error = waits().deadline(MINUTE).await.unwrap_err();
    let unsynced = error.unsynced.iter();
    let kinds: Vec<_> = unsynced.map(|error| &*error.expects).collect();
    assert_eq!(kinds, ["v1 ConfigMap", "v1 Pod"]);
    two.start();
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.run(std::future::pending()));
    waits().deadline(LONG).await.unwrap();
    assert!(pods.has_synced() && maps.has_synced() && alone.has_synced());
    one.shutdown().await;
    two.shutdown().await;
}
