//! Tests paginated lists.
//!
//! All pages of a list show the objects at the same revision. If the `continue` token has expired, the server
//! rejects the request for the next page.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::ask::{Reply, get, labelled, pod, pods};

const PODS: &str = "/api/v1/pods";

fn next(page: &Reply, limit: u32) -> String {
    format!(
        "{PODS}?limit={limit}&continue={}",
        page.continue_token().expect("more pages follow")
    )
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_while_objects_change() {
    let server = pods(&["a", "b", "c", "d", "e"]);
    let first = get(&server, &format!("{PODS}?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.json["metadata"]["remainingItemCount"], 3);

    server.delete("v1", "pods", "default/c").unwrap();
    server.create(pod("cc")).unwrap();
    server
        .patch("v1", "pods", "default/d", json!({"spec": {"x": 1}}))
        .unwrap();

    let second = get(&server, &next(&first, 2)).await;
    assert_eq!(second.names(), ["c", "d"]);
    assert_eq!(second.json["items"][1]["metadata"]["resourceVersion"], "4");
    let last = get(&server, &next(&second, 2)).await;
    assert_eq!(last.names(), ["e"]);
    assert_eq!(
        [first.revision(), second.revision(), last.revision()],
        ["5", "5", "5"]
    );
    assert_eq!(
        last.json["metadata"],
        json!({"resourceVersion": "5"}),
        "no object remains"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_has_kubernetes_format_relative_to_the_listed_path() {
    let server = pods(&["a", "b"]);
    let decoded = |page: &Reply| -> Value {
        let json = BASE64_URL_SAFE_NO_PAD
            .decode(page.continue_token().unwrap())
            .unwrap();
        serde_json::from_slice(&json).unwrap()
    };
    let everywhere = get(&server, &format!("{PODS}?limit=1")).await;
    assert_eq!(
        decoded(&everywhere),
        json!({"v": "meta.k8s.io/v1", "rv": 2, "start": "default/a\0"})
    );
    let within = get(&server, "/api/v1/namespaces/default/pods?limit=1").await;
    assert_eq!(
        decoded(&within),
        json!({"v": "meta.k8s.io/v1", "rv": 2, "start": "a\0"})
    );
    let token = within.continue_token().unwrap();
    let rest = get(
        &server,
        &format!("/api/v1/namespaces/default/pods?continue={token}"),
    )
    .await;
    assert_eq!(rest.names(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_with_a_token_and_a_revision_is_rejected() {
    let server = pods(&["a", "b"]);
    let first = get(&server, &format!("{PODS}?limit=1")).await;
    let with = |revision: &str| format!("{}&resourceVersion={revision}", next(&first, 1));
    let refused = get(&server, &with("2")).await;
    assert_eq!(
        refused.refusal(),
        "400 BadRequest: specifying resource version is not allowed when using continue"
    );
    assert_eq!(get(&server, &with("0")).await.names(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_replaced_by_one_that_shows_the_current_state() {
    let server = pods(&["a", "b", "c"]);
    let first = get(&server, &format!("{PODS}?limit=1")).await;
    server.create(pod("bb")).unwrap();
    server.create(pod("d")).unwrap();
    server.faults().expire_history();

    let expired = get(&server, &next(&first, 1)).await;
    assert_eq!(
        (expired.code, expired.json["reason"].as_str()),
        (410, Some("Expired"))
    );
    assert!(expired.message().starts_with(
        "The provided continue parameter is too old to display a consistent list result."
    ));

    let second = get(&server, &next(&expired, 2)).await;
    assert_eq!(second.names(), ["b", "bb"]);
    assert_eq!(second.revision(), "5");
    server.delete("v1", "pods", "default/c").unwrap();
    let third = get(&server, &next(&second, 2)).await;
    assert_eq!(
        third.names(),
        ["c", "d"],
        "the next token keeps the new revision"
    );
    assert_eq!((third.revision(), third.continue_token()), ("5", None));
}

#[tokio::test(start_paused = true)]
async fn pages_with_a_selector_are_full_and_have_no_remaining_count() {
    let names = ["a", "b", "c", "d", "e"];
    let app = |name: &str| if name == "b" { "db" } else { "web" };
    let server = crate::ask::builder()
        .seed(names.map(|name| labelled(name, "app", app(name))))
        .build();
    let first = get(&server, &format!("{PODS}?limit=2&labelSelector=app%3Dweb")).await;
    assert_eq!(first.names(), ["a", "c"]);
    assert!(first.json["metadata"].get("remainingItemCount").is_none());
    let second = get(
        &server,
        &format!("{}&labelSelector=app%3Dweb", next(&first, 2)),
    )
    .await;
    assert_eq!(second.names(), ["d", "e"]);
    assert_eq!(second.continue_token(), None);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_ends_with_the_last_object_has_no_token() {
    let server = pods(&["a", "b"]);
    let page = get(&server, &format!("{PODS}?limit=2")).await;
    assert_eq!((page.names().len(), page.continue_token()), (2, None));
}

#[tokio::test(start_paused = true)]
async fn the_remaining_count_is_that_of_the_listed_state_after_the_store_went_back() {
    let server = pods(&["a", "b", "c", "d", "e"]);
    server.create(pod("f")).unwrap();
    let first = get(&server, &format!("{PODS}?limit=2")).await;
    assert_eq!(first.json["metadata"]["remainingItemCount"], 4);

    server.faults().restart_at(5).unwrap();
    server.create(pod("aa")).unwrap();
    let second = get(&server, &next(&first, 1)).await;
    assert_eq!((second.revision(), second.names()), ("6", vec!["c"]));
    assert_eq!(second.json["metadata"]["remainingItemCount"], 2);
}

#[tokio::test(start_paused = true)]
async fn one_name_in_all_namespaces_has_pages_and_one_object_has_not() {
    let server = pods(&["m/a", "n/a", "n/b"]);
    let named = "fieldSelector=metadata.name%3Da&limit=1";
    let first = get(&server, &format!("{PODS}?{named}")).await;
    assert_eq!(first.names(), ["a"]);
    let uri = format!("{}&fieldSelector=metadata.name%3Da", next(&first, 1));
    let second = get(&server, &uri).await;
    assert_eq!(second.json["items"][0]["metadata"]["namespace"], "n");
    let one = get(&server, &format!("/api/v1/namespaces/n/pods?{named}")).await;
    assert_eq!((one.names(), one.continue_token()), (vec!["a"], None));
}
