//! Tests the state that readers of a [`Layer`] see while the cache does not yet contain the local writes and
//! deletions. Each test runs a script with `check`, which documents the commands.

mod lapsed;

use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::Pod;
use kube_core::ObjectMeta;

use super::*;
use crate::{
    indexer::{self, IndexerWriter, Indexers},
    object::{Deleted, ResourceVersion, SourceId},
    queue::Batch,
    reflector::{Delta, DeltaKind},
};

/// A layer for at most two local writes and two deletions, and the writer of its cache.
struct Bench {
    layer: Layer<Pod>,
    writer: IndexerWriter<Pod>,
}

/// Creates a pod from the words `NAME UID REVISION`, for example `a u1 5`.
fn pod(words: &[&str]) -> Pod {
    let [name, uid, revision] = words else {
        panic!("not a pod: {words:?}");
    };
    Pod {
        metadata: ObjectMeta {
            name: Some((*name).to_owned()),
            uid: Some((*uid).to_owned()),
            resource_version: Some((*revision).to_owned()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}

fn object(words: &[&str]) -> Object<Pod> {
    Object::new(pod(words)).unwrap()
}

impl Bench {
    fn new(absent: Absent, sources: u32) -> Self {
        let (_, writer) = indexer::new(Indexers::new()).unwrap();
        let ttl = Duration::from_secs(60);
        Self {
            layer: Layer::new(Limits {
                capacity: 2,
                ttl,
                absent,
                sources,
            }),
            writer,
        }
    }

    /// Applies a change from the reflector number `source` to the cache. `revision` is the reflector's new
    /// revision.
    fn apply(&mut self, source: u32, revision: &str, kind: DeltaKind<Pod>) {
        self.apply_at(source, revision.into(), kind);
    }

    fn apply_at(&mut self, source: u32, revision: ResourceVersion, kind: DeltaKind<Pod>) {
        let source = SourceId::new(source);
        self.writer.apply(Batch {
            deltas: vec![Delta::new(source, kind)],
            in_initial_list: false,
            completes: None,
            reached: vec![(source, revision)],
        });
    }

    async fn step(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        let cache = self.writer.snapshot();
        match words.as_slice() {
            ["put", rest @ ..] => self.layer.put(object(rest), &cache),
            ["delete", name, uid] => {
                let name = ObjectName::cluster(name);
                self.layer.delete(name, Arc::from(*uid), &cache);
            }
            ["wait", seconds] => {
                tokio::time::sleep(Duration::from_secs(seconds.parse().unwrap())).await;
            }
            ["at", revision, "has", rest @ ..] => {
                self.apply(0, revision, DeltaKind::Updated(object(rest)));
            }
            ["at", revision, "lost", rest @ ..] => {
                let gone = Deleted::Known(object(rest));
                self.apply(0, revision, DeltaKind::Deleted(gone));
            }
            ["at", revision] => self.bookmark(0, revision),
            ["second", "at", revision] => self.bookmark(1, revision),
            ["back", "at", revision] => {
                let before = self.writer.snapshot().revision().epoch();
                let put_back = before.after_rollback(before);
                let revision = ResourceVersion::from(*revision).in_epoch(put_back);
                self.apply_at(0, revision.clone(), DeltaKind::Bookmark { revision });
            }
            ["look"] => {}
            _ => panic!("not a step: {line:?}"),
        }
    }

    fn bookmark(&mut self, source: u32, revision: &str) {
        let bookmarked = ResourceVersion::from(revision);
        self.apply(
            source,
            revision,
            DeltaKind::Bookmark {
                revision: bookmarked,
            },
        );
    }

    fn read(&mut self) -> String {
        let cache = self.writer.snapshot();
        let names = ["a", "b", "c"].map(ObjectName::cluster);
        let all = self.layer.views(&cache);
        let reads = names.iter().filter_map(|name| {
            let view = self.layer.view(name, &cache);
            assert_eq!(
                format!("{:?}", all.get(name).unwrap_or(&View::Cache)),
                format!("{view:?}"),
                "single reads and a read of all return the same"
            );
            Some(match view {
                View::Cache => format!("{:?}", cache.get(name)?),
                View::Written(object) => format!("{object:?} written"),
                View::Gone => format!("{name} gone"),
            })
        });
        reads.collect::<Vec<_>>().join(", ")
    }
}

/// Runs a script, and compares the states that the layer returns after each line with `expected`.
///
/// `absent` is whether the layer shows a local write of an object that the cache does not contain. `sources`
/// is the number of reflectors that fill the cache.
///
/// A line contains one or more commands, separated by `; `:
///
/// ```text
/// put a u1 5          adds a local write of the object a with uid u1 at revision 5
/// delete a u1         adds a local deletion of the object a with uid u1
/// at 7 has a u1 6     stores the object (revision 6) in the cache; the first reflector reaches revision 7
/// at 7 lost a u1 6    removes the object (revision 6) from the cache; the first reflector reaches revision 7
/// at 6                applies a bookmark of the first reflector at revision 6
/// second at 6         applies a bookmark of the second reflector at revision 6
/// back at 3           applies a bookmark at revision 3 after the server was restored from a backup
/// wait 10             advances the clock by 10 seconds
/// look                does nothing
/// ```
async fn check(absent: Absent, sources: u32, script: &str, expected: Expect) {
    let mut bench = Bench::new(absent, sources);
    let mut trace = String::new();
    for line in script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        for step in line.split("; ") {
            bench.step(step).await;
        }
        trace += format!("{line}: {}", bench.read()).trim_end();
        trace += "\n";
    }
    expected.assert_eq(&trace);
}

async fn check_one(script: &str, expected: Expect) {
    check(Absent::Shown, 1, script, expected).await;
}

#[tokio::test(start_paused = true)]
async fn the_newer_of_cached_and_written_state_is_returned() {
    check_one(
        "at 5 has a u1 5
         put a u1 7
         put a u1 6
         at 6 has a u1 6
         at 7 has a u1 7
         put a u1 6
         put b u2 9
         at 8
         at 9 has b u2 9",
        expect![[r#"
            at 5 has a u1 5: a@5
            put a u1 7: a@7 written
            put a u1 6: a@7 written
            at 6 has a u1 6: a@7 written
            at 7 has a u1 7: a@7
            put a u1 6: a@7
            put b u2 9: a@7, b@9 written
            at 8: a@7, b@9 written
            at 9 has b u2 9: a@7, b@9
        "#]],
    )
    .await;
}

/// Behavior ★65 of `docs/client-go.md`: when the cache applies the deletion of an object, the layer drops the
/// local write of this object. It also drops a write of another object with the same name, if the write is
/// older than the deletion.
#[tokio::test(start_paused = true)]
async fn a_cached_deletion_ends_writes_of_its_uid_and_older_ones_but_no_later_one() {
    check_one(
        "at 5 has a u1 5
         put a u1 9
         at 6 lost a u1 5
         at 10 has b u2 10
         put b u2 11
         at 13 lost b u3 13
         at 14 has a u3 14
         put a u4 20
         at 18 lost a u3 18
         at 20 has a u4 20",
        expect![[r#"
            at 5 has a u1 5: a@5
            put a u1 9: a@9 written
            at 6 lost a u1 5:
            at 10 has b u2 10: b@10
            put b u2 11: b@11 written
            at 13 lost b u3 13:
            at 14 has a u3 14: a@14
            put a u4 20: a@20 written
            at 18 lost a u3 18: a@20 written
            at 20 has a u4 20: a@20
        "#]],
    )
    .await;
}

/// Behavior ★66 of `docs/client-go.md`: a write is ignored if the cache has already received a later deletion
/// of the object.
#[tokio::test(start_paused = true)]
async fn a_late_write_of_a_deleted_or_recreated_object_is_ignored() {
    check_one(
        "at 5 has a u1 5
         at 8 lost a u1 8
         put a u1 6
         at 9 has a u2 9
         put a u1 7
         at 9 has b u3 5
         delete b u3
         put b u3 10
         put b u4 12",
        expect![[r#"
            at 5 has a u1 5: a@5
            at 8 lost a u1 8:
            put a u1 6:
            at 9 has a u2 9: a@9
            put a u1 7: a@9
            at 9 has b u3 5: a@9, b@5
            delete b u3: a@9, b gone
            put b u3 10: a@9, b gone
            put b u4 12: a@9, b@12 written
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deletion_hides_only_its_uid_also_before_the_cache_contains_the_object() {
    check_one(
        "at 5 has a u1 5
         delete a u1
         at 6 has a u1 6
         at 7 lost a u1 7
         at 8 has a u2 8
         delete b u3
         at 9 has b u3 9
         at 10 lost b u3 10
         put a u2 12
         delete a u1
         delete a u2
         at 13 lost a u2 13",
        expect![[r#"
            at 5 has a u1 5: a@5
            delete a u1: a gone
            at 6 has a u1 6: a gone
            at 7 lost a u1 7:
            at 8 has a u2 8: a@8
            delete b u3: a@8
            at 9 has b u3 9: a@8, b gone
            at 10 lost b u3 10: a@8
            put a u2 12: a@12 written
            delete a u1: a@12 written
            delete a u2: a gone
            at 13 lost a u2 13:
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn two_objects_of_one_name_can_be_deleted_before_the_cache_shows_the_first_deletion() {
    check_one(
        "at 5 has a u1 5
         delete a u1
         put a u2 8
         delete a u2
         at 6 lost a u1 6
         at 8 has a u2 8
         at 9 lost a u2 9",
        expect![[r#"
            at 5 has a u1 5: a@5
            delete a u1: a gone
            put a u2 8: a@8 written
            delete a u2: a gone
            at 6 lost a u1 6:
            at 8 has a u2 8: a gone
            at 9 lost a u2 9:
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn with_absent_hidden_a_created_object_is_hidden_until_the_cache_contains_it() {
    check(
        Absent::Hidden,
        1,
        "at 5 has a u1 5
         put a u1 7
         put b u2 8
         at 8 has b u2 8",
        expect![[r#"
            at 5 has a u1 5: a@5
            put a u1 7: a@7 written
            put b u2 8: a@7 written
            at 8 has b u2 8: a@5, b@8
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_absent_object_is_missing_once_all_sources_reached_its_revision() {
    check(
        Absent::Shown,
        2,
        "at 9
         put a u1 7
         second at 6
         second at 7
         put a u1 7",
        expect![[r#"
            at 9:
            put a u1 7: a@7 written
            second at 6: a@7 written
            second at 7:
            put a u1 7:
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn writes_and_deletions_expire() {
    check_one(
        "at 5 has a u1 5
         put b u2 9
         wait 30
         delete a u1
         wait 29
         wait 1
         wait 29
         wait 1",
        expect![[r#"
            at 5 has a u1 5: a@5
            put b u2 9: a@5, b@9 written
            wait 30: a@5, b@9 written
            delete a u1: a gone, b@9 written
            wait 29: a gone, b@9 written
            wait 1: a gone
            wait 29: a gone
            wait 1: a@5
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn above_the_capacity_the_oldest_write_and_the_oldest_deletion_are_evicted() {
    check_one(
        "at 3 has a u1 3
         at 3 has b u2 3
         at 3 has c u3 3
         put a u1 9
         put b u2 8
         put a u1 10
         put c u3 7
         at 10
         delete a u1
         delete b u2
         delete c u3",
        expect![[r#"
            at 3 has a u1 3: a@3
            at 3 has b u2 3: a@3, b@3
            at 3 has c u3 3: a@3, b@3, c@3
            put a u1 9: a@9 written, b@3, c@3
            put b u2 8: a@9 written, b@8 written, c@3
            put a u1 10: a@10 written, b@8 written, c@3
            put c u3 7: a@10 written, b@3, c@7 written
            at 10: a@3, b@3, c@3
            delete a u1: a gone, b@3, c@3
            delete b u2: a gone, b gone, c@3
            delete c u3: a@3, b gone, c gone
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn writes_that_the_cache_contains_are_evicted_first() {
    check_one(
        "put a u1 4; put b u2 9; at 4 has a u1 4; put c u3 10",
        expect![[r#"
            put a u1 4; put b u2 9; at 4 has a u1 4; put c u3 10: a@4, b@9 written, c@10 written
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_rollback_of_the_server_ends_all_writes_and_deletions() {
    check_one(
        "at 5 has a u1 5
         put b u2 9
         delete a u1
         at 6
         at 5
         back at 5
         put b u2 6",
        expect![[r#"
            at 5 has a u1 5: a@5
            put b u2 9: a@5, b@9 written
            delete a u1: a gone, b@9 written
            at 6: a gone, b@9 written
            at 5: a gone, b@9 written
            back at 5: a@5
            put b u2 6: a@5, b@6 written
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_ends_its_write_before_the_cache_reaches_the_revision() {
    check_one(
        "at 5 has a u1 5
         put a u1 7
         at 5 lost a u1 9
         at 9",
        expect![[r#"
            at 5 has a u1 5: a@5
            put a u1 7: a@7 written
            at 5 lost a u1 9:
            at 9:
        "#]],
    )
    .await;
}
