//! Tests that kube-rs's reflector store equals the server's objects again after errors.
//!
//! The errors are closed watches, expired history, error responses and malformed events.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube_client::ResourceExt;
use kube_informer_apiserver::{Match, Server};
use kube_runtime::WatchStreamExt;
use kube_runtime::reflector::{Store, reflector, store};
use serde_json::json;
use tokio::task::JoinSet;

use super::{SILENCE, all_pods, both_strategies};
use crate::ask::{pod, pods};

/// Returns the name and `resourceVersion` of each pod in the reflector's store.
fn kept(store: &Store<Pod>) -> BTreeMap<String, String> {
    let entry = |pod: &Pod| (pod.name_any(), pod.resource_version().unwrap_or_default());
    store.state().iter().map(|pod| entry(pod)).collect()
}

/// Returns the name and `resourceVersion` of each pod on the server.
fn stored(server: &Server) -> BTreeMap<String, String> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let pods = server.list("v1", "pods").into_iter();
    pods.map(|pod| {
        let metadata = &pod["metadata"];
        (text(&metadata["name"]), text(&metadata["resourceVersion"]))
    })
    .collect()
}

/// Creates five pods named after `round`, deletes one of them, and changes pod `a`.
fn churn(server: &Server, round: usize) {
    for nth in 0..5 {
        server.create(pod(&format!("p{round}-{nth}"))).unwrap();
    }
    let labels = json!({"metadata": {"labels": {"round": round.to_string()}}});
    server.patch("v1", "pods", "default/a", labels).unwrap();
    let gone = format!("default/p{round}-3");
    server.delete("v1", "pods", &gone).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_store_equals_the_server_after_every_kind_of_failure() {
    for config in both_strategies() {
        let server = pods(&["a", "b"]);
        let faults = server.faults();
        faults.answer(Match::any(), 500).times(3);
        let (reader, writer) = store();
        let events = kube_runtime::watcher(all_pods(&server), config).default_backoff();
        let mut tasks = JoinSet::new();
        tasks.spawn(reflector(writer, events).for_each(|_| async {}));
        reader.wait_until_ready().await.unwrap();
        assert_eq!(kept(&reader), stored(&server));

        let failures: [(&str, &dyn Fn()); 6] = [
            ("cut", &|| faults.cut_watches()),
            ("break", &|| faults.break_watches()),
            ("expiry", &|| {
                faults.expire_history();
                faults.cut_watches();
            }),
            ("429", &|| {
                faults.answer(Match::any(), 429).times(2).retry_after(1);
                faults.cut_watches();
            }),
            ("504", &|| {
                faults
                    .answer(Match::watch("pods"), 504)
                    .too_large_revision();
                faults.cut_watches();
            }),
            ("garbage", &|| {
                faults.send_raw_to_watches("{\"type\":\"ADDED\"}\n");
            }),
        ];
        for (round, (failure, fail)) in failures.into_iter().enumerate() {
            churn(&server, 2 * round);
            fail();
            churn(&server, 2 * round + 1);
            // The watcher has at most three backoffs, each shorter than this time.
            tokio::time::sleep(5 * SILENCE).await;
            assert_eq!(kept(&reader), stored(&server), "after {failure}");
        }
    }
}
