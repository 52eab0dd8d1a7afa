//! Tests of [`Pruned`] objects: the informer removes configured fields from each object before it stores the
//! object.
//!
//! The tests use caches of decoded objects, lazy caches ([`Builder::lazy`]) and packed caches
//! ([`Builder::packed`]).

use std::borrow::Cow;

use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod};
use kube_core::{ObjectMeta, Resource};
use kube_informer::{
    Event, EventHandler, Indexers, InformerOptions, Object, SharedInformer,
    client::ListWatch,
    pruning::{FieldPath, Pruned},
    shared_informer::Builder,
    status::{ColdReason, WarmStart},
    transport::Encoding,
    warm_start::SavedStore,
};
use kube_informer_apiserver::Server;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::setting::{LONG, Trace, factory_builder, labelled, pod};

fn paths<const N: usize>(texts: [&str; N]) -> [FieldPath; N] {
    texts.map(|text| text.parse().unwrap())
}

/// Returns a pod with labels, annotations, volumes, environment variables and a status.
fn full(name: &str) -> Value {
    let mut pod = labelled(name, "x");
    pod["metadata"]["annotations"] = json!({"note": "1"});
    pod["spec"] = json!({
        "nodeName": "node-1",
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {"name": "a", "image": "i", "env": [{"name": "e", "value": "f"}]},
            {"name": "b", "image": "j", "env": [{"name": "g", "value": "h"}]},
        ],
    });
    pod["status"] = json!({"podIP": "10.0.0.1", "phase": "Running"});
    pod
}

fn building<K>(server: &Server) -> Builder<K>
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    SharedInformer::<K>::builder(ListWatch::<K>::new(server.client())).rng_seed(1)
}

/// Runs an informer, calls `look` after the sync, and stops the informer when `look` completes.
async fn while_it_runs<K>(builder: Builder<K>, look: impl AsyncFnOnce(&SharedInformer<K>))
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    let (pods, controller) = builder.build();
    let looked = async {
        pods.wait_for_sync().deadline(LONG).await.unwrap();
        pods.handlers_idle().await;
        look(&pods).await;
    };
    controller.run(looked).await.unwrap();
}

/// Returns three builders: for a cache of decoded objects, a lazy cache and a packed cache.
fn forms(building: impl Fn() -> Builder<Pruned<Pod>>) -> [Builder<Pruned<Pod>>; 3] {
    [building(), building().lazy(), building().packed()]
}

/// Returns the first object in the cache as JSON.
fn only(pods: &SharedInformer<Pruned<Pod>>) -> Value {
    let snapshot = pods.indexer().list();
    let only = snapshot.first().unwrap().get().unwrap();
    serde_json::to_value(&**only).unwrap()
}

