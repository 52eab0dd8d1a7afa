//! Who constructs an informer, who runs it, and what a request gets after its end.

use std::{fmt::Write, sync::Barrier, thread};

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube_informer::{
    Controller, SharedInformer,
    client::{ClientSource, ListWatch},
    pruning::{FieldPath, Pruned},
    shared_informer::Stopped,
    status::SyncFailure,
};
use parking_lot::Mutex;
use tokio::{runtime::Handle, task::JoinSet};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

const THREADS: usize = 4;

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
async fn an_own_constructor_makes_the_informer_that_the_factory_runs() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = SharedInformerFactory::builder(server.client())
        .resync(MINUTE)
        .resync_for::<Pod>(2 * MINUTE)
        .build();
    let mut period = None;
    let ours = factory.informer_for::<Pod>(|client, resync| {
        period = Some(resync);
        own(client, resync)
    });
    let ours = ours.unwrap();
    assert_eq!(period, Some(2 * MINUTE), "that of the type");
    assert_eq!(ours.name(), "own");
    assert!(factory.informer::<Pod>().is_same(&ours));
    assert!(factory.informer_with(InformerOptions::<Pod>::new()).is_ok());
    let conflict = factory.informer_with(InformerOptions::<Pod>::new().resync(MINUTE));
    assert_eq!(
        conflict.unwrap_err().to_string(),
        "the factory already has an informer of Pod in this scope with another constructor; use the same options, or another factory"
    );
    let again = factory.informer_for::<Pod>(|_, _| panic!("there is one"));
    assert!(again.unwrap().is_same(&ours));
    let maps = factory.informer::<ConfigMap>();
    let usual = factory.informer_for::<ConfigMap>(|_, _| panic!("there is one"));
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
async fn of_several_that_are_constructed_at_once_the_first_is_shared_and_the_others_never_run() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory(&server);
    let constructed = Mutex::new(Vec::new());
    let together = Barrier::new(THREADS);
    let own = |client: Arc<dyn ClientSource>, resync: Duration| {
        together.wait();
        // Meanwhile other kinds can be had.
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
async fn a_constructor_that_panics_leaves_the_kind_to_the_next_request() {
    let server = Server::builder().build();
    let factory = factory(&server);
    let attempt = std::panic::AssertUnwindSafe(|| {
        drop(factory.informer_for::<ConfigMap>(|_, _| panic!("on purpose")));
    });
    assert!(std::panic::catch_unwind(attempt).is_err());
    let maps = at_once(|| factory.informer::<ConfigMap>());
    assert!(maps[0].is_same(&maps[1]));
    let ours = factory.informer_for::<Pod>(own);
    assert_eq!(ours.unwrap().name(), "own", "the panic is over");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_constructor_that_requests_its_own_informer_is_an_error_and_calls_itself_once() {
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
        assert!(maps.is_ok(), "it has not requested itself");
        own(client, resync)
    });
    assert_eq!(through_another.unwrap_err().to_string(), expected);
    assert!(factory.informer::<Pod>().is_same(inner.get().unwrap()));
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
            assert_eq!(is_same, Ok(true), "nobody waits for ever");
        }
        let debug = format!("{factory:?}");
        assert_eq!(debug, "SharedInformerFactory { informers: 3, .. }");
        factory.shutdown().await;
    }
}

/// The test does not join the threads, which do not end if constructors block each other.
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
        "the factory already has another informer of Pod; stop that one first, or use it"
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
        text.contains(" (v1 Pod) did not sync") && text.ends_with("not synced, not started"),
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
async fn a_factory_lists_what_its_informers_cover_and_how_they_are_getting_on() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let factory = SharedInformerFactory::builder(server.client())
        .namespaces(["default", "shop"])
        .build();
    let status: FieldPath = "status".parse().unwrap();
    let options = InformerOptions::<Pruned<Pod>>::new().labels("!batch".parse().unwrap());
    let pods = factory
        .informer_with(options.keep([status]).packed())
        .unwrap();
    pods.on_delete(|_| {}).name("cleanup").register().unwrap();
    let (theirs, _controller) = own(server.client(), Duration::ZERO);
    factory.adopt(theirs).unwrap();
    factory.informer::<PartialObjectMeta<Node>>();
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    pods.handlers_idle().await;

    let mut listing = String::new();
    for informer in factory.informers() {
        let kind = informer.kind();
        writeln!(
            listing,
            "{} ({} {})",
            informer.name(),
            kind.api_version,
            kind.kind
        )
        .unwrap();
        let handlers = informer.handlers();
        let names: Vec<_> = handlers.iter().map(|handler| &*handler.name).collect();
        let objects = informer.memory().objects;
        writeln!(listing, "  {objects} objects, handlers {names:?}").unwrap();
        let Some(coverage) = informer.coverage() else {
            listing += "  unknown\n";
            continue;
        };
        let (form, metadata) = (coverage.representation, coverage.is_metadata_only);
        writeln!(listing, "  {form:?}, metadata only: {metadata}").unwrap();
        if let Some(kept) = &coverage.kept_fields {
            let kept: Vec<_> = kept.iter().map(ToString::to_string).collect();
            writeln!(listing, "  keeps {kept:?}").unwrap();
        }
        for section in &coverage.sections {
            let namespace = section.namespace.as_deref().unwrap_or("all");
            writeln!(
                listing,
                "  in {namespace}: labels [{}], fields [{}]",
                section.labels, section.fields
            )
            .unwrap();
        }
    }
    expect![[r#"
        pods in default, shop with labels !batch (v1 Pod)
          2 objects, handlers ["cleanup"]
          Packed, metadata only: false
          keeps ["status"]
          in default: labels [!batch], fields []
          in shop: labels [!batch], fields []
        own (v1 Pod)
          0 objects, handlers []
          unknown
        metadata of nodes (v1 Node)
          0 objects, handlers []
          Decoded, metadata only: true
          in all: labels [], fields []
    "#]]
    .assert_eq(&listing);
    factory.shutdown().await;
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
    let constructed = constructed.unwrap();
    for wait in [
        never_ran.wait_for_sync(),
        late.wait_for_sync(),
        constructed.wait_for_sync(),
    ] {
        let error = wait.deadline(LONG).await.unwrap_err().to_string();
        let expected = "was stopped before it synced: not synced, stopped";
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
async fn waiting_for_a_factory_that_was_not_started_fails_at_once_and_names_its_informers() {
    let server = Server::builder().build();
    let (ours, theirs) = (factory(&server), factory(&server));
    assert!(ours.wait_for_cache_sync().await.is_ok(), "it has none");
    let nodes = theirs.hold::<Node>();
    ours.adopt((*nodes).clone()).unwrap();
    ours.wait_for_cache_sync()
        .await
        .expect("what others run is waited for");
    ours.informer::<Pod>();
    let error = ours.wait_for_cache_sync().await.unwrap_err();
    let [error] = &*error.unsynced else {
        panic!("one of them was not started: {error}");
    };
    assert_eq!(error.failure, SyncFailure::NotStarted);
    let expected = "pods (v1 Pod) can't sync, as its factory was not started: not synced, not started; call start of the factory before the wait";
    assert_eq!(error.to_string(), expected);
    ours.start();
    ours.informer::<ConfigMap>();
    ours.wait_for_cache_sync()
        .await
        .expect("the others were started");
    ours.shutdown().await;
    drop(nodes);
    theirs.shutdown().await;
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
