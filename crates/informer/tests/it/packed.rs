//! Tests of packed caches. A packed cache stores and delivers the same objects as a decoded cache, but
//! decodes an object only when the object is read.

use std::{borrow::Cow, cell::Cell, sync::Arc, time::Duration};

use k8s_openapi::{NamespaceResourceScope, api::core::v1::Pod};
use kube_core::{ObjectMeta, Resource};
use kube_informer::{
    Event, EventHandler, Indexers, InformerOptions, Object, ObjectName, SharedInformer, enqueue,
    queue::DeltaFifo,
    warm_start::SavedStore,
    workqueue::{RateLimitingQueue, rate_limiter::controller_default},
};
use kube_informer_apiserver::Server;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::setting::{LONG, Running, Trace, builder, factory_builder, in_json, labelled, pod, run};

const SAMPLES: usize = 16;

/// Returns the metadata of every cached pod, and the decoded pod or the decoding error.
pub(crate) fn contents(pods: &SharedInformer<Pod>) -> Vec<Value> {
    let snapshot = pods.indexer().list();
    let whole = |object: &Object<Pod>| {
        let labels: Vec<_> = object.labels().iter().collect();
        let body = object.get().map(|pod| serde_json::to_value(&*pod).unwrap());
        let body = body.map_err(|error| error.to_string());
        let revision = object.revision().to_string();
        json!([
            object.object_name().as_str(),
            object.uid(),
            revision,
            labels,
            body
        ])
    };
    snapshot.iter().map(whole).collect()
}

pub(crate) fn by_image() -> Indexers<Pod> {
    Indexers::new().with("image", |pod: &Pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        let images: Vec<String> = containers.filter_map(|it| it.image.clone()).collect();
        images
    })
}

async fn change(server: &Server, round: u32) {
    let names = (0..40).map(|number| format!("p{number}"));
    match round {
        0 => names.for_each(|name| drop(server.create(pod(&name)).unwrap())),
        1 => names.for_each(|name| drop(server.update(labelled(&name, "x")).unwrap())),
        2 => names.take(20).for_each(|name| {
            let key = format!("default/{name}");
            server.delete("v1", "pods", &key).unwrap();
        }),
        3 => {
            server.delete("v1", "pods", "default/p20").unwrap();
            server.create(labelled("p20", "again")).unwrap();
            server.faults().expire_history();
            server.faults().cut_watches();
            sleep(Duration::from_secs(120)).await;
        }
        _ => drop(server.update(labelled("p30", &round.to_string())).unwrap()),
    }
}