impl EventHandler<Pruned<Pod>> for Trace {
    async fn handle(&mut self, event: Event<Pruned<Pod>>) {
        if let Event::Added { object, .. } | Event::Updated { new: object, .. } = event {
            let pod = object.get().unwrap();
            let spec = pod.spec.as_ref().unwrap();
            let volumes = spec.volumes.is_some();
            self.note(format!("{object:?} with volumes: {volumes}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn handlers_indices_and_readers_see_all_fields_except_the_pruned_ones() {
    let server = Server::builder().seed([full("a"), full("b")]).build();
    let pruned = ["spec.volumes", "spec.containers[*].env", "status"];
    let informer = || {
        let by_node = Indexers::new()
            .with("node", |pod: &Pruned<Pod>| {
                pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
            })
            .with_metadata("app", |pod: &Object<Pruned<Pod>>| {
                pod.labels().get("app").map(str::to_owned)
            });
        let building = building(&server).prune(paths(pruned)).unwrap();
        building.indexers(by_node).unwrap()
    };
    for building in forms(informer) {
        while_it_runs(building, async |pods| {
            let trace = Trace::default();
            pods.handler(trace.clone()).register().unwrap();
            pods.handlers_idle().await;
            let told = "default/a@1 with volumes: false\ndefault/b@2 with volumes: false\n";
            assert_eq!(trace.take(), told);
            let snapshot = pods.indexer().snapshot();
            assert_eq!(snapshot.index_keys("node", "node-1").unwrap().len(), 2);
            assert_eq!(snapshot.index_keys("app", "x").unwrap().len(), 2);
            let pod = pods.lister().namespace("default").get("a").unwrap();
            let spec = pod.spec.as_ref().unwrap();
            let images = spec.containers.iter().map(|it| it.image.as_deref());
            assert!(images.eq([Some("i"), Some("j")]));
            assert!(spec.containers.iter().all(|it| it.env.is_none()));
            assert!(pod.status.is_none());
            assert_eq!(pod.metadata.annotations.as_ref().unwrap()["note"], "1");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_keep_list_keeps_only_its_fields_and_the_identity_of_the_object() {
    let server = Server::builder().seed([full("a")]).build();
    let kept = ["spec.nodeName", "status.podIP", "metadata.annotations"];
    let informer = |encoding| {
        let building = building(&server).encoding(encoding).keep(paths(kept));
        let pruned = paths(["metadata.annotations['note']"]);
        building.prune(pruned).unwrap()
    };
    let expected = |uid: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a",
                "namespace": "default",
                "uid": uid,
                "resourceVersion": "1",
                "labels": {"app": "x"},
            },
            // The type serializes this field even if it is missing.
            "spec": {"nodeName": "node-1", "containers": []},
            "status": {"podIP": "10.0.0.1"},
        })
    };
    for encoding in [Encoding::Json, Encoding::Protobuf] {
        for building in forms(|| informer(encoding)) {
            while_it_runs(building, async |pods| {
                let snapshot = pods.indexer().list();
                let object = snapshot.first().unwrap();
                assert_ne!(object.uid(), "");
                let mut expected = expected(object.uid());
                // In protobuf, a map without entries does not differ from a missing map.
                if encoding == Encoding::Json {
                    expected["metadata"]["annotations"] = json!({});
                }
                assert_eq!(only(pods), expected);
                let app_is_x = "app=x".parse().unwrap();
                assert_eq!(pods.lister().list(&app_is_x).count(), 1);
            })
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_transform_runs_after_pruning_in_every_form() {
    let server = Server::builder().seed([full("a")]).build();
    let informer = || {
        let building = building(&server).keep(paths(["spec.containers.name"]));
        building.transform(|pod: &mut Pruned<Pod>| {
            let spec = Pruned::get_mut(pod).spec.as_mut().unwrap();
            assert!(spec.node_name.is_none(), "the transform runs after pruning");
            spec.containers.truncate(1);
        })
    };
    for building in forms(informer) {
        while_it_runs(building, async |pods| {
            assert_eq!(only(pods)["spec"], json!({"containers": [{"name": "a"}]}));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_factory_has_separate_informers_for_whole_and_pruned_objects() {
    let server = Server::builder().seed([full("a")]).build();
    let factory = factory_builder(server.client()).build();
    let options = || InformerOptions::<Pruned<Pod>>::new();
    let whole = factory.informer::<Pod>();
    let kept = || paths(["spec.nodeName"]);
    let pruned = factory.informer_with(options().keep(kept())).unwrap();
    assert!(factory.informer_with(options().keep(kept())).is_ok());
    for other in [
        options(),
        options().keep(paths(["spec"])),
        options().prune(kept()).unwrap(),
    ] {
        let conflict = factory.informer_with(other).unwrap_err().to_string();
        assert!(conflict.contains("pruned fields"), "{conflict}");
    }
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    let whole = whole.lister().namespace("default").get("a").unwrap();
    let pruned = pruned.lister().namespace("default").get("a").unwrap();
    assert!(whole.status.is_some() && pruned.status.is_none());
    factory.shutdown().await;
}

/// A pod type whose field `spec` is required and which does not implement `Serialize`.
#[derive(Debug, Deserialize)]
struct Strict {
    metadata: ObjectMeta,
    #[serde(rename = "spec")]
    _spec: StrictSpec,
}

#[derive(Debug, Deserialize)]
struct StrictSpec {
    #[serde(rename = "nodeName")]
    _node_name: String,
}

impl Resource for Strict {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::test(start_paused = true)]
async fn pruning_a_required_field_breaks_the_object_and_the_error_names_the_field() {
    let server = Server::builder().seed([full("a")]).build();
    for (lazy, field) in [
        (false, "spec.nodeName"),
        (true, "spec.nodeName"),
        (false, "spec"),
    ] {
        let errors = Trace::default();
        let heard = errors.clone();
        let building = building::<Pruned<Strict>>(&server)
            .prune(paths([field]))
            .unwrap()
            .on_error(move |error| heard.note(error.to_string()));
        let building = if lazy { building.lazy() } else { building };
        while_it_runs(building, async |pods| {
            assert_eq!(pods.indexer().list().len(), usize::from(lazy));
            let read = pods.lister().namespace("default").get("a");
            let error = read.unwrap_err().to_string();
            let text = "default/a can't be decoded: a value of another type than expected, or a missing field,";
            assert!(error.starts_with(text), "{error}");
            let at = if field == "spec" { " at ." } else { " at spec" };
            assert!(error.ends_with(at), "{error}");
            assert_eq!(errors.take().lines().count(), 1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_saved_with_other_pruned_fields_is_not_loaded() {
    let server = Server::builder().seed([full("a"), pod("b")]).build();
    let folder = std::env::temp_dir().join(format!("kube-informer-pruned-{}", std::process::id()));
    let saving = |kept: [&str; 1]| {
        let saved = SavedStore::in_file(folder.join("pods.jsonl"), "1");
        building::<Pruned<Pod>>(&server)
            .keep(paths(kept))
            .warm_start(saved)
    };
    let cold = |reason| Some(WarmStart::Cold { reason });
    let (one, other) = (["spec.nodeName"], ["spec"]);
    for (kept, expected) in [
        (one, cold(ColdReason::NoFile)),
        (one, None),
        (other, cold(ColdReason::OtherPruning)),
        (other, None),
    ] {
        while_it_runs(saving(kept), async |pods| {
            let start = pods.status().get().warm_start;
            let is_warm = matches!(start, Some(WarmStart::Warm { objects: 2, .. }));
            assert!(
                start == expected || (expected.is_none() && is_warm),
                "{start:?}"
            );
            let volumes = only(pods)["spec"].get("volumes").is_some();
            assert_eq!(volumes, kept == other);
            pods.save().await.unwrap();
        })
        .await;
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
