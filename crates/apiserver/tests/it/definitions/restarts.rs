//! Tests of definitions in a data directory, and of revisions that are restored.

use serde_json::json;

#[cfg(feature = "persistence")]
use super::held;
use super::{CRDS, WIDGETS, definition, widget};
use crate::ask::{builder, delete, get, with};

#[tokio::test(start_paused = true)]
async fn a_restored_revision_has_the_kinds_of_that_revision() {
    let server = builder().build();
    let before = server.revision();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    with(&server, "POST", WIDGETS, &widget("a")).await;
    server.faults().restart_at(before).unwrap();
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(get(&server, WIDGETS).await.json["items"], json!([]));

    with(&server, "POST", WIDGETS, &widget("b")).await;
    let defined = server.revision();
    delete(&server, &format!("{CRDS}/widgets.example.com")).await;
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    server.faults().restart_at(defined).unwrap();
    assert_eq!(get(&server, &format!("{WIDGETS}/b")).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_restored_definition_without_a_status_is_established() {
    let server = builder().build();
    let before = server.revision();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(server.revision(), before + 3);
    server.faults().restart_at(before + 1).unwrap();
    assert_eq!(get(&server, WIDGETS).await.code, 200);
}

#[cfg(feature = "persistence")]
#[tokio::test(start_paused = true)]
async fn a_restarted_server_serves_the_defined_kinds_until_they_are_deleted() {
    let directory = crate::persistence::scratch("definitions");
    let server = builder().open(&directory).unwrap();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    with(&server, "POST", CRDS, &definition("gadgets", "Gadget")).await;
    with(&server, "POST", WIDGETS, &held("a")).await;
    delete(&server, &format!("{CRDS}/widgets.example.com")).await;
    let a = get(&server, &format!("{WIDGETS}/a")).await.text;
    drop(server);

    let server = builder().open(&directory).unwrap();
    assert_eq!(
        get(&server, &format!("{WIDGETS}/a")).await.text,
        a,
        "byte for byte"
    );
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    assert_eq!(get(&server, gadgets).await.code, 200);
    let release = json!({"metadata": {"finalizers": null}});
    with(&server, "PATCH", &format!("{WIDGETS}/a"), &release).await;
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    drop(server);

    let server = builder().open(&directory).unwrap();
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    assert_eq!(get(&server, gadgets).await.code, 200);
}

#[cfg(feature = "persistence")]
#[tokio::test(start_paused = true)]
async fn objects_of_a_kind_that_is_not_served_survive_a_restart() {
    let directory = crate::persistence::scratch("unserved");
    let server = builder().open(&directory).unwrap();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    with(&server, "POST", WIDGETS, &widget("a")).await;
    let a = get(&server, &format!("{WIDGETS}/a")).await.text;
    let mut hidden = get(&server, &format!("{CRDS}/widgets.example.com"))
        .await
        .json;
    hidden["spec"]["versions"][0]["served"] = json!(false);
    server.update(hidden.clone()).unwrap();
    drop(server);

    let server = builder().open(&directory).unwrap();
    assert_eq!(get(&server, WIDGETS).await.code, 404);
    let mut shown = get(&server, &format!("{CRDS}/widgets.example.com"))
        .await
        .json;
    shown["spec"]["versions"][0]["served"] = json!(true);
    server.update(shown).unwrap();
    assert_eq!(get(&server, &format!("{WIDGETS}/a")).await.text, a);
}

#[cfg(feature = "persistence")]
#[tokio::test(start_paused = true)]
async fn an_object_that_races_with_the_deletion_of_its_definition_is_not_left_behind() {
    let directory = crate::persistence::scratch("race");
    let server = builder().open(&directory).unwrap();
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    let name = format!("{CRDS}/widgets.example.com");
    let a = widget("a");
    let post = with(&server, "POST", WIDGETS, &a);
    let (deleted, made) = tokio::join!(delete(&server, &name), post);
    assert_eq!(deleted.code, 200);
    assert!(matches!(made.code, 201 | 403 | 404), "{}", made.code);
    with(&server, "POST", CRDS, &definition("widgets", "Widget")).await;
    assert_eq!(get(&server, WIDGETS).await.json["items"], json!([]));
}