/// Asserts that both informers deliver the same events and cache the same pods, and stops them.
///
/// Compares the informers six times, and changes pods on `server` after each comparison.
pub(crate) async fn same_as_decoded(packed: Running, decoded: Running, server: &Server) {
    let heard = [&packed, &decoded].map(|informer| {
        let trace = Trace::default();
        trace.listen(&informer.pods);
        trace
    });
    for round in 0..6 {
        packed.caught_up(server).await;
        decoded.caught_up(server).await;
        assert_eq!(heard[0].take(), heard[1].take(), "round {round}");
        assert_eq!(contents(&packed.pods), contents(&decoded.pods));
        let images =
            |pods: &SharedInformer<Pod>| pods.indexer().snapshot().index_keys("image", "pause");
        assert_eq!(images(&packed.pods), images(&decoded.pods));
        change(server, round).await;
    }
    packed.stop().await;
    decoded.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_packed_cache_stores_and_delivers_the_same_as_a_decoded_one() {
    for by_key in [false, true] {
        let server = Server::builder()
            .seed((0..10).map(|n| labelled(&format!("seed{n}"), "seed")))
            .build();
        let building = || {
            let building = builder(&server).indexers(by_image()).unwrap();
            if by_key {
                building.queue(DeltaFifo::new())
            } else {
                building
            }
        };
        let packed = run(building().packed_from(SAMPLES));
        let decoded = run(building());
        same_as_decoded(packed, decoded, &server).await;
    }
}

/// Returns a pod of 2 KB. Pods of one `template` have equal labels, and most of their content in common.
fn of_template(template: usize, number: usize, state: usize) -> Value {
    let mut rng = fastrand::Rng::with_seed(template as u64);
    let text: String = (0..2000).map(|_| rng.digit(16)).collect();
    let mut pod = labelled(&format!("t{template}-{number}"), &template.to_string());
    pod["metadata"]["annotations"] = json!({"text": text, "state": format!("{number}.{state}")});
    pod
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_template_share_their_text_and_keep_their_own() {
    let (templates, each) = (3, 40);
    let server = Server::builder()
        .seed((0..SAMPLES).map(|number| labelled(&format!("seed{number}"), "seed")))
        .build();
    let (packed, decoded) = (
        run(builder(&server).packed_from(SAMPLES)),
        run(builder(&server)),
    );
    packed.caught_up(&server).await;
    let mut rng = fastrand::Rng::with_seed(1);
    let mut order: Vec<_> = (0..templates * each).collect();
    for state in 0..4 {
        rng.shuffle(&mut order);
        for (template, number) in order.iter().map(|at| (at % templates, at / templates)) {
            // Half of the pods, probably with the base of the others, are deleted and created again.
            let comes_and_goes = number % 2 == 0;
            if comes_and_goes && state == 2 {
                let name = format!("default/t{template}-{number}");
                server.delete("v1", "pods", &name).unwrap();
            } else if state == 0 || (comes_and_goes && state == 3) {
                server.create(of_template(template, number, state)).unwrap();
            } else {
                server.update(of_template(template, number, state)).unwrap();
            }
        }
        packed.caught_up(&server).await;
        decoded.caught_up(&server).await;
        assert_eq!(contents(&packed.pods), contents(&decoded.pods), "{state}");
        // Objects of events are compressed at the next bookmark.
        sleep(Duration::from_secs(120)).await;
        assert_eq!(contents(&packed.pods), contents(&decoded.pods), "{state}");
        let snapshot = packed.pods.indexer().snapshot();
        let stored: u64 = snapshot.iter().map(Object::rest_bytes).sum();
        let received: u64 = snapshot.iter().map(Object::wire_bytes).sum();
        // Alone, the random hexadecimal digits of a template can be compressed to half their size, not further.
        assert!(stored * 4 < received, "{state}: {stored} of {received}");
    }
    packed.stop().await;
    decoded.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_returns_its_stored_json_and_its_sizes() {
    let server = Server::builder()
        .seed((0..10).map(|n| labelled(&format!("seed{n}"), "seed")))
        .build();
    let forms = [
        in_json(&server),
        in_json(&server).lazy(),
        in_json(&server).packed_from(SAMPLES),
    ];
    let mut kept = Vec::new();
    for building in forms {
        let informer = run(building);
        informer.caught_up(&server).await;
        let object = informer.pods.indexer().list().remove(0);
        assert!(object.wire_bytes() > 0 && object.rest_bytes() > 0);
        let json = object.json();
        let sent = json.as_ref().map(Vec::len);
        assert!(sent.is_none_or(|sent| sent as u64 == object.wire_bytes()));
        let pod = object.get().unwrap();
        let decoded = json.map(|json| serde_json::from_slice::<Pod>(&json).unwrap());
        assert!(decoded.as_ref().is_none_or(|decoded| *decoded == *pod));
        kept.push((decoded.is_some(), object.json().is_some()));
        informer.stop().await;
    }
    // Decoded, lazy (before and after the first read), packed.
    assert_eq!(kept, [(false, false), (true, false), (true, true)]);
}

thread_local! {
    /// Number of pods decoded in this thread since the last call of [`decoded`].
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

pub(crate) fn decoded() -> usize {
    DECODED.replace(0)
}

/// A pod whose `Deserialize` implementation counts its calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Counted(Pod);

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.set(DECODED.get() + 1);
        Pod::deserialize(deserializer).map(Self)
    }
}

impl Resource for Counted {
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
        &self.0.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }
}

/// A handler that decodes the object of every addition and update.
pub(crate) struct Looks;

impl EventHandler<Counted> for Looks {
    async fn handle(&mut self, event: Event<Counted>) {
        if let Event::Added { object, .. } | Event::Updated { new: object, .. } = event {
            assert!(object.get().is_ok());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unread_object_is_not_decoded_and_an_object_read_by_all_handlers_is_decoded_once() {
    let server = Server::builder()
        .seed((0..100).map(|n| labelled(&format!("p{n}"), "x")))
        .build();
    let factory = factory_builder(server.client()).build();
    let by_app = Indexers::new().with_metadata("app", |pod: &Object<Counted>| {
        pod.labels().get("app").map(str::to_owned)
    });
    let pods = factory
        .informer_with::<Counted>(InformerOptions::new().packed())
        .unwrap();
    pods.add_indexers(by_app).await.unwrap();
    let queue = RateLimitingQueue::<ObjectName>::builder(controller_default()).build();
    pods.handler(enqueue(&queue)).register().unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    pods.handlers_idle().await;
    assert_eq!(queue.len(), 100);
    let app_is_x = "app=x".parse().unwrap();
    assert_eq!(pods.lister().list(&app_is_x).count(), 100);
    assert_eq!(
        pods.indexer()
            .snapshot()
            .index_keys("app", "x")
            .unwrap()
            .len(),
        100
    );
    assert_eq!(decoded(), 0, "neither keys nor labels need a body");

    let snapshot = pods.indexer().snapshot();
    let object = snapshot.get(&"default/p7".parse().unwrap()).unwrap();
    let first = object.get().unwrap();
    assert!(Arc::ptr_eq(&first, &object.get().unwrap()));
    assert_eq!(decoded(), 1, "all holders share the decoded object");

    pods.handler(Looks).register().unwrap();
    pods.handler(Looks).register().unwrap();
    pods.handlers_idle().await;
    decoded();
    for app in ["a", "b", "c"] {
        server.update(labelled("p1", app)).unwrap();
        pods.wait_for_revision(server.revision(), LONG)
            .await
            .unwrap();
        pods.handlers_idle().await;
        assert_eq!(
            decoded(),
            1,
            "two handlers read the new state, and none reads the old one"
        );
    }
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_read_reports_an_object_that_does_not_fit_the_type_and_its_next_state_corrects_it()
 {
    let mut bad = labelled("bad", "x");
    bad["spec"]["containers"] = json!("hunter2");
    let server = Server::builder().seed([pod("a"), bad]).build();
    let errors = Trace::default();
    let heard = errors.clone();
    let building = builder(&server)
        .indexers(Indexers::new().with_metadata("app", |pod: &Object<Pod>| {
            pod.labels().get("app").map(str::to_owned)
        }))
        .unwrap()
        .on_error(move |error| heard.note(error.to_string()))
        .packed();
    let informer = run(building);
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;
    assert_eq!(
        trace.take(),
        "add default/a@1 (initial)\nadd default/bad@2 (initial)\nsynced\n"
    );
    assert_eq!(errors.take(), "", "no object was read");
    let snapshot = informer.pods.indexer().snapshot();
    assert_eq!(snapshot.index_keys("app", "x").unwrap().len(), 1);
    let object = snapshot.get(&"default/bad".parse().unwrap()).unwrap();
    let text = "default/bad can't be decoded: a value of another type than expected, or a missing field, (line 1";
    for told in [1, 0] {
        let error = object.get().unwrap_err();
        assert_eq!(error.field(), "spec.containers");
        assert!(error.to_string().starts_with(text), "{error}");
        let errors = errors.take();
        assert_eq!(errors.lines().count(), told, "it is reported once");
        assert!(!errors.contains("hunter2"));
    }
    server.update(labelled("bad", "y")).unwrap();
    informer.caught_up(&server).await;
    assert_eq!(trace.take(), "update default/bad@2 → 3\n");
    assert!(
        informer
            .pods
            .lister()
            .namespace("default")
            .get("bad")
            .is_ok()
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_with_invalid_json_is_not_stored_and_leads_to_a_relist() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server).packed());
    informer.caught_up(&server).await;
    server
        .faults()
        .inject("watch pods: garble event 1 x1")
        .unwrap();
    server.faults().cut_watches();
    sleep(Duration::from_secs(60)).await;
    server.create(pod("b")).unwrap();
    informer.caught_up(&server).await;
    assert!(
        informer
            .pods
            .indexer()
            .list()
            .iter()
            .all(|pod| pod.get().is_ok())
    );
    assert_eq!(informer.pods.indexer().len(), 2);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_transform_applies_to_bodies_labels_and_indices() {
    let server = Server::builder()
        .seed((0..40).map(|n| labelled(&format!("p{n}"), "x")))
        .build();
    let building = builder(&server).indexers(by_image()).unwrap();
    let informer = run(building.packed_from(SAMPLES).transform(|pod| {
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert("seen".into(), "yes".into());
        for container in pod.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
            container.image = Some("other".into());
        }
    }));
    informer.caught_up(&server).await;
    let snapshot = informer.pods.indexer().snapshot();
    assert_eq!(snapshot.index_keys("image", "other").unwrap().len(), 40);
    for object in snapshot.iter() {
        assert!(object.live().is_none(), "the object is still packed");
        assert_eq!(object.labels().get("seen"), Some("yes"));
        let pod = object.get().unwrap();
        assert_eq!(
            pod.spec.as_ref().unwrap().containers[0].image.as_deref(),
            Some("other")
        );
        assert_eq!(pod.metadata.labels.as_ref().unwrap()["app"], "x");
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_packed_cache_is_saved_and_loaded() {
    let server = Server::builder()
        .seed((0..40).map(|n| labelled(&format!("p{n}"), "x")))
        .build();
    let folder = std::env::temp_dir().join(format!("kube-informer-packed-{}", std::process::id()));
    let building = || {
        let saved = SavedStore::in_directory(&folder, "1");
        builder(&server).warm_start(saved).packed_from(SAMPLES)
    };
    let informer = run(building());
    informer.caught_up(&server).await;
    let before = contents(&informer.pods);
    informer.stop().await;
    server.requests().clear();
    let informer = run(building());
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    assert_eq!(contents(&informer.pods), before);
    let streams = server.requests().watches("pods");
    let lists = streams.filter(|watch| watch.options.send_initial_events == Some(true));
    assert_eq!(lists.len(), 0, "nothing was listed");
    let live = informer.pods.indexer().list();
    assert!(
        live.iter().all(|pod| pod.live().is_none()),
        "loaded objects are packed too"
    );
    informer.stop().await;
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test(start_paused = true)]
async fn pruned_fields_are_absent_in_every_form_of_a_cache() {
    let mut noted = labelled("a", "x");
    noted["metadata"]["annotations"] = json!({"keep": "1", "drop.example.com/it": "2"});
    noted["metadata"]["managedFields"] = json!([{"manager": "kubelet", "operation": "Update"}]);
    let server = Server::builder().seed([noted]).build();
    let fields = [
        "metadata.managedFields",
        "metadata.annotations['drop.example.com/it']",
    ];
    for packed in [false, true] {
        let paths = fields.map(|field| field.parse().unwrap());
        let building = builder(&server).prune(paths).unwrap();
        let informer = run(if packed { building.packed() } else { building });
        informer.caught_up(&server).await;
        let pod = informer
            .pods
            .lister()
            .namespace("default")
            .get("a")
            .unwrap();
        assert_eq!(pod.metadata.managed_fields, None);
        let annotations = pod.metadata.annotations.clone().unwrap();
        assert_eq!(annotations, [("keep".to_owned(), "1".to_owned())].into());
        assert!(pod.spec.is_some());
        informer.stop().await;
    }
    let refused = builder(&server).prune(["spec.volumes".parse().unwrap()]);
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .starts_with("spec.volumes can't be pruned")
    );
    let factory = factory_builder(server.client()).build();
    let options = || InformerOptions::<Pod>::new();
    let _pods = factory.informer_with(options().packed()).unwrap();
    let paths = || [fields[0].parse().unwrap()];
    let conflict = factory.informer_with(options().prune(paths()).unwrap().packed());
    assert!(conflict.unwrap_err().to_string().contains("pruned fields"));
    let conflict = factory.informer_with(options());
    assert!(conflict.unwrap_err().to_string().contains("packing"));
}
