//! Tests of an informer whose server is restored from a backup. After the restore, the server reuses
//! revisions that the informer has already received.
//!
//! The informer must detect the restore, list again, store the new list, and deliver the differences as
//! events. Several tests run once per type of delta queue: `InOrder`, `DeltaFifo` and a custom queue.

mod notices;
mod queues;

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Event, EventHandler, InitialList, MutationCache, Object, SharedInformer,
    indexer::{self, Indexers},
    queue::DeltaFifo,
    reflector::Reflector,
    shared_informer::{Builder, ListenerBuffer, RevisionError},
    transport::Class,
};
use kube_informer_apiserver::Server;
use tokio::time::sleep;

use self::{
    notices::{Verdict, notices},
    queues::{QUEUES, over_each_queue},
};
use crate::{
    script::{Answer, Script, Then, body, error_event, event, list},
    setting::{LONG, Trace, builder, labelled, pod, run},
};

const MINUTE: Duration = Duration::from_secs(60);

const EXPIRED: &str = r#"{"kind":"Status","code":410,"reason":"Expired","message":"too old"}"#;

fn item(name: &str, revision: u64, colour: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"default","resourceVersion":"{revision}","labels":{{"app":"{colour}"}}}}}}"#
    )
}

fn bookmark(revision: u64, annotations: &str) -> String {
    let meta = format!(r#"{{"resourceVersion":"{revision}","annotations":{annotations}}}"#);
    event("BOOKMARK", &format!(r#"{{"metadata":{meta}}}"#))
}

/// Returns the body of a streaming list with these items.
fn streamed(revision: u64, items: &[String]) -> String {
    let items: String = items.iter().map(|item| event("ADDED", item)).collect();
    items + &bookmark(revision, r#"{"k8s.io/initial-events-end":"true"}"#)
}

/// Returns the server's answers to an initial list and to the next watch.
///
/// `all` contains the list's revision and items. `watch` contains the watch's events, and `then` is what
/// follows them.
fn listed(way: InitialList, all: (u64, &[String]), watch: &str, then: Then) -> Vec<Answer> {
    let (revision, items) = all;
    match way {
        InitialList::Streaming => vec![Answer::Body(streamed(revision, items) + watch, then)],
        _ => vec![
            body(list(revision, "", items)),
            Answer::Body(watch.to_owned(), then),
        ],
    }
}

fn app(pod: &Object<Pod>) -> String {
    pod.labels().get("app").unwrap_or("-").to_owned()
}

/// A handler that records the color in the label `app` of each object, before and after an update.
#[derive(Clone, Default)]
struct Colours(Trace);

impl EventHandler<Pod> for Colours {
    async fn handle(&mut self, event: Event<Pod>) {
        match event {
            Event::Added { object, .. } => {
                let name = object.name();
                self.0.note(format!("{name} {}", app(&object)));
            }
            Event::Updated { old, new, .. } => {
                let name = new.name();
                self.0.note(format!("{name} {} → {}", app(&old), app(&new)));
            }
            Event::Deleted(deleted) => self.0.note(format!("{} gone", deleted.object_name())),
            Event::Synced => {}
        }
    }
}

impl Colours {
    fn sorted(&self) -> Vec<String> {
        let mut told: Vec<_> = self.0.take().lines().map(str::to_owned).collect();
        told.sort();
        told
    }
}

#[tokio::test(start_paused = true)]
async fn the_list_of_a_restored_server_is_applied_for_every_notice_and_every_queue() {
    let red = [item("a", 1, "red"), item("b", 2, "red")];
    let green = [item("a", 1, "green"), item("b", 2, "red")];
    let grown = [&green[..], &[item("c", 10, "red")]].concat();
    let tail = event("ADDED", &grown[2]) + &error_event(EXPIRED);
    for way in [InitialList::Streaming, InitialList::List] {
        for at in 0..notices(way).len() {
            for &revision in notices(way)[at].revisions {
                let script = || {
                    let notice = notices(way).remove(at);
                    let (watch, then) = notice.watch;
                    let mut answers = listed(way, (5, &red), &watch, then);
                    answers.extend((notice.answers)());
                    answers.extend(listed(way, (revision, &green), &tail, Then::Ends));
                    answers.extend(listed(way, (10, &grown), "", Then::Hangs));
                    Script::streaming(answers)
                };
                let informer = || {
                    SharedInformer::builder(script())
                        .rng_seed(1)
                        .initial_list(way)
                        .consistency_check(MINUTE)
                };
                for (queue, building) in over_each_queue(informer) {
                    let what = format!("{} → {revision}, {way:?}, {queue}", notices(way)[at].what);
                    check_applied(building, &what).await;
                }
            }
        }
    }
}

async fn check_applied(building: Builder<Pod>, what: &str) {
    let informer = run(building);
    let [heard, merged] = [Colours::default(), Colours::default()];
    informer.pods.handler(heard.clone()).register().unwrap();
    let coalescing = informer.pods.handler(merged.clone());
    coalescing
        .buffer(ListenerBuffer::Coalesce)
        .register()
        .unwrap();
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    informer.pods.handlers_idle().await;
    sleep(3 * MINUTE).await;
    let cached = informer.pods.indexer();
    let colours = cached.list().iter().map(app).collect::<Vec<_>>();
    assert_eq!(colours, ["green", "red", "red"], "{what}");
    let expected = ["a red", "a red → green", "b red", "b red → red", "c red"];
    assert_eq!(heard.sorted(), expected, "{what}");
    // A coalescing handler may receive both changes as one event, but not less.
    let merged = merged.sorted();
    let last_of_a = merged.iter().rfind(|line| line.starts_with("a "));
    assert!(last_of_a.unwrap().ends_with("green"), "{what}: {merged:?}");
    informer.stop().await;
}

/// The restored server's list has a higher revision than the awaited one, but lacks the awaited change.
#[tokio::test(start_paused = true)]
async fn a_wait_for_a_revision_that_a_restored_server_has_passed_fails_with_went_back() {
    for way in [InitialList::Streaming, InitialList::List] {
        for at in 0..notices(way).len() {
            if !notices(way)[at].revisions.contains(&9) {
                continue;
            }
            for (all, is_empty) in [(vec![item("a", 1, "green")], false), (Vec::new(), true)] {
                let script = || {
                    let notice = notices(way).remove(at);
                    let (watch, then) = notice.watch;
                    let red = [item("a", 1, "red"), item("b", 2, "red")];
                    let mut answers = listed(way, (5, &red), &watch, then);
                    answers.extend((notice.answers)());
                    answers.push(Answer::Refuse(Class::TooManyRequests));
                    answers.extend(listed(way, (9, &all), "", Then::Hangs));
                    if is_empty && way == InitialList::Streaming {
                        // An empty streaming list is confirmed by a list.
                        answers.push(body(list(9, "", &all)));
                    }
                    Script::streaming(answers)
                };
                let informer = || {
                    SharedInformer::builder(script())
                        .rng_seed(1)
                        .initial_list(way)
                        .consistency_check(MINUTE)
                };
                for (queue, building) in over_each_queue(informer) {
                    let notice = &notices(way)[at];
                    let what = format!("{}, {way:?}, {queue}, empty: {is_empty}", notice.what);
                    let informer = run(building);
                    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
                    let outcome = informer.pods.wait_for_revision(8, LONG).await;
                    let went_back = RevisionError::WentBack {
                        wanted: 8.into(),
                        reached: 9.into(),
                    };
                    // A difference, or a server that lags behind, does not prove a restore.
                    let expected = match notice.verdict {
                        Verdict::WentBack => Err(went_back),
                        Verdict::Suspected => Ok(()),
                    };
                    assert_eq!(outcome, expected, "{what}");
                    informer.stop().await;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_restored_source_does_not_affect_another_source() {
    for by_key in [false, true] {
        let older = bookmark(3, "null");
        let [red, green] = ["red", "green"].map(|colour| [item("a", 1, colour)]);
        let way = InitialList::Streaming;
        let mut answers = listed(way, (5, &red), &older, Then::Hangs);
        answers.push(body(list(3, "", &[])));
        answers.extend(listed(way, (9, &green), "", Then::Hangs));
        let one = Script::streaming(answers);
        let expired = error_event(EXPIRED);
        let [blue, other] = ["blue", "other"].map(|colour| [item("b", 1, colour)]);
        let mut answers = listed(way, (5, &blue), "", Then::EndsAfter(MINUTE));
        answers.push(body(list(5, "", &[])));
        answers.push(body(expired));
        answers.extend(listed(way, (9, &other), "", Then::Hangs));
        let two = Script::streaming(answers);
        let mut building = SharedInformer::builder(one)
            .source(two)
            .rng_seed(1)
            .initial_list(InitialList::Streaming);
        if by_key {
            building = building.queue(DeltaFifo::new());
        }
        let informer = run(building);
        let heard = Colours::default();
        informer.pods.handler(heard.clone()).register().unwrap();
        sleep(3 * MINUTE).await;
        // For the other source the same revision is the same state, so its changed content is ignored.
        assert_eq!(heard.sorted(), ["a red", "a red → green", "b blue"]);
        let cached = informer.pods.indexer();
        let colours = cached.list().iter().map(app).collect::<Vec<_>>();
        assert_eq!(colours, ["green", "blue"]);
        informer.stop().await;
    }
}

/// A consistency check finds a difference during a list.
///
/// This list can't correct a wrong cached object, because objects with unchanged revisions are taken from the
/// cache. The informer therefore discards this list, and lists once more.
#[tokio::test(start_paused = true)]
async fn a_list_in_progress_when_a_difference_is_found_replaces_the_relist_for_it() {
    let second = Duration::from_secs(1);
    for way in [InitialList::Streaming, InitialList::List] {
        let [red, green] = ["red", "green"].map(|colour| [item("a", 1, colour)]);
        let late = |pause, answer| Answer::After(pause, Box::new(answer));
        let mut answers = listed(way, (5, &red), "", Then::EndsAfter(MINUTE + second));
        let more = [item("a", 1, "green"), item("b", 3, "red")];
        // The check starts at a random time between a half and a whole period.
        answers.push(late(40 * second, body(list(5, "", &more))));
        answers.push(body(list(5, "", &[])));
        answers.push(body(error_event(EXPIRED)));
        let told = listed(way, (9, &green), "", Then::Hangs).remove(0);
        answers.push(late(50 * second, told));
        answers.extend(listed(way, (9, &green), "", Then::Hangs));
        let script = Script::streaming(answers);
        let informer = run(SharedInformer::builder(script.clone())
            .rng_seed(1)
            .initial_list(way)
            .consistency_check(MINUTE));
        let heard = Colours::default();
        informer.pods.handler(heard.clone()).register().unwrap();
        sleep(5 * MINUTE).await;
        assert_eq!(
            heard.sorted(),
            ["a red", "a red → green"],
            "{}",
            script.log.take()
        );
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_difference_found_during_a_list_keeps_waits_and_pending_writes() {
    let second = Duration::from_secs(1);
    for way in [InitialList::Streaming, InitialList::List] {
        let all = [item("a", 1, "red")];
        let late = |pause, answer| Answer::After(pause, Box::new(answer));
        let mut answers = listed(way, (5, &all), "", Then::EndsAfter(MINUTE + second));
        // The check begins within its period of a minute, and ends while the list is in progress.
        answers.push(late(40 * second, body(list(5, "", &[]))));
        answers.push(body(list(5, "", &[])));
        answers.push(body(error_event(EXPIRED)));
        let first = listed(way, (9, &all), "", Then::Hangs).remove(0);
        answers.push(late(50 * second, first));
        answers.extend(listed(way, (9, &all), "", Then::Hangs));
        let script = Script::streaming(answers);
        let errors = Trace::default();
        let noted = errors.clone();
        let informer = run(SharedInformer::builder(script.clone())
            .rng_seed(1)
            .initial_list(way)
            .on_error(move |error| noted.note(error.to_string()))
            .consistency_check(MINUTE));
        informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
        let overlay = MutationCache::builder(&informer.pods).ttl(LONG).build();
        let written: Pod = serde_json::from_str(&item("mine", 20, "blue")).unwrap();
        let written = overlay.put(written).unwrap();
        let waits = informer.pods.wait_for_revision(8, LONG);
        sleep(5 * MINUTE).await;
        let log = script.log.take();
        assert_eq!(waits.await, Ok(()), "{way:?}: {log}");
        assert!(overlay.find(&written).is_some(), "{way:?}: {log}");
        let errors = errors.take();
        assert!(!errors.contains("gone back"), "{way:?}: {errors}");
        assert_eq!(script.unasked(), 0, "{way:?}: {log}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_standalone_reflector_stores_the_list_of_the_restored_server() {
    for way in [InitialList::Streaming, InitialList::List] {
        for notice in notices(way) {
            // Without an informer there is no consistency check.
            if notice.what.starts_with("a difference") || notice.what.starts_with("a comparison") {
                continue;
            }
            let (watch, then) = notice.watch;
            let red = [item("a", 1, "red"), item("b", 2, "red")];
            let mut answers = listed(way, (5, &red), &watch, then);
            answers.extend((notice.answers)());
            let revision = notice.revisions[0];
            let green = [item("a", 1, "green")];
            if notice.what == "an older list" {
                // The revision at the end of the list reveals the restore, after known objects were
                // skipped; so the list is repeated.
                answers.push(body(list(revision, "", &green)));
            }
            answers.extend(listed(way, (revision, &green), "", Then::Hangs));
            let (indexer, writer) = indexer::new(Indexers::<Pod>::new()).unwrap();
            let reflector = Reflector::builder(Script::streaming(answers))
                .rng_seed(1)
                .initial_list(way)
                .into_indexer(writer);
            reflector.run(sleep(MINUTE)).await;
            let colours = indexer.list().iter().map(app).collect::<Vec<_>>();
            assert_eq!(colours, ["green"], "{}, {way:?}", notice.what);
        }
    }
}

/// After the restore, the server reuses the known revision 2 for a different change of pod `a`.
#[tokio::test(start_paused = true)]
async fn an_object_changed_after_a_restore_is_delivered_at_an_already_seen_revision() {
    for way in [InitialList::Streaming, InitialList::List] {
        for at in 0..QUEUES {
            let server = Server::builder().seed([pod("a")]).build();
            server.update(labelled("a", "lost")).unwrap();
            server.create(pod("b")).unwrap();
            let all = over_each_queue(|| builder(&server).initial_list(way));
            let (queue, building) = all.into_iter().nth(at).unwrap();
            let informer = run(building);
            let heard = Colours::default();
            informer.pods.handler(heard.clone()).register().unwrap();
            informer.caught_up(&server).await;
            sleep(MINUTE).await;
            heard.0.take();
            server.faults().break_watches();
            sleep(Duration::from_millis(100)).await;
            server.faults().restart_at(1).unwrap();
            server.update(labelled("a", "new")).unwrap();
            assert_eq!(server.revision(), 2, "the probe reveals the restore");
            sleep(MINUTE).await;
            let told = ["a lost → new", "default/b gone"];
            assert_eq!(heard.sorted(), told, "{queue}, {way:?}");
            let cached = informer.pods.indexer();
            let colours = cached.list().iter().map(app).collect::<Vec<_>>();
            assert_eq!(colours, ["new"], "{queue}, {way:?}");
            informer.stop().await;
        }
    }
}
