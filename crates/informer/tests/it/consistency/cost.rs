//! Tests the requests of consistency checks, the times of the checks, and checks whose requests fail.

use expect_test::expect;
use futures_core::future::BoxFuture;
use futures_util::StreamExt;
use kube_core::PartialObjectMeta;
use kube_informer::{
    InformerOptions,
    informer::Informer,
    transport::{self, Encoding, ListOptions, ListerWatcher, Response},
};
use tokio::time::Instant;

use super::*;
use crate::setting::{factory_builder, requests};

/// Returns the requests of the consistency checks, one per line, with options and status code.
fn asked(server: &Server) -> String {
    let line = |request: &LoggedRequest| {
        let options = &request.options;
        let page = options.continue_token.as_ref().map_or("", |_| " continue");
        format!(
            "revision {} {} limit={}{page}: {}\n",
            options.resource_version.as_deref().unwrap_or("-"),
            options.resource_version_match.as_deref().unwrap_or("-"),
            options.limit.unwrap_or_default(),
            request.status.unwrap_or_default(),
        )
    };
    checks(server).iter().map(line).collect()
}

#[tokio::test(start_paused = true)]
async fn a_check_sends_one_paged_list_at_the_revision_of_the_cache() {
    let server = Server::builder()
        .seed((0..1001).map(|n| pod(&format!("p{n}"))))
        .build();
    let informer = run(checked(&server));
    informer.caught_up(&server).await;
    sleep(PERIOD).await;
    expect![[r#"
        revision 1001 Exact limit=500: 200
        revision - - limit=500 continue: 200
        revision - - limit=500 continue: 200
    "#]]
    .assert_eq(&asked(&server));
    assert_eq!(counts(&informer.pods), [1, 0, 0]);
    assert_eq!(
        (lists(&server), server.requests().watches("pods").len()),
        (1, 1)
    );
    informer.stop().await;
}

/// A list of complete objects would make a check as expensive as a relist.
#[tokio::test(start_paused = true)]
async fn a_check_requests_only_metadata_for_every_type() {
    let server = Server::builder().seed([pod("a")]).build();
    let sources: [Box<dyn ListerWatcher>; 2] = [
        Box::new(ListWatch::<Pod>::new(server.client()).encoding(Encoding::Json)),
        Box::new(
            ListWatch::<PartialObjectMeta<Pod>>::new(server.client()).encoding(Encoding::Json),
        ),
    ];
    for source in sources {
        let body = source.list_metadata(&ListOptions::default()).await;
        let mut body = body.unwrap().into_body();
        let mut text = Vec::new();
        while let Some(chunk) = body.next().await {
            text.extend_from_slice(&chunk.unwrap());
        }
        let list: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["items"][0]["metadata"]["name"], "a");
        assert!(list["items"][0].get("spec").is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn no_check_is_sent_without_the_option_or_with_a_period_of_zero() {
    let server = Server::builder().seed([pod("a")]).build();
    let without = run(listing(&server));
    let zero = run(checked(&server).consistency_check(Duration::ZERO));
    sleep(10 * PERIOD).await;
    assert!(checks(&server).is_empty());
    for informer in [without, zero] {
        assert_eq!(counts(&informer.pods), [0; 3]);
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn checks_are_a_half_to_a_whole_period_apart_and_differ_between_informers() {
    /// Forwards requests to a `ListWatch`, and records the time of each consistency check.
    struct Noting(ListWatch<Pod>, Arc<Mutex<Vec<Instant>>>);

    impl ListerWatcher for Noting {
        fn list(&self, options: &ListOptions) -> BoxFuture<'_, Result<Response, transport::Error>> {
            self.0.list(options)
        }

        fn list_metadata(
            &self,
            options: &ListOptions,
        ) -> BoxFuture<'_, Result<Response, transport::Error>> {
            self.1.lock().push(Instant::now());
            self.0.list_metadata(options)
        }

        fn watch(
            &self,
            options: &ListOptions,
        ) -> BoxFuture<'_, Result<Response, transport::Error>> {
            self.0.watch(options)
        }
    }

    let server = Server::builder().seed([pod("a")]).build();
    let (noted, mut running) = (Arc::<Mutex<Vec<Instant>>>::default(), Vec::new());
    let begun = Instant::now();
    for seed in 0..20 {
        let source = Noting(ListWatch::new(server.client()), Arc::clone(&noted));
        let building = SharedInformer::<Pod>::builder(source).rng_seed(seed);
        running.push(run(building.consistency_check(PERIOD)));
    }
    sleep(PERIOD).await;
    let mut moments = noted.lock().clone();
    moments.retain(|moment| *moment < begun + PERIOD);
    let first = moments.iter().min().unwrap();
    assert!(*first >= begun + PERIOD / 2);
    moments.dedup();
    assert!(moments.len() >= 20, "{} moments", moments.len());
    for informer in &running {
        let [same, ..] = counts(&informer.pods);
        assert!((1..=2).contains(&same), "{same} in a period");
    }
    for informer in running {
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_reports_no_difference_and_waits_for_its_next_period() {
    let plans = [
        ("list pods: 429 retry-after=1", Class::TooManyRequests),
        ("list pods: 500", Class::Internal),
        ("list pods: 503", Class::Unavailable),
        ("list pods: 403", Class::Forbidden),
        ("list pods: 410", Class::Expired),
        ("list pods: reset", Class::Connection),
        ("list pods: cut after 40 bytes", Class::Connection),
        ("list pods: break after 40 bytes", Class::Connection),
        ("list pods: freeze", Class::Timeout),
        ("list pods: delay answer 90s", Class::Timeout),
    ];
    for (plan, class) in plans {
        let server = Server::builder().seed([pod("a")]).build();
        let errors = Trace::default();
        let noted = errors.clone();
        let informer = run(checked(&server).on_error(move |error| noted.note(error.to_string())));
        informer.caught_up(&server).await;
        server.faults().inject(plan).unwrap();
        sleep(3 * PERIOD).await;
        let outcome = outcome(&informer.pods);
        assert_eq!((outcome.same, outcome.different), (0, 0), "{plan}");
        assert!(
            (2..=6).contains(&outcome.failed),
            "{plan}: {}",
            outcome.failed
        );
        let failure = outcome.last_failure.unwrap();
        assert_eq!(failure.class(), class, "{plan}: {failure}");
        assert!(checks(&server).len() as u64 <= outcome.failed + 1, "{plan}");
        let lists = lists(&server);
        assert_eq!(lists, 1, "{plan}: a failed check causes no relist");
        let watches = server.requests().watches("pods");
        let opened = 3 * PERIOD.as_secs() / 300 + 1;
        assert!(
            watches.len() as u64 <= opened,
            "{plan}: a failed check does not affect the watch"
        );
        assert_eq!(
            errors.take(),
            "",
            "{plan}: a failed check is not an error of the informer"
        );
        assert!(
            informer.pods.status().get().last_error().is_none(),
            "{plan}"
        );

        server.faults().clear();
        server.create(pod("b")).unwrap();
        sleep(2 * PERIOD).await;
        assert!(
            counts(&informer.pods)[0] >= 1,
            "{plan}: the checks continue"
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_at_a_compacted_revision_fails_as_expired() {
    let server = Server::builder()
        .seed([pod("a")])
        .faults("watch pods: drop bookmarks")
        .unwrap()
        .build();
    let informer = run(checked(&server));
    informer.caught_up(&server).await;
    // An object of another kind, so the revision of the cache does not change.
    server
        .create(serde_json::json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "m", "namespace": "default"},
        }))
        .unwrap();
    server.faults().expire_history();
    sleep(PERIOD).await;
    let outcome = outcome(&informer.pods);
    assert_eq!((outcome.same, outcome.different, outcome.failed), (0, 0, 1));
    assert_eq!(outcome.last_failure.unwrap().class(), Class::Expired);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_check_runs_before_sync_or_during_a_back_off() {
    let server = Server::builder().seed([pod("a")]).build();
    server.faults().inject("list pods: 403").unwrap();
    let informer = run(checked(&server));
    sleep(3 * PERIOD).await;
    assert!(checks(&server).is_empty(), "before sync");
    server.faults().clear();
    sleep(PERIOD).await;
    assert!(!checks(&server).is_empty());

    server
        .faults()
        .inject("watch pods: 403; list pods: 403")
        .unwrap();
    server.faults().cut_watches();
    sleep(Duration::from_secs(1)).await;
    server.requests().clear();
    sleep(3 * PERIOD).await;
    assert!(
        checks(&server).is_empty(),
        "while backing off: {}",
        requests(&server)
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_check_period_is_that_of_the_options_the_type_or_the_factory() {
    let server = Server::builder().seed([labelled("a", "web")]).build();
    let secs = Duration::from_secs;
    let factory = factory_builder(server.client())
        .consistency_check(secs(3600))
        .for_type(InformerOptions::<Pod>::new().consistency_check(secs(600)))
        .rng_seed(1)
        .build();
    let labels = |value: &str| {
        let labels = format!("app={value}").parse().unwrap();
        InformerOptions::<Pod>::new().labels(labels)
    };
    let of_type = factory.informer::<Pod>();
    let own = factory
        .informer_with(labels("web").consistency_check(secs(60)))
        .unwrap();
    let none = factory
        .informer_with(labels("db").consistency_check(Duration::ZERO))
        .unwrap();
    let of_all = factory.informer::<k8s_openapi::api::core::v1::ConfigMap>();
    let conflict = factory.informer_with(labels("web")).unwrap_err();
    assert!(conflict.to_string().contains("another consistency check"));
    factory.start();
    sleep(secs(7200)).await;
    let of_all = of_all.status().get().consistency.same;
    assert!((2..=4).contains(&of_all), "{of_all}");
    let [of_type, own] = [of_type, own].map(|pods| counts(&pods)[0]);
    assert!((12..=24).contains(&of_type), "{of_type}");
    assert!((120..=240).contains(&own), "{own}");
    assert_eq!(counts(&none), [0; 3]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test owns the task and ends it"
)]
async fn a_plain_informer_runs_checks() {
    let server = Server::builder()
        .seed([pod("a")])
        .faults("watch pods: drop event 1 x1")
        .unwrap()
        .build();
    let (indexer, controller) = Informer::builder::<Pod>(ListWatch::<Pod>::new(server.client()))
        .rng_seed(1)
        .consistency_check(PERIOD)
        .build();
    let status = controller.status();
    let running = tokio::spawn(controller.run(sleep(2 * PERIOD)));
    sleep(Duration::from_secs(1)).await;
    server.delete("v1", "pods", "default/a").unwrap();
    running.await.unwrap().unwrap();
    assert_eq!((indexer.len(), status.get().consistency.different), (0, 1));
}
