//! Tests of transforms. A transform runs once for each received state of an object, before the cache and the
//! handlers receive this state. It never runs on a cached object.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Deleted, Object, SharedInformer,
    queue::{DeltaFifo, InOrder, Queue},
};
use kube_informer_apiserver::Server;
use tokio::{task::JoinSet, time::sleep};

use crate::setting::{Trace, builder, labelled, pod, run};

/// Key of the annotation that counts how often the object was transformed.
const TIMES: &str = "transformed";

/// Returns a transform that counts its calls, in `calls` and in the annotation [`TIMES`].
fn count(calls: &Arc<AtomicUsize>) -> impl Fn(&mut Pod) + Send + Sync + 'static + use<> {
    let calls = Arc::clone(calls);
    move |pod| {
        calls.fetch_add(1, Ordering::Relaxed);
        let times = pod
            .annotations()
            .get(TIMES)
            .map_or(0, |n| n.parse().unwrap());
        let times: u32 = times + 1;
        pod.annotations_mut()
            .insert(TIMES.to_owned(), times.to_string());
    }
}

fn times(pod: &Object<Pod>) -> String {
    let annotations = pod.live().unwrap().annotations();
    annotations.get(TIMES).cloned().unwrap_or_default()
}

fn listen(pods: &SharedInformer<Pod>) -> Trace {
    let trace = Trace::default();
    let (adds, updates, deletes) = (trace.clone(), trace.clone(), trace.clone());
    pods.on_add(move |pod, _| adds.note(format!("+{pod:?} ×{}", times(&pod))))
        .on_update(move |old, new| {
            updates.note(format!(
                "{old:?} ×{} → {} ×{}",
                times(&old),
                new.revision(),
                times(&new)
            ));
        })
        .on_delete(move |gone| {
            let missed = matches!(gone, Deleted::FinalStateUnknown { .. });
            let last = gone.object().unwrap();
            deletes.note(format!("-{last:?} ×{} missed: {missed}", times(last)));
        })
        .register()
        .unwrap();
    trace
}

/// Runs an informer with `queue` through changes, a relist and a resync.
///
/// Returns the informer's events, and the number of calls of the transform.
async fn story(queue: impl Queue<Pod> + 'static) -> (String, usize) {
    let server = Server::builder()
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    let calls = Arc::new(AtomicUsize::new(0));
    let informer = run(builder(&server)
        .queue(queue)
        .resync(Duration::from_secs(20))
        .transform(count(&calls)));
    let trace = listen(&informer.pods);
    informer.caught_up(&server).await;
    server.update(labelled("a", "x")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    informer.caught_up(&server).await;
    sleep(Duration::from_secs(2)).await;

    trace.note("-- a list");
    server.faults().cut_watches();
    server.delete("v1", "pods", "default/c").unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    trace.note("-- a resync");
    sleep(Duration::from_secs(20)).await;
    let cached = informer.pods.indexer().list();
    assert!(cached.iter().all(|pod| times(pod) == "1"));
    informer.stop().await;
    (trace.take(), calls.load(Ordering::Relaxed))
}

#[tokio::test(start_paused = true)]
async fn each_state_is_transformed_once_and_only_transformed_states_are_visible() {
    let (story_in_order, calls) = story(InOrder::new()).await;
    expect![[r#"
        +default/a@1 ×1
        +default/b@2 ×1
        +default/c@3 ×1
        default/a@1 ×1 → 4 ×1
        -default/b@5 ×1 missed: false
        -- a list
        -default/c@3 ×1 missed: true
        -- a resync
        default/a@4 ×1 → 4 ×1
    "#]]
    .assert_eq(&story_in_order);
    // Three objects of the list, an update and a deletion; the second list contains only known states.
    assert_eq!(calls, 5);
    let per_key = story(DeltaFifo::new()).await;
    assert_eq!(per_key, (story_in_order, calls));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_never_see_a_partial_transform() {
    let server = Server::builder()
        .seed((0..5).map(|n| pod(&format!("p{n}"))))
        .build();
    let calls = Arc::new(AtomicUsize::new(0));
    let informer = run(builder(&server).transform(count(&calls)));
    let trace = listen(&informer.pods);
    informer.caught_up(&server).await;
    let writing = Arc::new(());
    let mut readers = JoinSet::new();
    for _ in 0..4 {
        let cache = informer.pods.indexer();
        let writing = Arc::downgrade(&writing);
        readers.spawn(async move {
            let mut reads = 0_usize;
            while writing.strong_count() > 0 || reads == 0 {
                assert!(cache.snapshot().iter().all(|pod| times(pod) == "1"));
                reads += 1;
                tokio::task::yield_now().await;
            }
        });
    }
    for n in 0..200 {
        let name = format!("p{}", n % 5);
        server.update(labelled(&name, &n.to_string())).unwrap();
        informer.caught_up(&server).await;
    }
    drop(writing);
    readers.join_all().await;
    assert_eq!(calls.load(Ordering::Relaxed), 5 + 200);
    let heard = trace.take();
    assert_eq!(heard.lines().count(), 5 + 200);
    assert!(!heard.contains("×2") && !heard.contains("×0"), "{heard}");
    informer.stop().await;
}
