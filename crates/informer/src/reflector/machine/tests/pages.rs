//! Tests the revision and the page size that requests for lists contain.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_first_list_that_fails_is_repeated_at_zero() {
    check(
        listing(),
        "list-failed 500\nslept\nlist-failed refused\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        list-failed 500: sleep from 0.8 s
        slept: list resourceVersion=0 limit=500
        list-failed refused: sleep from 1.6 s
        slept: list resourceVersion=0 limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn paging_at_zero_is_kept_for_relists() {
    check(
        listing(),
        "page 10 t1\npage 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10 t1: next limit=500 continue=t1
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error 500: sleep from 0.8 s
        slept: list resourceVersion=10 limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn paging_of_a_list_at_unset_is_not_kept() {
    check(
        listing(),
        "list-failed expired\npage 10 t1\npage 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        list-failed expired: list limit=500
        page 10 t1: next limit=500 continue=t1
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error 500: sleep from 0.8 s
        slept: list resourceVersion=10
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn configured_pages_are_requested_of_the_newest_state() {
    let pages = RequestOptions {
        initial_list: Some(InitialList::Pages),
        ..RequestOptions::default()
    };
    check(
        pages,
        "page 10 t1\nlist-failed expired\npage 11\nreplaced\nerror 500\nslept\npage 12\nreplaced\nerror expired",
        &expect![[r#"
        list limit=500
        page 10 t1: next limit=500 continue=t1
        list-failed expired: list
        page 11: replace at 11
        replaced: watch resourceVersion=11
        error 500: sleep from 0.8 s
        slept: list limit=500
        page 12: replace at 12
        replaced: watch resourceVersion=12
        error expired: list limit=500
    "#]],
    );
    let own_size = RequestOptions {
        page_size: Some(4),
        ..pages
    };
    check(
        own_size,
        "page 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list limit=4
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error 500: sleep from 0.8 s
        slept: list limit=4
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_configured_page_size_is_used_with_any_revision() {
    let config = RequestOptions {
        page_size: Some(4),
        ..listing()
    };
    check(
        config,
        "page 10 t1\npage 10\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=4
        page 10 t1: next limit=4 continue=t1
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error 500: sleep from 0.8 s
        slept: list resourceVersion=10 limit=4
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn pages_after_an_expired_watch_are_not_requested_at_the_expired_revision() {
    let config = RequestOptions {
        page_size: Some(4),
        ..listing()
    };
    check(
        config,
        "page 16\nreplaced\nerror expired\npage 37 t1\npage 37\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=4
        page 16: replace at 16
        replaced: watch resourceVersion=16
        error expired: list limit=4
        page 37 t1: next limit=4 continue=t1
        page 37: replace at 37
        replaced: watch resourceVersion=37
        error 500: sleep from 0.8 s
        slept: list resourceVersion=37 limit=4
    "#]],
    );
    // Several pages at revision zero show a server without a watch cache. Its later lists are requested in
    // pages too.
    check(
        listing(),
        "page 10 t1\npage 10\nreplaced\nerror expired",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10 t1: next limit=500 continue=t1
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error expired: list limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn pages_after_an_undecodable_event_are_not_requested_at_the_revision_before_it() {
    let config = RequestOptions {
        page_size: Some(4),
        ..listing()
    };
    // A watch from a list at that revision would receive the same event again.
    for class in ["garbage", "store"] {
        let script = format!(
            "page 16\nreplaced\nerror {class}\nslept\nlist-failed 500\nslept\npage 37\nreplaced"
        );
        let trace = play_all(config, &script);
        let lists = trace
            .lines()
            .filter_map(|line| line.strip_prefix("slept: "));
        assert_eq!(lists.collect::<Vec<_>>(), ["list limit=4"; 2], "{class}");
        assert!(trace.ends_with("replaced: watch resourceVersion=37\n"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_size_of_zero_equals_none() {
    let config = RequestOptions {
        page_size: Some(0),
        ..listing()
    };
    let first = Machine::new(config, fastrand::Rng::with_seed(7)).start(Instant::now());
    assert_eq!(show(&first), "list resourceVersion=0 limit=500");
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_is_followed_by_one_full_list_at_the_original_revision() {
    let config = RequestOptions {
        page_size: Some(4),
        ..listing()
    };
    let script =
        "page 10\nreplaced\nerror 500\nslept\npage 20 t1\nlist-failed expired\npage 21\nreplaced";
    check(
        config,
        script,
        &expect![[r#"
        list resourceVersion=0 limit=4
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error 500: sleep from 0.8 s
        slept: list resourceVersion=10 limit=4
        page 20 t1: next limit=4 continue=t1
        list-failed expired: list resourceVersion=10
        page 21: replace at 21
        replaced: watch resourceVersion=21
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn an_endless_chain_of_pages_fails_and_backs_off() {
    check(
        listing(),
        "page 10 t1\npage 10 t1\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10 t1: next limit=500 continue=t1
        page 10 t1: sleep from 0.8 s
        slept: list resourceVersion=0 limit=500
    "#]],
    );
}

#[tokio::test(start_paused = true)]
async fn a_list_at_unset_is_retried_at_once_a_single_time() {
    after_start(
        "error expired\nlist-failed too-large\nlist-failed too-large\nslept\nlist-failed expired\nlist-failed 500\nslept\npage 9\nreplaced\nerror 500\nslept",
        &expect![[r#"
        list resourceVersion=0 limit=500
        page 10: replace at 10
        replaced: watch resourceVersion=10
        error expired: list resourceVersion=10
        list-failed too-large: list limit=500
        list-failed too-large: sleep from 0.8 s
        slept: list limit=500
        list-failed expired: list limit=500
        list-failed 500: sleep from 1.6 s
        slept: list limit=500
        page 9: replace at 9
        replaced: watch resourceVersion=9
        error 500: sleep from 3.2 s
        slept: list resourceVersion=9
    "#]],
    );
}
