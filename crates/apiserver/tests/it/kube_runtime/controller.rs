//! Tests that `kube_runtime::Controller` reconciles all changed objects, also after a disconnection.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::{Patch, PatchParams};
use kube_client::{Api, ResourceExt};
use kube_informer_apiserver::{Match, Server};
use kube_runtime::Controller;
use kube_runtime::controller::Action;
use kube_runtime::watcher::Config;
use serde_json::{Value, json};

use super::{SILENCE, both_strategies, client};
use crate::ask::{pod, pods};

/// A running kube-rs controller that sets a label on every config map in the namespace `default`.
///
/// `reconciled` yields the name of each reconciled config map, and `None` for each error.
struct Labelling {
    reconciled: Pin<Box<dyn Stream<Item = Option<String>> + Send>>,
}

impl Labelling {
    fn of(server: &Server, config: Config) -> Labelling {
        let api: Api<ConfigMap> = Api::default_namespaced(client(server));
        let pods: Api<Pod> = Api::default_namespaced(client(server));
        let reconcile = |map: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>| async move {
            let seen = Patch::Merge(json!({"metadata": {"labels": {"seen": "true"}}}));
            // The label is not needed if the config map was deleted in the meantime.
            drop(
                api.patch(&map.name_any(), &PatchParams::default(), &seen)
                    .await,
            );
            Ok::<_, Infallible>(Action::await_change())
        };
        let events = Controller::new(api.clone(), config.clone())
            .owns(pods, config)
            .run(reconcile, |_, _, _| Action::await_change(), Arc::new(api))
            .map(|done| done.ok().map(|(map, _)| map.name));
        Labelling {
            reconciled: Box::pin(events),
        }
    }

    /// Collects the names of reconciled config maps, until the controller is idle for 5 × [`SILENCE`].
    async fn names(&mut self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        while let Ok(done) = tokio::time::timeout(5 * SILENCE, self.reconciled.next()).await {
            names.extend(done.expect("a controller does not end"));
        }
        names
    }
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

fn labels(server: &Server, name: &str) -> Value {
    let map = server.get("v1", "configmaps", &format!("default/{name}"));
    map.expect("it is stored")["metadata"]["labels"].clone()
}

fn set<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[tokio::test(start_paused = true)]
async fn existing_and_new_objects_are_reconciled_and_writes_succeed() {
    for config in both_strategies() {
        let server = pods(&[]);
        server.create(config_map("a")).unwrap();
        let mut labelling = Labelling::of(&server, config);
        assert_eq!(labelling.names().await, set(["a"]));
        server.create(config_map("b")).unwrap();
        assert_eq!(labelling.names().await, set(["b"]));
        for name in ["a", "b"] {
            assert_eq!(labels(&server, name), json!({"seen": "true"}));
        }
        assert_eq!(
            labelling.names().await,
            set([]),
            "a patch without effect sends no event"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_an_owned_object_reconciles_the_owner() {
    for config in both_strategies() {
        let server = pods(&[]);
        let owner = server.create(config_map("a")).unwrap();
        server.create(config_map("b")).unwrap();
        let mut labelling = Labelling::of(&server, config);
        assert_eq!(labelling.names().await, set(["a", "b"]));
        let mut child = pod("child");
        child["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "controller": true,
            "uid": owner["metadata"]["uid"],
        }]);
        server.create(child).unwrap();
        assert_eq!(labelling.names().await, set(["a"]));
        server.faults().cut_watches();
        server.delete("v1", "pods", "default/child").unwrap();
        assert_eq!(labelling.names().await, set(["a"]));
    }
}

#[tokio::test(start_paused = true)]
async fn only_objects_changed_during_a_disconnection_are_reconciled() {
    for config in both_strategies() {
        let server = pods(&[]);
        server.create(config_map("a")).unwrap();
        let mut labelling = Labelling::of(&server, config);
        assert_eq!(labelling.names().await, set(["a"]));
        server.faults().cut_watches();
        server.create(config_map("b")).unwrap();
        assert_eq!(labelling.names().await, set(["b"]));
    }
}

#[tokio::test(start_paused = true)]
async fn expired_history_reconciles_all_remaining_objects() {
    for config in both_strategies() {
        let server = pods(&[]);
        for name in ["a", "b"] {
            server.create(config_map(name)).unwrap();
        }
        let mut labelling = Labelling::of(&server, config);
        assert_eq!(labelling.names().await, set(["a", "b"]));
        server.delete("v1", "configmaps", "default/a").unwrap();
        server.create(config_map("c")).unwrap();
        server.faults().expire_history();
        server.faults().cut_watches();
        assert_eq!(labelling.names().await, set(["b", "c"]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttling_server_receives_few_requests() {
    for config in both_strategies() {
        let server = pods(&[]);
        server.create(config_map("a")).unwrap();
        let faults = server.faults();
        for matches in [Match::list("configmaps"), Match::watch("configmaps")] {
            faults.answer(matches, 429).times(u64::MAX);
        }
        let mut labelling = Labelling::of(&server, config);
        let errors = labelling.reconciled.by_ref().for_each(|_| async {});
        let minute = tokio::time::timeout(Duration::from_secs(60), errors);
        assert!(minute.await.is_err(), "it keeps retrying");
        let requests = server.requests().filter(|it| it.resource == "configmaps");
        assert!(
            (3..60).contains(&requests.len()),
            "{} requests",
            requests.len()
        );
        faults.clear_answers();
        // The controller's longest backoff is longer than the silence that ends `names`, so wait for a retry
        // first.
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(labelling.names().await, set(["a"]));
    }
}
