//! Tests of the Prometheus collector: the exported series and their values.

use expect_test::expect_file;
use kube_informer::{
    metrics::Prometheus,
    workqueue::{RateLimitingQueue, rate_limiter},
};

use super::*;

/// Returns the lines of a metrics page that start with one of `beginnings`.
fn lines(page: &str, beginnings: &[&str]) -> String {
    let wanted = |line: &&str| {
        beginnings
            .iter()
            .any(|beginning| line.starts_with(beginning))
    };
    page.lines()
        .filter(wanted)
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_page_has_the_series_of_all_informers_and_queues_by_their_established_names() {
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), pod("b", 2)])),
        // Two watches that end, so that lists and watches have different numbers.
        body(event("ADDED", &pod("c", 6))),
        body(event("MODIFIED", &pod("c", 7))),
        hangs(event("MODIFIED", &pod("c", 8)) + &bookmark(9)),
    ]);
    let metrics = Arc::new(Prometheus::new());
    let by_name = Indexers::new().with("name", |pod: &Pod| pod.metadata.name.clone());
    let building = SharedInformer::builder(script)
        .name("ours")
        .rng_seed(1)
        .metrics(metrics.clone());
    let informer = run(building.indexers(by_name).unwrap());
    let heard = Trace::default();
    informer
        .pods
        .handler(heard)
        .name("traces")
        .register()
        .unwrap();
    let queue = RateLimitingQueue::builder(rate_limiter::controller_default())
        .metrics("keys", metrics.clone())
        .build();
    for key in ["a", "b", "c", "d"] {
        queue.add(key);
    }
    queue.get().await.unwrap().forget();
    let second = Duration::from_secs(1);
    sleep(second).await;
    let _b = queue.get().await.unwrap();
    sleep(second).await;
    let _c = queue.get().await.unwrap();
    sleep(2 * second).await;
    let labels = r#"name="ours",group="",version="v1",resource="pods",namespace="""#;
    let page = metrics.text().replace(labels, "…");
    // The size of a type in memory depends on the compiler.
    let memory = format!("_bytes{{…}} {}\n", informer.pods.memory().rest_bytes);
    let page = page.replace(&memory, "_bytes{…} its memory\n");
    let shown = |line: &&str| !line.contains("_bucket{") && !line.starts_with("# HELP");
    let page: String = page
        .lines()
        .filter(shown)
        .flat_map(|line| [line, "\n"])
        .collect();
    expect_file!["page.txt"].assert_eq(&page);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_page_shows_unsynced_informers_and_the_largest_lag_per_name() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let metrics = Arc::new(Prometheus::new());
    let (pods, controller) = setting::builder(&server).metrics(metrics.clone()).build();
    let slow = pods.on_add(|_, _| sleep(Duration::from_secs(60)));
    slow.name("same").register().unwrap();
    pods.on_add(|_, _| {}).name("same").register().unwrap();
    let values = |beginning| {
        let page = lines(&metrics.text(), &[beginning]);
        let values = page.lines().filter_map(|line| line.rsplit(' ').next());
        values.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(values("informer_synced{"), ["0"]);
    let steps = async {
        pods.wait_for_sync().await.unwrap();
        sleep(Duration::from_secs(30)).await;
        assert_eq!(values("informer_synced{"), ["1"]);
        let lag: f64 = values("informer_handler_lag_seconds{")[0].parse().unwrap();
        assert!((30.0..31.0).contains(&lag), "{lag}");
    };
    controller.run(steps).await.unwrap();
}

/// Regression test for kubernetes#73587: client-go never removed the metrics of a stopped reflector.
#[tokio::test(start_paused = true)]
async fn a_page_has_no_series_of_ended_informers_and_queues() {
    let server = Server::builder().seed([setting::pod("a")]).build();
    let metrics = Arc::new(Prometheus::new());
    for _ in 0..3 {
        let informer = run(setting::builder(&server).metrics(metrics.clone()));
        informer.caught_up(&server).await;
        assert!(metrics.text().contains("informer_store_items"));
        assert!(metrics.text().contains("informer_store_memory_bytes"));
        let kept = informer.stop().await;
        assert_eq!(metrics.text(), "# EOF\n", "series outlive their informer");
        drop(kept);
    }
    let queue = RateLimitingQueue::builder(rate_limiter::controller_default())
        .metrics("keys", metrics.clone())
        .build();
    queue.add("a");
    assert!(metrics.text().contains("workqueue_depth"));
    drop(queue);
    assert_eq!(metrics.text(), "# EOF\n");
}

#[tokio::test(start_paused = true)]
async fn informers_with_the_same_labels_share_their_series_until_the_last_has_ended() {
    let server = Server::builder()
        .seed([setting::pod("a"), setting::pod("b")])
        .build();
    let metrics = Arc::new(Prometheus::new());
    let first = run(setting::builder(&server).metrics(metrics.clone()));
    let second = run(setting::builder(&server).metrics(metrics.clone()));
    first.caught_up(&server).await;
    second.caught_up(&server).await;
    let figures = || {
        let page = metrics.text();
        let figures = lines(&page, &["informer_store_items{", "informer_events_total{"]);
        let values = figures.lines().filter_map(|line| line.rsplit(' ').next());
        values.map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(figures(), "4 4 0 0", "items, then added, deleted, updated");
    first.stop().await;
    assert_eq!(
        figures(),
        "2 4 0 0",
        "a counter does not decrease while it is exported"
    );
    second.stop().await;
    assert_eq!(figures(), "");
}

#[tokio::test(start_paused = true)]
async fn labels_are_those_of_client_go_and_the_namespace() {
    let server = Server::builder().build();
    let metrics = Arc::new(Prometheus::new());
    let source = ListWatch::<Pod>::new(server.client()).namespace("shop");
    let builder = SharedInformer::<Pod>::builder(source);
    let (_pods, _controller) = builder.metrics(metrics.clone()).build();
    expect![[r#"
        informer_synced{name="pods in shop",group="",version="v1",resource="pods",namespace="shop"} 0
    "#]]
    .assert_eq(&lines(&metrics.text(), &["informer_synced{"]));
}
