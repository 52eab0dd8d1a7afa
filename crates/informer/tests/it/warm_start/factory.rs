//! Tests of warm starts of the informers of a factory. The factory saves the caches of all its informers in
//! one directory.

use kube_informer::InformerOptions;

use super::*;
use crate::setting::factory_builder;

#[tokio::test(start_paused = true)]
async fn one_directory_serves_all_informers_of_a_factory() {
    let metadata = json!({"name": "s", "namespace": "default"});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata});
    let server = Server::builder().seed([pod("a"), secret]).build();
    let directory = SavedStore::in_directory(folder("factory"), "1");
    for is_warm in [false, true] {
        let factory = factory_builder(server.client()).build();
        let pods = InformerOptions::new().warm_start(directory.clone());
        let pods = factory.informer_with::<Pod>(pods).unwrap();
        let metadata = InformerOptions::new().warm_start(directory.clone());
        let metadata = factory
            .informer_with::<PartialObjectMeta<Pod>>(metadata)
            .unwrap();
        let secrets = InformerOptions::new().warm_start(directory.clone());
        let secrets = factory.informer_with::<Secret>(secrets).unwrap();
        // A request with another saved store is an error, and does not return this informer.
        let other = SavedStore::in_directory(folder("factory-other"), "1");
        let other = InformerOptions::new().warm_start(other);
        let conflict = factory.informer_with::<Pod>(other).unwrap_err();
        assert!(conflict.to_string().contains("saved store"), "{conflict}");

        factory.start();
        factory.wait_for_cache_sync().deadline(LONG).await.unwrap();
        let starts = [pods.status(), metadata.status()].map(|status| status.get().warm_start);
        for start in starts {
            assert_eq!(
                matches!(start, Some(WarmStart::Warm { .. })),
                is_warm,
                "{start:?}"
            );
        }
        let reason = ColdReason::SecretsRefused;
        assert_eq!(
            secrets.status().get().warm_start,
            Some(WarmStart::Cold { reason })
        );
        factory.shutdown().await;
    }
}
