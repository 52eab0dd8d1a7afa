//! What a sample shows.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_sample_shows_store_indices_and_handlers() {
    let (a, b) = (labelled("a", "web", 1), labelled("b", "web", 2));
    let bytes = a.len() + b.len();
    let script = Script::new([
        body(list(5, "", &[a, b, labelled("c", "db", 3)])),
        hangs(event("DELETED", &labelled("c", "db", 6))),
    ]);
    let recorder = Recorder::default();
    let by_app = Indexers::new()
        .with("app", |pod: &Pod| {
            pod.metadata
                .labels
                .clone()
                .unwrap_or_default()
                .into_values()
        })
        .with("none", |_: &Pod| None::<String>);
    let informer = run(builder(&script, &recorder).indexers(by_app).unwrap());
    let heard = Trace::default();
    informer
        .pods
        .handler(heard)
        .name("ours")
        .register()
        .unwrap();
    sleep(Duration::from_secs(7)).await;
    let sample = recorder.sampler().sample().unwrap();
    let store = sample.store.unwrap();
    assert_eq!((store.items, store.revision), (2, 6.into()));
    assert_eq!(store.wire_bytes, bytes as u64);
    expect![[r#"
        [IndexSample { name: "app", values: 1, entries: 2 }, IndexSample { name: "none", values: 0, entries: 0 }]
        [HandlerSample { name: "ours", depth: 0, lag: 0ns, panics: 0 }]
    "#]]
    .assert_eq(&format!("{:?}\n{:?}\n", store.indices, sample.handlers));
    assert!(sample.status.synced);
    let source = &sample.status.sources[0];
    assert_eq!(source.since_last_event(), Some(Duration::from_secs(7)));
    assert_eq!(source.since_last_bookmark(), None);
    informer.stop().await;
}

fn labelled(name: &str, app: &str, revision: u64) -> String {
    let labels = format!(r#"{{"labels":{{"app":"{app}"}},"#);
    pod(name, revision).replacen(r#""metadata":{"#, &format!(r#""metadata":{labels}"#), 1)
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_store_are_those_of_the_objects_in_it_whatever_became_of_them() {
    let broken = r#"{"metadata":{"name":"b","namespace":"default","labels":7}}"#;
    let longer = labelled("a", "a longer one", 7);
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), pod("b", 2), pod("c", 3)])),
        hangs(event("MODIFIED", &longer) + &event("MODIFIED", broken) + &event("ADDED", broken)),
    ]);
    let recorder = Recorder::default();
    let informer = run(builder(&script, &recorder));
    sleep(Duration::from_secs(1)).await;
    let store = recorder.sampler().sample().unwrap().store.unwrap();
    assert_eq!(store.wire_bytes, (longer.len() + pod("c", 3).len()) as u64);
    informer.stop().await;
}
