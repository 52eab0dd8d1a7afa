//! Tests of a reflector's log lines: its start and stop, slow lists, and skipped objects of another kind.

use super::*;

#[tokio::test(start_paused = true)]
async fn start_ends_and_stop_are_logged_with_name_kind_duration_and_count() {
    let logs = Logs::capture();
    let expired = r#"{"code":410,"reason":"Expired","message":"too old"}"#;
    let later = r#"{"code":503,"message":"later"}"#;
    let two_seconds = Then::EndsAfter(Duration::from_secs(2));
    let script = Script::new([
        body(list(5, "", &[pod("a", 1)])),
        Answer::Body(event("ADDED", &pod("b", 6)), two_seconds),
        hangs(event("ADDED", &pod("c", 7)) + &error_event(expired)),
        body(list(8, "", &[])),
        hangs(error_event(later)),
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script)
        .name("ours")
        .rng_seed(1)
        .into_indexer(writer);
    reflector.run(sleep(Duration::from_millis(2500))).await;
    expect![[r#"
        DEBUG starting reflector=ours expects=v1 Pod
        DEBUG listed reflector=ours expects=v1 Pod revision=5 count=1
        DEBUG the watch closed reflector=ours expects=v1 Pod open_for=2s events=1
        DEBUG the revision is too old reflector=ours expects=v1 Pod what=objects error=too old open_for=0ns events=1
        DEBUG listed reflector=ours expects=v1 Pod revision=8 count=0
         WARN failed reflector=ours expects=v1 Pod what=objects error=later open_for=0ns events=0 failures=1
        DEBUG stopped reflector=ours expects=v1 Pod
    "#]].assert_eq(&logs.take());
}

#[tokio::test(start_paused = true)]
async fn a_list_longer_than_ten_seconds_logs_its_phases() {
    for (pause, is_logged) in [(5, false), (6, true)] {
        let logs = Logs::capture();
        let slow = |text: String| Answer::Body(text, Then::EndsAfter(Duration::from_secs(pause)));
        let script = Script::new([
            slow(list(5, "t1", &[pod("a", 1)])),
            slow(list(5, "", &[pod("b", 2)])),
        ]);
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script).name("ours").into_indexer(writer);
        reflector.run(sleep(MINUTE / 2)).await;
        let logs = logs.take();
        let line = logs.lines().find(|line| line.contains("took long"));
        assert_eq!(line.is_some(), is_logged, "{logs}");
        if let Some(line) = line {
            expect![[r#" INFO a list took long reflector="ours" expects="v1 Pod" total=12s pages=2 objects=2 requesting=0ns reading=12s delivering=0ns delivered=true"#]].assert_eq(line);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_splits_the_time_of_a_long_list_and_includes_its_retries() {
    let logs = Logs::capture();
    let after = |seconds, answer| Answer::After(Duration::from_secs(seconds), Box::new(answer));
    let slowly =
        |text: String, seconds| Answer::Body(text, Then::EndsAfter(Duration::from_secs(seconds)));
    let expired = Answer::RefuseWith(410, r#"{"code":410,"reason":"Expired"}"#);
    let script = Script::new([
        after(2, slowly(list(5, "t1", &[pod("a", 1)]), 3)),
        after(4, expired),
        after(1, slowly(list(6, "", &[pod("a", 1), pod("b", 2)]), 5)),
    ]);
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script).name("ours").into_indexer(writer);
    reflector.run(sleep(MINUTE / 2)).await;
    let logs = logs.take();
    let line = logs.lines().find(|line| line.contains("took long"));
    let times = line.unwrap().split_once("total=").unwrap().1;
    let expected = "15s pages=3 objects=2 requesting=7s reading=8s delivering=0ns delivered=true";
    assert_eq!(times, expected);
}

#[tokio::test(start_paused = true)]
async fn the_log_has_ten_of_many_skipped_objects_and_their_number() {
    let logs = Logs::capture();
    let foreign: Vec<_> = (0..25)
        .map(|n| kind("v1", "Node", &format!("n{n}"), 1))
        .collect();
    let few = kind("v1", "Node", "few", 9);
    let script = Script::new([
        body(list(5, "", &foreign)),
        hangs(event("ADDED", &few).repeat(12) + &error_event("{}")),
        body(list(6, "", &foreign[..10])),
    ]);
    let errors = Trace::default();
    let heard = errors.clone();
    let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
    let reflector = Reflector::builder(script)
        .on_error(move |error| heard.note(error.to_string()))
        .into_indexer(writer);
    reflector.run(sleep(MINUTE / 2)).await;
    let logs = logs.take();
    let skipped = logs.matches("skipped reflector").count();
    assert_eq!(skipped, 10 + 10 + 10, "{logs}");
    let more: Vec<_> = logs
        .lines()
        .filter(|line| line.contains("had more"))
        .collect();
    assert!(
        matches!(more[..], [line] if line.ends_with("skipped=25")),
        "{more:?}"
    );
    assert_eq!(
        errors.len(),
        25 + 12 + 1 + 10,
        "the error handler receives every error"
    );
}

#[tokio::test(start_paused = true)]
async fn the_log_has_ten_lines_a_minute_for_watches_with_only_skipped_objects() {
    let foreign = event("ADDED", &kind("v1", "Node", "n", 6));
    let seconds = Duration::from_secs;
    let lasts = |time, text| Answer::Body(text, Then::EndsAfter(seconds(time)));
    let later = |time, text| Answer::After(seconds(time), Box::new(hangs(text)));
    let many = || foreign.repeat(25);
    // A watch ends after the minute, or the next one sends an event then.
    for (watches, written, left_out) in [
        (vec![lasts(30, many()), lasts(40, many())], 10, 40),
        (vec![lasts(30, many()), later(40, foreign.clone())], 11, 15),
    ] {
        let logs = Logs::capture();
        let listed = [body(list(5, "", &[]))];
        let script = Script::new(listed.into_iter().chain(watches));
        let (_, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script).name("ours").into_indexer(writer);
        reflector.run(sleep(2 * MINUTE)).await;
        let logs = logs.take();
        assert_eq!(logs.matches("skipped reflector").count(), written, "{logs}");
        let more: Vec<_> = logs
            .lines()
            .filter(|line| line.contains("within a minute"))
            .collect();
        let expected = format!(
            " WARN more were skipped within a minute reflector=ours expects=v1 Pod skipped={left_out}"
        );
        assert_eq!(more, [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_list_that_the_store_rejects_logs_its_number_of_objects() {
    let logs = Logs::capture();
    let answer = list(5, "", &[pod("a", 1), pod("b", 2)]);
    let script = Script::new([Answer::Body(answer, Then::EndsAfter(MINUTE / 4))]);
    let store = Picky {
        refuse: vec!["ReplacedAll"],
        trace: Trace::default(),
    };
    let reflector = Reflector::builder(script).name("ours").into_store(store);
    reflector.run(sleep(MINUTE / 3)).await;
    let logs = logs.take();
    let line = logs.lines().find(|line| line.contains("took long"));
    expect![[r#" INFO a list took long reflector="ours" expects="v1 Pod" total=15s pages=1 objects=2 requesting=0ns reading=15s delivering=0ns delivered=false"#]].assert_eq(line.unwrap());
}
