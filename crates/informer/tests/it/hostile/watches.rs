//! Tests of endless watches, of full caches, and of watch events that the informer cannot apply to its cache.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    indexer::{self, Indexers},
    limits::{Limits, WATCH_GRACE},
    reflector::Reflector,
};
use tokio::time::{Instant, sleep};

use super::{
    NOTHING, broken_pod, builder, drop_of_text, goes, modified_pod, new_pod, white_space, whole,
};
use crate::{
    script::{Answer, Script, body, event, hangs, list, pod},
    setting::{LONG, run},
};

#[tokio::test(start_paused = true)]
async fn a_watch_fails_when_its_new_objects_exceed_the_object_limit() {
    let limits = Limits {
        objects: 100,
        ..Limits::default()
    };
    for endless in [new_pod, modified_pod, broken_pod] {
        let begin = body(list(5, "", &[]));
        let script = Script::new([begin, goes("", NOTHING, endless), whole()]);
        let informer = run(builder(&script, limits).queue_capacity(1));
        let mut status = informer.pods.status();
        let failed = status.wait_for(|status| status.last_error().is_some());
        let error = failed.await.unwrap().last_error().unwrap().to_string();
        assert_eq!(
            error,
            "the cache has more than 100 objects; to allow more, raise Limits::objects"
        );
        let snapshot = informer.pods.indexer().snapshot();
        let held = snapshot.len() + snapshot.broken_count();
        assert!((101..110).contains(&held), "{held}");
        sleep(Duration::from_secs(60)).await;
        assert_eq!(
            informer.pods.indexer().len(),
            1,
            "the relist has one object"
        );
        informer.stop().await;

        let begin = body(list(5, "", &[]));
        let script = Script::new([begin, goes("", NOTHING, endless)]);
        let (indexer, writer) = indexer::new(Indexers::<Pod>::by_namespace()).unwrap();
        let reflector = Reflector::builder(script).limits(limits);
        let reflector = reflector.into_indexer(writer);
        reflector.run(sleep(Duration::from_secs(60))).await;
        let snapshot = indexer.snapshot();
        let held = snapshot.len() + snapshot.broken_count();
        assert_eq!(held, 101, "a standalone reflector");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cache_at_its_limit_receives_updates_and_deletions() {
    let limits = Limits {
        objects: 2,
        ..Limits::default()
    };
    let events = [
        event("MODIFIED", &pod("a", 6)),
        event("DELETED", &pod("b", 7)),
        event("ADDED", &pod("c", 8)),
    ];
    let script = Script::new([
        body(list(5, "", &[pod("a", 1), pod("b", 2)])),
        hangs(events.concat()),
    ]);
    let informer = run(builder(&script, limits));
    informer.pods.wait_for_revision(8, LONG).await.unwrap();
    let held = format!("{:?}", informer.pods.indexer().list());
    assert_eq!(held, "[default/a@6, default/c@8]");
    assert!(informer.pods.status().get().last_error().is_none());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cache_over_its_limit_receives_changes_of_the_objects_it_has() {
    let limits = Limits {
        objects: 1,
        ..Limits::default()
    };
    let second = Duration::from_secs(1);
    let change: fn(u64) -> String = |n| match n {
        1 => event("ADDED", &pod("b", 6)),
        2 => event("MODIFIED", &pod("a", 7)),
        3 => event(
            "MODIFIED",
            r#"{"metadata":{"name":"b","namespace":"default","resourceVersion":"8"},"spec":0}"#,
        ),
        4 => event("MODIFIED", &pod("b", 9)),
        5 => event("DELETED", &pod("a", 10)),
        6 => event("ADDED", &pod("c", 11)),
        _ => event("ADDED", &pod("d", 12)),
    };
    let changes = goes("", second, change);
    let script = Script::new([body(list(5, "", &[pod("a", 1)])), changes]);
    let informer = run(builder(&script, limits));
    let held = || format!("{:?}", informer.pods.indexer().list());
    sleep(second * 13 / 2).await;
    assert_eq!(held(), "[default/b@9, default/c@11]");
    assert!(informer.pods.status().get().last_error().is_none());
    sleep(second).await;
    assert_eq!(held(), "[default/b@9, default/c@11]");
    assert!(informer.pods.status().get().last_error().is_some());
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_object_limit_applies_to_each_source_separately() {
    let limits = Limits {
        objects: 2,
        ..Limits::default()
    };
    let script = |names: &[&str], change: fn(u64) -> String| {
        let pods: Vec<_> = names.iter().map(|name| pod(name, 1)).collect();
        let changes = goes("", Duration::from_secs(1), change);
        Script::new([body(list(5, "", &pods)), changes])
    };
    let greedy = script(&["a"], |n| event("ADDED", &pod(&format!("b{n}"), 5 + n)));
    let quiet = script(&["c", "d"], |n| event("MODIFIED", &pod("c", 5 + n)));
    let two = builder(&greedy, limits).source(quiet);
    let informer = run(two);
    informer.pods.wait_for_sync().await.unwrap();
    sleep(Duration::from_millis(4500)).await;
    let held = format!("{:?}", informer.pods.indexer().list());
    let expected = "[default/a@1, default/b1@6, default/b2@7, default/c@9, default/d@1]";
    assert_eq!(
        held, expected,
        "the third object of a source exceeds its limit, even if the other source has room"
    );
    let status = informer.pods.status().get();
    let failed = status
        .sources
        .iter()
        .map(|source| source.last_error.is_some());
    assert_eq!(failed.collect::<Vec<_>>(), [true, false]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn bytes_that_form_no_event_do_not_extend_the_watch_timeout() {
    for (begin, endless) in [
        ("", white_space as fn(u64) -> String),
        (r#"{"type":"ADDED","object":{"a":""#, drop_of_text),
    ] {
        let began = Instant::now();
        let second = Duration::from_secs(1);
        let script = Script::new([body(list(5, "", &[])), goes(begin, second, endless)]);
        let informer = run(builder(&script, Limits::default()));
        let mut status = informer.pods.status();
        let failed = status.wait_for(|status| status.last_error().is_some());
        let error = failed.await.unwrap().last_error().unwrap().to_string();
        assert!(
            error.starts_with("the watch is open beyond its requested time-out"),
            "{error}"
        );
        let longest = Duration::from_secs(600) + WATCH_GRACE + second;
        assert!(began.elapsed() <= longest, "{:?}", began.elapsed());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_always_ready_do_not_delay_the_watch_timeout_or_a_stop() {
    let script = Script::new([body(list(5, "", &[])), Answer::Flood("\n")]);
    let informer = run(builder(&script, Limits::default()));
    informer.pods.wait_for_sync().await.unwrap();
    let status = informer.pods.status();
    // No task is ever idle, so time does not advance by itself.
    let mut seconds = 0;
    while status.get().last_error().is_none() && seconds < 700 {
        tokio::time::advance(Duration::from_secs(10)).await;
        seconds += 10;
    }
    let error = status.get().last_error().unwrap().to_string();
    assert!(
        error.starts_with("the watch is open beyond its requested time-out"),
        "{error}"
    );
    informer.stop().await;

    let script = Script::new([body(list(5, "", &[])), Answer::Flood("\n")]);
    let informer = run(builder(&script, Limits::default()));
    while script.unasked() > 0 {
        tokio::task::yield_now().await;
    }
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_without_a_name_is_followed_by_a_relist_and_one_with_an_invalid_name_is_not() {
    let nameless = r#"{"metadata":{"resourceVersion":"6"}}"#.to_owned();
    for (changed, held) in [
        (nameless, "[default/a@8]"),
        (pod("b\\nc", 6), "[default/a@1]"),
    ] {
        let script = Script::new([
            body(list(5, "", &[pod("a", 1)])),
            hangs(event("MODIFIED", &changed)),
            body(list(9, "", &[pod("a", 8)])),
        ]);
        let informer = run(builder(&script, Limits::default()));
        informer.pods.wait_for_sync().await.unwrap();
        sleep(Duration::from_secs(10)).await;
        assert_eq!(format!("{:?}", informer.pods.indexer().list()), held);
        informer.stop().await;
    }
    let nameless = r#"{"metadata":{"resourceVersion":"6"}}"#;
    let end = r#"{"metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
    let streamed = [
        event("ADDED", &pod("a", 1)),
        event("MODIFIED", nameless),
        event("BOOKMARK", end),
    ];
    let listed = body(list(9, "", &[pod("a", 8)]));
    let informer = run(builder(
        &Script::streaming([hangs(streamed.concat()), listed]),
        Limits::default(),
    ));
    informer.pods.wait_for_sync().await.unwrap();
    assert_eq!(
        format!("{:?}", informer.pods.indexer().list()),
        "[default/a@8]"
    );
    informer.stop().await;
}
