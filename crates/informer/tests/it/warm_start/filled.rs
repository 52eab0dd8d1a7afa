//! Tests that a warm start stores the saved objects in the cache before the first watch.
//!
//! The informer must then sync with every type of queue, even if a handler is blocked.

use std::{num::NonZeroUsize, sync::OnceLock};

use futures_util::future::BoxFuture;
use kube_informer::{
    Indexer,
    queue::{BATCH, InOrder},
    status::Status,
    transport::{Error, ListOptions, ListerWatcher, Response},
};

use super::*;

const QUEUES: [&str; 2] = ["in order", "delta fifo"];

fn queued(builder: Builder<Pod>, queue: &str) -> Builder<Pod> {
    match queue {
        "in order" => builder.queue(InOrder::new()),
        _ => builder.queue(DeltaFifo::new()),
    }
}

fn pods(server: &Server) -> ListWatch<Pod> {
    ListWatch::new(server.client())
}

fn in_namespace(name: &str, namespace: &str) -> serde_json::Value {
    let mut pod = pod(name);
    pod["metadata"]["namespace"] = namespace.into();
    pod
}

/// A `ListerWatcher` that records the number of cached objects at every request.
struct Looking {
    pods: ListWatch<Pod>,
    cache: Arc<OnceLock<Indexer<Pod>>>,
    seen: Trace,
}

impl Looking {
    fn look(&self, verb: &str, options: &ListOptions) {
        let count = self.cache.get().map_or(0, Indexer::len);
        let from = &options.resource_version;
        self.seen.note(format!("{verb} {from}: {count} cached"));
    }
}

impl ListerWatcher for Looking {
    fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.look("list", options);
        self.pods.list(options)
    }

    fn watch(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, Error>> {
        self.look("watch", options);
        self.pods.watch(options)
    }

    fn collection(&self) -> Option<String> {
        self.pods.collection()
    }

    fn server(&self) -> BoxFuture<'_, Result<Option<String>, Error>> {
        self.pods.server()
    }
}

#[tokio::test(start_paused = true)]
async fn all_saved_objects_are_in_the_cache_before_the_first_watch_for_every_queue() {
    let count = 2 * BATCH + 1;
    let server = Server::builder().build();
    server
        .create_all((0..count).map(|n| pod(&format!("p{n}"))))
        .await
        .unwrap();
    let (at, path) = (server.revision(), file("filled"));
    save(&server, warm(&server, &path)).await;
    for queue in QUEUES {
        let (cache, seen) = (Arc::new(OnceLock::new()), Trace::default());
        let source = Looking {
            pods: pods(&server),
            cache: Arc::clone(&cache),
            seen: seen.clone(),
        };
        let builder = SharedInformer::<Pod>::builder(source).warm_start(saved(&path));
        let informer = run(queued(builder, queue));
        cache.set(informer.pods.indexer()).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(
            seen.take(),
            format!("list {at}: 0 cached\nwatch {at}: {count} cached\n"),
            "{queue}"
        );
        informer.stop().await;
    }
}

/// Returns a server with pods in three namespaces, and a function that builds an informer.
///
/// The function's parameters are the server and the type of queue.
fn in_three_namespaces() -> (Server, impl Fn(&Server, &str) -> Builder<Pod>) {
    let namespaces = ["one", "two", "three"];
    let pods_of = |namespace| ["a", "b", "c"].map(|name| in_namespace(name, namespace));
    let server = Server::builder()
        .seed(namespaces.into_iter().flat_map(pods_of))
        .build();
    let informer = move |server: &Server, queue: &str| {
        let builder = SharedInformer::builder(pods(server).namespace(namespaces[0]));
        let rest = namespaces[1..].iter();
        let sources = rest.fold(builder, |builder, namespace| {
            builder.source(pods(server).namespace(*namespace))
        });
        queued(sources.name("pods").rng_seed(1), queue)
    };
    (server, informer)
}

/// Registers a handler whose first call never completes, and whose buffer is limited to one event.
///
/// While the buffer is full, the informer applies no changes from the watch.
fn get_stuck(informer: &Running) {
    let stuck = informer.pods.on_add(|_, _| std::future::pending());
    let one = ListenerBuffer::Block(NonZeroUsize::MIN);
    stuck.buffer(one).register().unwrap();
}

/// Creates and deletes 25 pods, one after the other, and then waits for ten seconds.
async fn change_many(server: &Server) {
    for n in 0..25 {
        let name = format!("new-{n}");
        server.create(in_namespace(&name, "one")).unwrap();
        yield_now().await;
        let name = format!("one/{name}");
        server.delete("v1", "pods", &name).unwrap();
        yield_now().await;
    }
    sleep(Duration::from_secs(10)).await;
}

#[tokio::test(start_paused = true)]
async fn a_handler_blocked_in_the_initial_list_does_not_keep_the_informer_from_syncing() {
    for queue in QUEUES {
        let (server, informer) = in_three_namespaces();
        let path = file(&format!("stuck-{queue}"));
        for expected in ["cold: no store is saved there", "warm: "] {
            let informer = run(informer(&server, queue).warm_start(saved(&path)));
            get_stuck(&informer);
            informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
            let told = started(&informer);
            assert!(told.starts_with(expected), "{queue}: {told}");
            assert_eq!(informer.pods.indexer().len(), 9, "{queue}, {told}");
            informer.pods.save().await.unwrap();
            // Later changes wait as usual.
            let depth = || informer.pods.handlers()[0].depth;
            let before = depth();
            change_many(&server).await;
            assert!(depth() <= before + 1, "{queue}, {told}: {}", depth());
            let saved = informer.pods.save().await;
            let is_refused = matches!(saved, Err(SaveError::Unsettled));
            assert_eq!(is_refused, queue == "delta fifo", "{saved:?}");
            informer.kill().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_buffer_blocks_an_informer_that_waits_for_a_silent_server_to_sync() {
    for (queue, is_warm) in QUEUES.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let (server, informer) = in_three_namespaces();
        let path = file(&format!("held-up-{queue}"));
        let refuse = |verb: fn(&str) -> Match| {
            let refused = verb("pods").in_namespace("two");
            server.faults().answer(refused, 503).times(u64::MAX);
        };
        if is_warm {
            save(&server, informer(&server, queue).warm_start(saved(&path))).await;
        } else {
            refuse(Match::list);
        }
        refuse(Match::watch);
        let informer = run(informer(&server, queue).warm_start(saved(&path)));
        get_stuck(&informer);
        let is_decided = |status: &Status| status.warm_start.is_some();
        informer.pods.status().wait_for(is_decided).await.unwrap();
        // Before a warm start one object is listed, and after it the objects that the watch does not send.
        refuse(Match::list);
        sleep(Duration::from_secs(10)).await;
        let depth = || informer.pods.handlers()[0].depth;
        let before = depth();
        change_many(&server).await;
        assert!(!informer.pods.status().get().synced, "{queue}, {is_warm}");
        assert!(depth() <= before.max(2), "{queue}, {is_warm}: {}", depth());
        server.faults().clear_answers();
        informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
        informer.kill().await;
    }
}
