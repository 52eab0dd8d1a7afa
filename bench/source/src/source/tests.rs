//! Tests [`Source`] directly, without a server: the rate of changes, and the limit on unread changes.

use tokio_test::{assert_pending, assert_ready, task};

use super::*;
use crate::kind::CorpusKind;

fn source(objects: usize) -> Arc<Source> {
    let corpus = Corpus::new(CorpusKind::Secrets, objects, 1).unwrap();
    Source::new(corpus, || 1_780_000_000_000_000_000)
}

#[tokio::test]
async fn changes_wait_for_the_slowest_reader() {
    let source = source(10);
    let mut slow = source.follow(source.now());
    let mut emit = task::spawn(source.emit(LEAD_MAX + 5, 0));
    assert_pending!(emit.poll());
    assert_eq!(source.now().changes, LEAD_MAX);
    let mut changes = Vec::new();
    slow.reader.take(3, &mut changes);
    assert!(emit.is_woken());
    assert_pending!(emit.poll());
    assert_eq!(source.now().changes, LEAD_MAX + 3);
    drop(slow);
    let emitted = assert_ready!(emit.poll());
    assert_eq!(
        (emitted.changes, source.now().changes),
        (LEAD_MAX + 5, LEAD_MAX + 5)
    );
}

#[tokio::test(start_paused = true)]
async fn a_rate_spreads_changes_over_time() {
    let source = source(10);
    let emitted = source.emit(501, 100).await;
    assert_eq!(emitted.took, Duration::from_secs(5));
    assert_eq!(source.stats().changes, 501);
}

#[tokio::test]
async fn a_follower_receives_every_change_once_and_in_order() {
    let source = source(10);
    let mut follower = source.follow(source.now());
    let first = source.now().revision + 1;
    source.emit(20, 0).await;
    let (mut heard, mut changes) = (Vec::new(), Vec::new());
    while heard.len() < 20 {
        follower.wait().await;
        follower.reader.take(7, &mut changes);
        heard.extend(changes.iter().map(|(_, version)| version.revision));
    }
    assert_eq!(heard, (first..first + 20).collect::<Vec<_>>());
    assert_pending!(task::spawn(follower.wait()).poll());
}

#[tokio::test]
async fn a_cut_wakes_and_ends_existing_followers() {
    let source = source(10);
    let mut old = source.follow(source.now());
    {
        let mut wait = task::spawn(old.wait());
        assert_pending!(wait.poll());
        source.cut();
        assert!(wait.is_woken());
        assert_ready!(wait.poll());
    }
    assert!(old.is_cut());
    assert!(!source.follow(source.now()).is_cut());
}

#[tokio::test]
async fn a_reader_sees_objects_as_of_its_moment_while_they_change() {
    let source = source(10);
    let reader = source.read(source.now());
    let (mut before, mut after) = (Vec::new(), Vec::new());
    reader.versions(0..10, &mut before);
    source.emit(25, 0).await;
    reader.versions(0..10, &mut after);
    assert_eq!(before, after);
    assert!(before.iter().all(|version| version.stamp == 0));
}
