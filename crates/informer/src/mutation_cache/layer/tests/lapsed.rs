//! Tests which local writes and deletions of a mutation cache lapse. A write or deletion lapses when the
//! mutation cache drops it although the informer's cache has not applied this change.

use super::*;

/// Runs a script, and checks which writes and deletions lapse. The module documentation defines a lapse.
///
/// `expected` contains each line of the script, followed by the names of the objects whose write or deletion
/// lapses at this line. The function `check` documents the commands of a script.
async fn check_lapses(absent: Absent, script: &str, expected: Expect) {
    let mut bench = Bench::new(absent, 1);
    let mut trace = String::new();
    for line in script.lines().map(str::trim) {
        for step in line.split("; ") {
            bench.step(step).await;
        }
        bench.read();
        let lapsed = bench.layer.take_lapsed();
        let lapsed: Vec<_> = lapsed.iter().map(ToString::to_string).collect();
        trace += format!("{line}: {}", lapsed.join(", ")).trim_end();
        trace += "\n";
    }
    expected.assert_eq(&trace);
}

#[tokio::test(start_paused = true)]
async fn a_write_lapses_if_the_cache_passes_its_revision_without_the_object() {
    check_lapses(
        Absent::Shown,
        "at 5 has a u1 5
         put b u2 7
         at 6
         at 7
         at 7 has a u1 7; put c u3 7
         look",
        expect![[r#"
            at 5 has a u1 5:
            put b u2 7:
            at 6:
            at 7: b
            at 7 has a u1 7; put c u3 7: c
            look:
        "#]],
    )
    .await;
    check_lapses(
        Absent::Hidden,
        "at 5 has a u1 5
         put b u2 7
         at 7",
        expect![[r#"
            at 5 has a u1 5:
            put b u2 7:
            at 7: b
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_does_not_lapse_if_handlers_receive_an_event_for_its_end() {
    check_lapses(
        Absent::Shown,
        "at 5 has a u1 5
         put a u1 6; at 6 has a u1 6
         put a u1 8; at 9 has a u1 9; wait 60
         put a u1 12; at 11 lost a u1 11; at 12
         put a u2 13; at 14 has a u3 14
         put b u4 15; put b u4 16; at 16 has b u4 16
         put c u5 17; delete c u5; at 18
         put b u4 4",
        expect![[r#"
            at 5 has a u1 5:
            put a u1 6; at 6 has a u1 6:
            put a u1 8; at 9 has a u1 9; wait 60:
            put a u1 12; at 11 lost a u1 11; at 12:
            put a u2 13; at 14 has a u3 14:
            put b u4 15; put b u4 16; at 16 has b u4 16:
            put c u5 17; delete c u5; at 18:
            put b u4 4:
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn writes_and_deletions_lapse_by_time_by_capacity_and_on_rollback() {
    check_lapses(
        Absent::Shown,
        "at 3 has a u1 3; at 3 has b u2 3; at 3 has c u3 3
         put a u1 9; wait 59
         wait 1
         delete a u1; wait 60
         delete a u1; at 4 lost a u1 4; wait 60
         put a u5 9; put b u2 9; put c u3 9
         delete b u2; delete c u3; delete x u9
         back at 2
         put a u1 8; delete c u3; back at 1",
        expect![[r#"
            at 3 has a u1 3; at 3 has b u2 3; at 3 has c u3 3:
            put a u1 9; wait 59:
            wait 1: a
            delete a u1; wait 60: a
            delete a u1; at 4 lost a u1 4; wait 60:
            put a u5 9; put b u2 9; put c u3 9: a
            delete b u2; delete c u3; delete x u9: b
            back at 2: c
            put a u1 8; delete c u3; back at 1: c, a
        "#]],
    )
    .await;
}
