//! Tests broken objects: objects for which decoding, the transform or an index function fails.
//!
//! The informer reports each broken object in its status. It stores and delivers all other objects as usual.

mod forms;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{lister::GetError, queue::DeltaFifo};
use kube_informer_apiserver::Server;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::setting::{Trace, builder, in_json, labelled, pod, run};

/// Returns the JSON of a pod that the server accepts and the client can't decode.
fn broken(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"secret": "hunter2"}},
        "spec": {"containers": "hunter2"},
    })
}

#[tokio::test(start_paused = true)]
async fn a_broken_object_is_reported_and_delivered_when_its_next_state_decodes() {
    for delta_fifo in [false, true] {
        let server = Server::builder()
            .seed([pod("a"), broken("bad"), pod("c")])
            .build();
        let errors = Trace::default();
        let heard = errors.clone();
        let mut informer = in_json(&server).on_error(move |error| heard.note(error.to_string()));
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        sleep(Duration::from_secs(2)).await;

        let status = informer.pods.status().get();
        assert_eq!((status.broken_count, status.broken.len()), (1, 1));
        assert_eq!(status.broken[0].field(), "spec.containers");
        let lister = informer.pods.lister().namespace("default");
        let error = lister.get("bad").unwrap_err();
        assert!(matches!(error, GetError::Decode(_)), "{error}");
        assert_eq!(
            informer.pods.indexer().list().len(),
            2,
            "a list skips the broken object"
        );

        server.update(pod("bad")).unwrap();
        server.update(broken("a")).unwrap();
        server.update(labelled("a", "x")).unwrap();
        server.update(broken("c")).unwrap();
        server.delete("v1", "pods", "default/c").unwrap();
        server.create(broken("d")).unwrap();
        server.delete("v1", "pods", "default/d").unwrap();
        informer.caught_up(&server).await;

        expect![[r#"
            add default/a@1 (initial)
            add default/c@3 (initial)
            synced
            add default/bad@4
            update default/a@1 → 6
            delete default/c@3 (final state unknown)
        "#]]
        .assert_eq(&trace.take());
        assert_eq!(informer.pods.status().get().broken_count, 0);
        let errors = errors.take();
        assert!(errors.contains("default/bad can't be decoded"), "{errors}");
        assert!(
            !errors.contains("hunter2"),
            "an error contains content: {errors}"
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_delivers_changes_of_a_broken_object_from_its_last_delivered_state() {
    let server = Server::builder().seed([pod("a"), pod("b")]).build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    sleep(Duration::from_secs(2)).await;
    trace.take();

    server.faults().cut_watches();
    server.update(broken("a")).unwrap();
    server.update(broken("b")).unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "");
    assert_eq!(informer.pods.status().get().broken_count, 2);

    server.faults().cut_watches();
    server.update(labelled("a", "x")).unwrap();
    server.delete("v1", "pods", "default/b").unwrap();
    server.faults().expire_history();
    informer.caught_up(&server).await;
    expect![[r#"
        delete default/b@2 (final state unknown)
        update default/a@1 → 5 (relist)
    "#]]
    .assert_eq(&trace.take());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_fails_or_panics_breaks_one_object() {
    let server = Server::builder()
        .seed([pod("fails"), pod("good"), pod("panics")])
        .build();
    let informer = run(builder(&server).try_transform(|pod: &mut Pod| {
        match pod.metadata.name.as_deref() {
            Some("fails") => return Err("no".to_owned()),
            Some("panics") => panic!("planted"),
            _ => pod.spec = None,
        }
        Ok(())
    }));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "add default/good@2 (initial)\nsynced\n");
    let good = informer
        .pods
        .lister()
        .namespace("default")
        .get("good")
        .unwrap();
    assert!(good.spec.is_none());
    let broken: Vec<_> = informer
        .pods
        .status()
        .get()
        .broken
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        broken,
        [
            "default/fails can't be decoded: the transform failed: no at .",
            "default/panics can't be decoded: the transform failed: it panicked at .",
        ]
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_transform_is_retried_when_the_object_is_listed_again() {
    for delta_fifo in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let is_mended = Arc::new(AtomicBool::new(false));
        let mended = Arc::clone(&is_mended);
        let mut informer = builder(&server).try_transform(move |pod: &mut Pod| {
            let fails = pod.metadata.name.as_deref() == Some("a");
            if fails && !mended.load(Ordering::Relaxed) {
                return Err("not yet".to_owned());
            }
            Ok(())
        });
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        sleep(Duration::from_secs(2)).await;
        assert_eq!(trace.take(), "add default/b@2 (initial)\nsynced\n");
        assert_eq!(informer.pods.status().get().broken_count, 1);

        is_mended.store(true, Ordering::Relaxed);
        server.faults().cut_watches();
        server.create(pod("c")).unwrap();
        server.faults().expire_history();
        informer.caught_up(&server).await;
        let mut told: Vec<_> = trace.take().lines().map(str::to_owned).collect();
        told.sort();
        assert_eq!(told, ["add default/a@1", "add default/c@3"]);
        assert_eq!(informer.pods.status().get().broken_count, 0);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_function_that_fails_or_panics_omits_one_object_and_counts_it() {
    let server = Server::builder()
        .seed([labelled("a", "1"), labelled("b", "x"), labelled("c", "3")])
        .build();
    let informer = run(builder(&server));
    informer.caught_up(&server).await;
    let rank = |pod: &Pod| {
        let label = pod
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get("app"));
        assert!(label.is_none_or(|label| label != "panic"), "planted");
        label
            .map(|label| label.parse::<u32>().map(|rank| rank.to_string()))
            .transpose()
    };
    let token = informer.pods.try_add_index("rank", rank).await.unwrap();
    server.create(labelled("d", "panic")).unwrap();
    server.create(labelled("e", "3")).unwrap();
    informer.caught_up(&server).await;
    let keys = informer.pods.indexer().index_keys(&token, "3").unwrap();
    assert_eq!(format!("{keys:?}"), "[default/c, default/e]");
    assert_eq!(informer.pods.indexer().len(), 5, "all are in the store");
    let status = informer.pods.status().get();
    assert_eq!(status.index_errors, 2);
    assert_eq!(
        status.last_index_error.as_deref(),
        Some("default/d is not in index rank: the index function panicked")
    );
    informer.stop().await;
}
