//! Tests of an informer's indices: built-in indices, indices added before the start, and indices added while
//! the informer runs.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Indexers, Object, SharedInformer,
    indexer::{IndexRef, IndexToken, NAMESPACE, NoSuchIndex, NotRemovable},
    shared_informer::{AddIndexError, RemoveIndexError},
};
use kube_informer_apiserver::Server;
use serde_json::Value;

use crate::setting::{builder, pod, run};

fn labelled(name: &str, labels: &[(&str, &str)]) -> Value {
    let mut pod = pod(name);
    for (key, value) in labels {
        pod["metadata"]["labels"][*key] = (*value).into();
    }
    pod
}

fn label(key: &'static str) -> impl Fn(&Pod) -> Option<String> + Send + Sync + 'static {
    move |pod| pod.labels().get(key).cloned()
}

/// Returns the index as text: each value with the names of its pods.
fn index(pods: &SharedInformer<Pod>, index: &(impl IndexRef + ?Sized)) -> String {
    let snapshot = pods.indexer().snapshot();
    let values = snapshot.index_values(index).unwrap();
    let lines = values.iter().map(|value| {
        let pods = snapshot.by_index(index, value).unwrap();
        let names: Vec<_> = pods.map(Object::name).collect();
        format!("{value}: {}", names.join(" "))
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[tokio::test(start_paused = true)]
async fn an_index_added_before_or_after_the_start_covers_the_cache() {
    let server = Server::builder()
        .seed([
            labelled("pod1", &[("a", "a-val"), ("b", "b-val1")]),
            labelled("pod2", &[("b", "b-val2")]),
            labelled("pod3", &[("a", "a-val2")]),
        ])
        .build();
    let by_a = Indexers::new().with("a", label("a"));
    let informer = run(builder(&server).indexers(by_a).unwrap());
    informer.caught_up(&server).await;
    let pods = &informer.pods;
    assert_eq!(index(pods, "a"), "a-val: pod1, a-val2: pod3");

    let by_b = pods.add_index("b", label("b")).await.unwrap();
    let expected = "b-val1: pod1, b-val2: pod2";
    assert_eq!(index(pods, "b"), expected, "at once");
    assert_eq!(index(pods, &by_b), expected, "the token is the same index");

    server
        .create(labelled("pod4", &[("a", "a-val"), ("b", "b-val1")]))
        .unwrap();
    server.update(labelled("pod3", &[("b", "b-val3")])).unwrap();
    server.delete("v1", "pods", "default/pod2").unwrap();
    informer.caught_up(&server).await;
    assert_eq!(index(pods, "a"), "a-val: pod1 pod4");
    assert_eq!(index(pods, "b"), "b-val1: pod1 pod4, b-val3: pod3");
    assert_eq!(index(pods, NAMESPACE), "default: pod1 pod3 pod4");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_index_can_be_added_before_the_run_and_each_name_only_once() {
    let server = Server::builder()
        .seed([labelled("pod1", &[("a", "x")])])
        .build();
    let (pods, controller) = builder(&server).build();
    pods.add_index("a", label("a")).await.unwrap();
    let again = pods.add_index("a", label("b")).await.unwrap_err();
    assert!(matches!(again, AddIndexError::Duplicate(_)), "{again}");
    let synced = pods.wait_for_sync();
    controller
        .run(async { synced.await.unwrap() })
        .await
        .unwrap();
    assert_eq!(index(&pods, "a"), "x: pod1");
    let late = pods.add_index("late", label("b")).await.unwrap_err();
    assert!(matches!(late, AddIndexError::Stopped(_)), "{late}");
}

#[tokio::test(start_paused = true)]
async fn an_informer_delivers_events_while_an_index_is_filled() {
    const ALL: usize = 1_800;
    let seed = (0..ALL).map(|n| labelled(&format!("pod{n}"), &[("a", "x")]));
    let server = Server::builder().seed(seed).build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let pods = &informer.pods;
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    pods.on_add(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
    })
    .register()
    .unwrap();

    let asked = Arc::new(AtomicUsize::new(0));
    let counted = || {
        let asked = Arc::clone(&asked);
        move |pod: &Pod| {
            asked.fetch_add(1, Ordering::Relaxed);
            pod.labels().get("a").cloned()
        }
    };
    let adding: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(pods.add_index("a", counted()));
    let mut adding = tokio_test::task::spawn(adding);
    assert!(adding.poll().is_pending());
    let so_far = asked.load(Ordering::Relaxed);
    assert!(so_far > 0 && so_far < ALL, "{so_far} of {ALL}");

    server.create(labelled("new", &[("a", "y")])).unwrap();
    server.delete("v1", "pods", "default/pod0").unwrap();
    informer.caught_up(&server).await;
    pods.handlers_idle().await;
    assert_eq!(told.load(Ordering::Relaxed), ALL + 1);
    assert_eq!(
        asked.load(Ordering::Relaxed),
        so_far,
        "only the filling of the index calls the function"
    );
    assert!(pods.indexer().by_index("a", "x").is_err());

    let token = adding.await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), ALL + 1, "once per state");
    let count = |value| pods.indexer().by_index(&token, value).unwrap().len();
    assert_eq!((count("x"), count("y")), (ALL - 1, 1));

    // A call that is dropped before it completes has no effect.
    let mut dropped = tokio_test::task::spawn(pods.add_index("b", counted()));
    assert!(dropped.poll().is_pending());
    drop(dropped);
    pods.handlers_idle().await;
    assert!(pods.indexer().index_values("b").is_err());
    pods.add_index("b", counted()).await.unwrap();
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_index_is_gone_and_its_token_finds_no_other_index() {
    let server = Server::builder()
        .seed([labelled("pod1", &[("a", "x"), ("b", "y")])])
        .build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let pods = informer.pods.clone();
    let token = pods.add_index("label", label("a")).await.unwrap();
    let before = pods.indexer().snapshot();
    pods.remove_index(&token).await.unwrap();
    let again = pods.remove_index(&token).await.unwrap_err();
    assert!(
        matches!(again, RemoveIndexError::NotRemovable(_)),
        "{again}"
    );
    let error = pods.indexer().by_index("label", "x").unwrap_err();
    assert_eq!(error, NoSuchIndex::Name("label".to_owned()));

    let tokens = pods
        .add_indexers(
            Indexers::new()
                .with_label("label", "b")
                .with_label("a", "a"),
        )
        .await
        .unwrap();
    let names: Vec<_> = tokens.iter().map(IndexToken::name).collect();
    assert_eq!(names, ["label", "a"]);
    assert_eq!(index(&pods, &tokens[0]), "y: pod1");
    let error = pods.indexer().by_index(&token, "x").unwrap_err();
    assert_eq!(error, NoSuchIndex::Token("label".to_owned()));
    assert_eq!(before.by_index(&token, "x").unwrap().count(), 1);

    pods.remove_index("label").await.unwrap();
    let refused = pods.remove_index(NAMESPACE).await.unwrap_err();
    assert_eq!(refused, NotRemovable::Namespace.into());
    server.create(labelled("pod2", &[("a", "x")])).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(index(&pods, &tokens[1]), "x: pod1 pod2");
    informer.stop().await;
    let late = pods.remove_index("a").await.unwrap_err();
    assert!(matches!(late, RemoveIndexError::Stopped(_)), "{late}");
}
