//! Tests of the requests for the pages of a list.

use proptest::prelude::*;

use super::*;
use crate::transport::ResourceVersionMatch;

fn end(revision: u64, token: Option<&str>) -> ListEnd {
    ListEnd {
        resource_version: revision.to_string(),
        continue_token: token.map(str::to_owned),
        ..ListEnd::default()
    }
}

fn first() -> ListOptions {
    ListOptions {
        resource_version: 10.into(),
        resource_version_match: Some(ResourceVersionMatch::Exact),
        limit: Some(2),
        ..ListOptions::default()
    }
}

#[test]
fn revision_is_sent_with_the_first_page_only_and_is_that_of_the_first_page() {
    let mut pager = Pager::new(first());
    assert_eq!(pager.page(&end(20, Some("t1"))), AfterPage::More);
    let second = pager.request();
    assert_eq!(
        (&second.resource_version, second.limit),
        (&ResourceVersion::UNSET, Some(2))
    );
    assert_eq!(
        second.resource_version_match, None,
        "the match is sent with the revision"
    );
    assert_eq!(second.continue_token.as_deref(), Some("t1"));
    assert_eq!(pager.page(&end(20, Some("t2"))), AfterPage::More);
    assert_eq!(pager.page(&end(21, None)), AfterPage::Done(20.into()));
    assert!(pager.is_paginated());
    assert_eq!(pager.pages(), 3);
}

#[test]
fn an_expired_page_falls_back_once_to_a_full_list() {
    let mut pager = Pager::new(first());
    assert!(
        !pager.restarts_after(Class::Expired),
        "the first page has no fallback"
    );
    pager.page(&end(20, Some("t1")));
    assert!(!pager.restarts_after(Class::Server));
    assert_eq!(pager.pages(), 1);
    assert!(pager.restarts_after(Class::Expired));
    assert_eq!(pager.pages(), 0, "earlier pages are discarded");
    let full = pager.request();
    assert_eq!(
        (full.limit, full.resource_version.to_string()),
        (None, "10".to_owned())
    );
    // A server that pages the full list too gets no second fallback.
    pager.page(&end(20, Some("t1")));
    assert!(!pager.restarts_after(Class::Expired));
}

#[test]
fn a_repeated_token_ends_the_list() {
    let mut pager = Pager::new(first());
    assert_eq!(pager.page(&end(20, Some("t1"))), AfterPage::More);
    assert_eq!(pager.page(&end(20, Some("t2"))), AfterPage::More);
    assert_eq!(pager.page(&end(20, Some("t1"))), AfterPage::Endless);
}

#[test]
fn an_empty_token_is_no_token() {
    let mut pager = Pager::new(first());
    assert_eq!(pager.page(&end(20, Some(""))), AfterPage::Done(20.into()));
    assert!(!pager.is_paginated());
}

/// Behavior of a simulated server, which returns a list in pages only if the request sets `limit`.
#[derive(Clone, Debug)]
struct Answers {
    objects: u32,
    /// Numbers of objects per page. After the last number, the first one is used again.
    sizes: Vec<u32>,
    /// Numbers of the requests, from 0, that are answered with HTTP 410.
    expired: Vec<usize>,
}

fn answers() -> impl Strategy<Value = Answers> {
    let sizes = prop::collection::vec(1..4_u32, 1..4);
    let expired = prop::collection::vec(0..12_usize, 0..3);
    (0..12_u32, sizes, expired).prop_map(|(objects, sizes, expired)| Answers {
        objects,
        sizes,
        expired,
    })
}

proptest! {
    #[test]
    fn a_list_is_complete_at_one_revision_or_fails(answers in answers()) {
        let mut pager = Pager::new(first());
        // The revision and the number of each received object, and the revision of the list.
        let (mut got, mut moment) = (Vec::new(), 0_u64);
        for number in 0.. {
            let request = pager.request().clone();
            let from = request.continue_token.as_deref().map(|token| token.parse::<u32>().unwrap());
            if from.is_none() {
                prop_assert_eq!(&request.resource_version, &first().resource_version);
                moment += 1;
            } else {
                prop_assert!(request.resource_version.is_unset());
            }
            if answers.expired.contains(&number) {
                let had_restarted = pager.fell_back;
                if pager.restarts_after(Class::Expired) {
                    prop_assert_eq!(pager.request().limit, None);
                    got.clear();
                    continue;
                }
                prop_assert!(from.is_none() || had_restarted, "a later page restarts the list once");
                return Ok(());
            }
            let size = match request.limit {
                Some(_) => answers.sizes[number % answers.sizes.len()],
                None => answers.objects,
            };
            let from = from.unwrap_or_default();
            let to = (from + size).min(answers.objects);
            got.extend((from..to).map(|object| (moment, object)));
            let token = (to < answers.objects).then(|| to.to_string());
            match pager.page(&end(moment, token.as_deref())) {
                AfterPage::More => {}
                AfterPage::Done(revision) => {
                    prop_assert_eq!(revision, moment.into());
                    break;
                }
                AfterPage::Endless => prop_assert!(false, "no token came twice"),
            }
        }
        let whole: Vec<_> = (0..answers.objects).map(|object| (moment, object)).collect();
        prop_assert_eq!(got, whole);
    }
}
