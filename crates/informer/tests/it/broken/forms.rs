//! Tests undecodable objects in each representation of cached objects.
//!
//! The representations are typed (decoded on arrival), lazy (decoded on the first read) and packed
//! (compressed, and decoded on each read). When decoding fails, the object is counted in the status and is
//! omitted from lists. When the server sends a decodable state of the object, the object is cached normally
//! again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::shared_informer::Builder;
use kube_informer_apiserver::Server;
use serde_json::json;
use tokio::time::sleep;

use super::broken;
use crate::{
    packed::by_image,
    setting::{Running, Trace, builder, labelled, pod, run},
};

/// A function that sets the representation of cached objects: typed, lazy or packed.
type Form = fn(Builder<Pod>) -> Builder<Pod>;

const FORMS: [(&str, Form); 3] = [
    ("typed", |typed| typed),
    ("packed", Builder::packed),
    ("lazy", Builder::lazy),
];

/// Decodes every cached object, and waits until the informer has processed the decode errors.
async fn read_all(informer: &Running) {
    for object in informer.pods.indexer().snapshot().iter() {
        let _ = object.get();
    }
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_counted_and_omitted_after_the_first_read() {
    for (form, keep) in FORMS {
        let server = Server::builder().seed([pod("a"), broken("bad")]).build();
        let informer = run(keep(builder(&server)));
        informer.caught_up(&server).await;
        read_all(&informer).await;

        let snapshot = informer.pods.indexer().snapshot();
        let status = informer.pods.status().get();
        assert_eq!(snapshot.len(), 1, "{form}");
        assert_eq!(status.broken_count, 1, "{form}");
        assert_eq!(status.broken[0].field(), "spec.containers", "{form}");
        let bad = snapshot.get(&"default/bad".parse().unwrap()).unwrap();
        assert_eq!(bad.broken(), Some(&status.broken[0]), "{form}");
        assert_eq!(bad.labels().get("secret"), Some("hunter2"), "{form}");

        server.update(labelled("bad", "x")).unwrap();
        informer.caught_up(&server).await;
        read_all(&informer).await;
        assert_eq!(informer.pods.status().get().broken_count, 0, "{form}");
        assert_eq!(informer.pods.indexer().len(), 2, "{form}");
        server.update(broken("bad")).unwrap();
        informer.caught_up(&server).await;
        read_all(&informer).await;
        assert_eq!(informer.pods.status().get().broken_count, 1, "{form}");
        server.delete("v1", "pods", "default/bad").unwrap();
        informer.caught_up(&server).await;
        assert_eq!(informer.pods.status().get().broken_count, 0, "{form}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_object_stays_broken_when_a_relist_contains_it() {
    for (form, keep) in FORMS {
        let server = Server::builder().seed([pod("a"), broken("bad")]).build();
        let informer = run(keep(builder(&server)));
        informer.caught_up(&server).await;
        read_all(&informer).await;
        sleep(Duration::from_secs(2)).await;
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        trace.take();

        server.faults().cut_watches();
        server.update(labelled("a", "x")).unwrap();
        server.faults().expire_history();
        informer.caught_up(&server).await;
        assert_eq!(
            trace.take(),
            "update default/a@1 → 3 (relist)\n",
            "{form}: no object was read since"
        );
        assert_eq!(informer.pods.status().get().broken_count, 1, "{form}");
        assert_eq!(informer.pods.indexer().len(), 1, "{form}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_function_that_reads_objects_detects_broken_ones_before_handlers_do() {
    for (form, keep) in FORMS {
        let server = Server::builder().seed([pod("a"), broken("bad")]).build();
        let informer = run(keep(builder(&server)).indexers(by_image()).unwrap());
        let trace = Trace::default();
        trace.listen(&informer.pods);
        informer.caught_up(&server).await;
        server.create(broken("later")).unwrap();
        informer.caught_up(&server).await;
        assert_eq!(
            trace.take(),
            "add default/a@1 (initial)\nsynced\n",
            "{form}"
        );
        let snapshot = informer.pods.indexer().snapshot();
        assert_eq!(snapshot.broken_count(), 2, "{form}");
        assert_eq!(snapshot.unread_count(), 0, "{form}");
        assert_eq!(informer.pods.status().get().broken_count, 2, "{form}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_counts_unread_objects_and_the_broken_ones_of_a_namespace() {
    for (form, keep) in FORMS {
        let mut elsewhere = broken("bad");
        elsewhere["metadata"]["namespace"] = json!("default-2");
        let seed = [pod("a"), broken("bad"), broken("worse"), elsewhere];
        let server = Server::builder().seed(seed).build();
        let informer = run(keep(builder(&server)));
        informer.caught_up(&server).await;
        let unread = if form == "typed" { 0 } else { 4 };
        let before = informer.pods.indexer().snapshot();
        assert_eq!(before.unread_count(), unread, "{form}");
        if form != "typed" {
            assert_eq!((before.len(), before.broken_in("default")), (4, 0));
        }
        read_all(&informer).await;

        let snapshot = informer.pods.lister().snapshot();
        assert_eq!((snapshot.unread_count(), snapshot.len()), (0, 1), "{form}");
        let broken_in = ["default", "default-2", "", "d", "z"].map(|it| snapshot.broken_in(it));
        assert_eq!(broken_in, [2, 1, 0, 0, 0], "{form}");
        if form != "typed" {
            assert_eq!(before.len(), 4, "a snapshot does not change");
        }
        server.update(labelled("a", "x")).unwrap();
        server.delete("v1", "pods", "default/worse").unwrap();
        informer.caught_up(&server).await;
        let next = informer.pods.indexer().snapshot();
        assert_eq!(next.unread_count(), unread.min(1), "{form}");
        assert_eq!(next.broken_in("default"), 1, "{form}");
        assert_eq!(snapshot.unread_count(), 0, "{form}");
        informer.stop().await;
    }
}
