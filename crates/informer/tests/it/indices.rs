//! Indices of an informer: from the beginning, before the start, and added while it runs.

use k8s_openapi::api::core::v1::Pod;
use kube_core::ResourceExt;
use kube_informer::{
    Indexers, Object, SharedInformer,
    indexer::{IndexRef, NAMESPACE},
    shared_informer::AddIndexError,
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

/// Every value of an index with the names under it.
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
async fn an_index_covers_the_cache_whether_it_came_before_or_after_the_start() {
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
async fn an_index_can_be_added_before_the_run_and_a_name_only_once() {
    let server = Server::builder()
        .seed([labelled("pod1", &[("a", "x")])])
        .build();
    let (pods, controller) = builder(&server).build();
    pods.add_index("a", label("a")).await.unwrap();
    let again = pods.add_index("a", label("b")).await.unwrap_err();
    assert!(matches!(again, AddIndexError::Duplicate(_)), "{again}");
    let synced = pods.wait_for_sync();
    controller.run(async { synced.await.unwrap() }).await;
    assert_eq!(index(&pods, "a"), "x: pod1");
    let late = pods.add_index("late", label("b")).await.unwrap_err();
    assert!(matches!(late, AddIndexError::Stopped(_)), "{late}");
}
