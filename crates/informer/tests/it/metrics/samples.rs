//! Tests of the values in a metrics sample of an informer: the values of the store, the indices and the
//! handlers.

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
    let memory = informer.pods.memory();
    assert_eq!((memory.objects, memory.rest_bytes), (2, store.rest_bytes));
    assert_eq!((memory.indices, memory.index_entries), (2, 2));
    assert_eq!((memory.arriving, memory.waiting), (0, 0));
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
async fn the_bytes_of_a_store_follow_updates_and_exclude_broken_objects() {
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

#[tokio::test(start_paused = true)]
async fn the_memory_of_a_cache_is_that_of_its_packed_or_decoded_objects() {
    let text = "a text that takes its own length".repeat(20);
    let long = labelled("b", &text, 2);
    let script = |last: String| {
        Script::new([
            body(list(5, "", &[pod("a", 1), last])),
            hangs(String::new()),
        ])
    };
    let recorder = Recorder::default();
    let run_of = |last: &str| run(builder(&script(last.to_owned()), &recorder));
    let (short, whole) = (run_of(&pod("b", 2)), run_of(&long));
    let packed = run(builder(&script(long.clone()), &recorder).packed());
    sleep(Duration::from_secs(1)).await;
    let rest = |informer: &Running| informer.pods.memory().rest_bytes;
    // The map of labels is a node with eleven entries.
    let node = 11 * 2 * size_of::<String>() + 16;
    let more = node + "app".len() + text.len();
    assert_eq!(rest(&whole) - rest(&short), more as u64);
    assert!(rest(&whole) > 2 * size_of::<Pod>() as u64);
    let json = (long.len() + pod("a", 1).len()) as u64;
    assert!(rest(&packed) >= json && rest(&packed) < json + 1000);
    assert!(
        packed.pods.memory().dictionary_bytes >= json,
        "the dictionary holds its samples"
    );
    assert_eq!(whole.pods.memory().dictionary_bytes, 0);
    for informer in [short, whole, packed] {
        informer.stop().await;
    }
}
