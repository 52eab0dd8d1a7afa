//! Tests of options that apply to all informers of a factory, to the informers of one type, or to a single
//! informer. The tests check which option applies, and in which order transforms run.

use std::collections::BTreeMap;

use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource, ResourceExt};
use kube_informer::{SharedInformer, reflector::BackoffConfig, transport::Encoding};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;
use crate::setting::factory_builder;

/// Times of a handler's updates, one per resync.
type Resyncs = Arc<Mutex<Vec<Instant>>>;

fn resyncs_of<K: Resource + Send + Sync + 'static>(informer: &SharedInformer<K>) -> Resyncs {
    let heard = Resyncs::default();
    let note = Arc::clone(&heard);
    informer
        .on_update(move |_, _| note.lock().push(Instant::now()))
        .register()
        .unwrap();
    heard
}

/// Returns the whole seconds between the last two resyncs.
fn period(resyncs: &Resyncs) -> Option<u64> {
    let resyncs = resyncs.lock();
    let [.., last, next] = resyncs[..] else {
        return None;
    };
    Some((next - last).as_secs())
}

#[tokio::test(start_paused = true)]
async fn the_resync_period_is_that_of_the_options_the_type_or_the_factory() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "default"}});
    let server = Server::builder().seed([labelled("a", "web"), map]).build();
    let secs = Duration::from_secs;
    let factory = factory_builder(server.client())
        .resync(secs(600))
        .resync_for::<Pod>(secs(60))
        .resync_for::<Pod>(secs(300))
        .resync_for::<PartialObjectMeta<Pod>>(Duration::ZERO)
        .build();
    let of_all = factory.informer::<ConfigMap>();
    let of_type = factory.informer::<Pod>();
    let none_of_type = factory.informer::<PartialObjectMeta<Pod>>();
    let labels = || InformerOptions::<Pod>::new().labels("app=web".parse().unwrap());
    let own = factory.informer_with(labels().resync(secs(900))).unwrap();
    let none = InformerOptions::<Pod>::new().fields("metadata.name=a");
    let none = factory.informer_with(none.resync(Duration::ZERO)).unwrap();
    let (of_all, none_of_type) = (resyncs_of(&of_all), resyncs_of(&none_of_type));
    let [of_type, own, none] = [of_type, own, none].map(|pods| resyncs_of(&pods));
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    sleep(LONG).await;
    assert_eq!(period(&of_all), Some(600));
    assert_eq!(period(&of_type), Some(300), "the later call wins");
    assert_eq!(period(&none_of_type), None);
    assert_eq!(period(&own), Some(900));
    assert_eq!(period(&none), None);
    factory.shutdown().await;
}

fn trail(annotations: &BTreeMap<String, String>) -> &str {
    annotations.get("trail").map_or("", String::as_str)
}

/// Appends the transform's name `who` to the annotation `trail`, to show the transforms' order.
fn note(annotations: &mut BTreeMap<String, String>, who: &str) {
    annotations
        .entry("trail".to_owned())
        .or_default()
        .push_str(who);
}

#[tokio::test(start_paused = true)]
async fn the_metadata_transform_runs_before_that_of_the_options_or_the_type() {
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let factory = factory_builder(server.client())
        .transform_metadata(|metadata| {
            note(metadata.annotations.get_or_insert_default(), "metadata,");
        })
        .transform_for::<Pod>(|pod| {
            note(pod.annotations_mut(), "type,");
            pod.spec = None;
        })
        .transform_for::<DynamicObject>(|object| note(object.annotations_mut(), "dynamic,"))
        .build();
    let of_type = factory.informer::<Pod>();
    let own = InformerOptions::<Pod>::new()
        .labels("app=web".parse().unwrap())
        .transform(|pod| note(pod.annotations_mut(), "own,"));
    let own = factory.informer_with(own).unwrap();
    let names = factory.informer::<PartialObjectMeta<Pod>>();
    let dynamic = factory
        .for_resource(&ApiResource::erase::<Pod>(&()))
        .unwrap();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();

    let name = "default/a".parse().unwrap();
    let pod = of_type.indexer().get(&name).unwrap().get().unwrap();
    assert_eq!(trail(pod.annotations()), "metadata,type,");
    assert!(pod.spec.is_none());
    let pod = own.indexer().get(&name).unwrap().get().unwrap();
    assert_eq!(trail(pod.annotations()), "metadata,own,");
    assert!(pod.spec.is_some(), "the transform of the type does not run");
    let pod = names.indexer().get(&name).unwrap().get().unwrap();
    assert_eq!(trail(pod.annotations()), "metadata,");
    let pod = dynamic.indexer().get(&name).unwrap().get().unwrap();
    assert_eq!(trail(pod.annotations()), "metadata,dynamic,");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_metadata_transform_applies_to_watch_events_and_cannot_change_identity() {
    let server = Server::builder().seed([pod("a")]).build();
    let factory = factory_builder(server.client())
        .transform_metadata(|metadata| *metadata = kube_core::ObjectMeta::default())
        .build();
    let pods = factory.informer::<Pod>();
    let trace = Trace::default();
    trace.listen(&pods);
    factory.start();
    pods.wait_for_sync().deadline(LONG).await.unwrap();
    server.update(labelled("a", "web")).unwrap();
    let reached = pods.wait_for_revision(server.revision(), LONG);
    reached.await.unwrap();
    pods.handlers_idle().await;
    assert_eq!(
        trace.take(),
        "add default/a@1 (initial)\nsynced\nupdate default/a@1 → 2\n"
    );
    let pod = pods.indexer().list()[0].get().unwrap();
    assert_eq!(pod.metadata, kube_core::ObjectMeta::default());
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn error_handler_timeouts_and_back_off_of_a_factory_apply_to_all_informers() {
    let secs = Duration::from_secs;
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let internal = r#"{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError","message":"planted"}}"#;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&heard);
    let factory = factory_builder(server.client())
        .initial_list(InitialList::List)
        .encoding(Encoding::Json)
        .on_error(move |informer, error| note.lock().push(format!("{informer}: {error}")))
        .watch_timeout_min(secs(3600))
        .internal_error_retry(secs(60))
        .backoff(BackoffConfig {
            initial: secs(100),
            cap: secs(100),
            ..BackoffConfig::default()
        })
        .build();
    factory.informer::<Pod>();
    factory.start();
    factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
    sleep(secs(2)).await;
    for _ in 0..2 {
        server.faults().send_raw_to_watches(internal);
        sleep(secs(1)).await;
    }
    sleep(secs(95)).await;
    let log = server.requests();
    assert_eq!(log.lists("pods").len(), 1, "a budget for internal errors");
    let watches = log.watches("pods");
    assert_eq!(watches.len(), 2, "the third one waits for 100 s at least");
    let first = watches.iter().next().unwrap();
    let timeout = first.options.timeout_seconds.unwrap();
    assert!((3600..=7200).contains(&timeout), "{timeout} s");
    let heard = heard.lock().clone();
    assert_eq!(heard.len(), 2);
    assert!(
        heard[0].starts_with("pods: ") && heard[0].ends_with(": planted"),
        "{heard:?}"
    );
    sleep(secs(110)).await;
    assert_eq!(server.requests().watches("pods").len(), 3);
    factory.shutdown().await;
}
