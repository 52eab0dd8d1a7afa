//! Tests the deployment controller without the other control loops.

use std::{collections::BTreeMap, time::Duration};

use kube_informer_apiserver::Server;
use serde_json::{Value, json};

use super::{replica_set::replica_set_of, *};

fn described(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

fn deployment(image: &str) -> Deployment {
    serde_json::from_value(described(image)).unwrap()
}

#[test]
fn each_template_has_its_own_replica_set() {
    let name = |image| replica_set_of(&deployment(image)).unwrap().metadata.name;
    assert_eq!(name("a:1"), name("a:1"));
    assert_ne!(name("a:1"), name("a:2"));
}

#[test]
fn the_replica_set_is_owned_and_selects_the_pods_of_its_template() {
    let set = replica_set_of(&deployment("a:1")).unwrap();
    assert_eq!(controller_uid(&set, "Deployment").as_deref(), Some("u"));
    let spec = set.spec.unwrap();
    let labels = spec.template.unwrap().metadata.unwrap().labels.unwrap();
    assert_eq!(spec.selector.match_labels.unwrap(), labels);
    assert_eq!(labels.len(), 2);
    assert_eq!(spec.replicas, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_new_template_creates_a_replica_set_with_as_many_pods_as_the_surge_permits() {
    const LONG: Duration = Duration::from_secs(60);
    let server = Server::builder().seed([described("a:1")]).build();
    let (mut plane, _) = ControlPlane::of_default();
    let mut process = plane.process("controller", server.client());
    open(&mut plane, &mut process).await.unwrap();
    plane.host(process);
    plane.observe(LONG).await.unwrap();
    plane.act();
    let wanted = |server: &Server| -> BTreeMap<String, Value> {
        let sets = server.list("apps/v1", "replicasets");
        let of = |set: &Value| {
            let image = &set["spec"]["template"]["spec"]["containers"][0]["image"];
            (
                image.as_str().unwrap().to_owned(),
                set["spec"]["replicas"].clone(),
            )
        };
        sets.iter().map(of).collect()
    };
    tokio::time::sleep(LONG).await;
    assert_eq!(
        wanted(&server),
        BTreeMap::from([("a:1".to_owned(), json!(2))])
    );

    let spec = json!({"spec": described("a:2")["spec"]});
    server
        .patch("apps/v1", "deployments", "default/web", spec)
        .unwrap();
    tokio::time::sleep(LONG).await;
    // No pod is available without the replica set controller, and maxUnavailable of 2 pods is rounded down to 0.
    let both = [("a:1".to_owned(), json!(2)), ("a:2".to_owned(), json!(1))];
    assert_eq!(wanted(&server), BTreeMap::from(both));
    let stored = server.get("apps/v1", "deployments", "default/web").unwrap();
    assert_eq!(
        stored["status"]["observedGeneration"],
        stored["metadata"]["generation"]
    );
    plane.shutdown().await;
}
