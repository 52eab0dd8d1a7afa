//! Tests that decoded, packed and lazy caches save their objects to a file, and load them from it.
//!
//! A packed cache compresses its objects. A lazy cache keeps the bytes of an object until its first read.
//! Both save and load objects without decoding them. Each type of cache can load a file that another type
//! has saved.

use std::borrow::Cow;

use k8s_openapi::NamespaceResourceScope;
use kube_core::{ObjectMeta, Resource};
use kube_informer::Lister;
use serde::{Deserialize, Deserializer, Serialize};

use super::*;
use crate::packed::contents;

/// Configures a builder for a decoded, a packed or a lazy cache.
type Form = fn(Builder<Pod>) -> Builder<Pod>;

const FORMS: [(&str, Form); 3] = [
    ("decoded", |decoded| decoded),
    ("packed", |decoded| decoded.packed_from(8)),
    ("lazy", Builder::lazy),
];

/// Number of [`Tallied`] pods decoded since the last reset. Only one test uses `Tallied`.
static DECODED: AtomicUsize = AtomicUsize::new(0);

/// A pod whose `Deserialize` implementation counts its calls in [`DECODED`].
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
struct Tallied(Pod);

impl<'de> Deserialize<'de> for Tallied {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.fetch_add(1, Ordering::Relaxed);
        Pod::deserialize(deserializer).map(Self)
    }
}

impl Resource for Tallied {
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

/// Runs an informer until the sync, and then stops the informer, which saves its objects.
///
/// Calls `look` after the stop, and returns the [`WarmStart`] from the informer's status.
async fn start(builder: Builder<Tallied>, look: impl FnOnce(Lister<Tallied>)) -> Option<WarmStart> {
    let (pods, controller) = builder.build();
    let synced = async { pods.wait_for_sync().deadline(LONG).await.unwrap() };
    controller.run(synced).await.unwrap();
    look(pods.lister());
    pods.status().get().warm_start
}

#[tokio::test(start_paused = true)]
async fn a_packed_or_lazy_cache_is_saved_and_loaded_without_decoding_an_object() {
    let seed = (0..40).map(|n| labelled(&format!("p{n}"), "x"));
    let server = Server::builder().seed(seed).build();
    for form in ["packed", "lazy"] {
        let path = file(&format!("undecoded-{form}"));
        let building = || {
            let source = ListWatch::<Tallied>::new(server.client());
            let building = SharedInformer::<Tallied>::builder(source).warm_start(saved(&path));
            match form {
                "packed" => building.packed_from(8),
                _ => building.lazy(),
            }
        };
        start(building(), |_| {}).await;
        assert!(path.exists());
        assert_eq!(DECODED.swap(0, Ordering::Relaxed), 0, "{form}: saved");
        let outcome = start(building(), |pods| {
            let snapshot = pods.snapshot();
            assert_eq!((snapshot.len(), snapshot.unread_count()), (40, 40));
            let by_label = "app=x".parse().unwrap();
            assert_eq!(pods.list(&by_label).count(), 40);
            assert_eq!(DECODED.swap(0, Ordering::Relaxed), 0, "{form}: loaded");
            assert!(snapshot.iter().all(|pod| pod.get().is_ok()));
            assert_eq!(snapshot.unread_count(), 0);
            assert_eq!(DECODED.swap(0, Ordering::Relaxed), 40, "{form}: read");
        });
        let outcome = outcome.await;
        assert!(
            matches!(outcome, Some(WarmStart::Warm { objects: 40, .. })),
            "{outcome:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn each_form_of_a_cache_loads_the_stores_of_every_form() {
    let seed = (0..40).map(|n| labelled(&format!("p{n}"), "x"));
    let server = Server::builder().seed(seed.chain([pod("plain")])).build();
    for (saver, keep) in FORMS {
        let path = file(&format!("by-{saver}"));
        let informer = run(keep(warm(&server, &path)));
        informer.caught_up(&server).await;
        let before = contents(&informer.pods);
        informer.stop().await;
        for (loader, keep) in FORMS {
            let informer = run(keep(warm(&server, &path)));
            informer.caught_up(&server).await;
            assert_eq!(started(&informer), "warm: 41@41", "{saver} → {loader}");
            assert_eq!(contents(&informer.pods), before, "{saver} → {loader}");
            informer.kill().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_object_is_saved_in_its_last_known_state() {
    let mut bad = labelled("bad", "x");
    bad["spec"]["containers"] = json!("hunter2");
    let server = Server::builder().seed([pod("a"), bad]).build();
    for (form, keep) in &FORMS[1..] {
        for is_read in [false, true] {
            let path = file(&format!("bad-{form}-{is_read}"));
            let informer = run(keep(warm(&server, &path)));
            informer.caught_up(&server).await;
            if is_read {
                let lister = informer.pods.lister().namespace("default");
                lister.get("bad").unwrap_err();
            }
            informer.stop().await;
            let informer = run(keep(warm(&server, &path)));
            informer.caught_up(&server).await;
            assert_eq!(started(&informer), "warm: 2@2", "{form}, {is_read}");
            let broken = || informer.pods.indexer().snapshot().broken_in("default");
            assert_eq!(broken(), usize::from(is_read), "{form}");
            let lister = informer.pods.lister().namespace("default");
            let error = lister.get("bad").unwrap_err().to_string();
            assert!(error.contains("spec.containers"), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
            sleep(Duration::from_millis(1)).await;
            assert_eq!(broken(), 1, "{form}");
            informer.stop().await;
        }
        let path = file(&format!("bad-{form}-decoded"));
        save(&server, keep(warm(&server, &path))).await;
        let informer = run(warm(&server, &path));
        informer.caught_up(&server).await;
        let cold = "cold: the saved store is damaged: line 3 has unexpected content";
        assert_eq!(
            started(&informer),
            cold,
            "a decoded cache must decode the object"
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_packed_cache_does_not_transform_saved_objects_again() {
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let path = file("packed-transform");
    let informer = || {
        warm(&server, &path).packed().transform(|pod| {
            let labels = pod.metadata.labels.get_or_insert_default();
            let times = labels.len();
            labels.insert(format!("seen-{times}"), "yes".to_owned());
            // The transform runs after identity and revision were read.
            pod.metadata.resource_version = None;
        })
    };
    save(&server, informer()).await;
    let again = run(informer());
    again.caught_up(&server).await;
    assert_eq!(started(&again), "warm: 1@1");
    let cached = again.pods.indexer().snapshot();
    let cached = cached.get(&ObjectName::namespaced("default", "a")).unwrap();
    assert_eq!(cached.revision().as_u64(), Some(1));
    let labels: Vec<_> = cached.labels().iter().collect();
    assert_eq!(labels, [("app", "web"), ("seen-1", "yes")]);
    let whole = cached.get().unwrap();
    assert_eq!(whole.metadata.labels.as_ref().unwrap().len(), 2);
    again.stop().await;
}
