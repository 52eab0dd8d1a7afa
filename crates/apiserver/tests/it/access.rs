//! Tests authentication with tokens and authorization with rules, without a socket.

use expect_test::expect;
use http_body_util::Full;
use kube_informer_apiserver::{Match, Rule, Server, User};
use serde_json::{Value, json};

use crate::ask::{Reply, Watch, builder, get, pod, request, send, with};

/// Returns a server that lets `admin` send every request, and `reader` only read pods in `default`.
fn guarded() -> Server {
    builder()
        .seed([pod("a")])
        .token("admin", User::new("root").in_group("system:masters"))
        .token("reader", User::new("jane"))
        .rules([Rule::allow(["get", "list", "watch"], ["pods"])
            .in_namespaces(["default"])
            .for_user("jane")])
        .build()
}

async fn get_bearing(server: &Server, uri: &str, token: &str) -> Reply {
    let request = request("GET", uri).header("authorization", format!("Bearer {token}"));
    send(server, request.body(Full::default()).unwrap()).await
}

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn a_server_without_tokens_and_rules_allows_every_request() {
    let server = builder().seed([pod("a")]).build();
    assert_eq!(get_bearing(&server, PODS, "whatever").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_known_token_receives_401() {
    let server = guarded();
    for uri in [PODS, "/apis", "/healthz", "/nowhere"] {
        let reply = get(&server, uri).await;
        let expected = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401,
        });
        assert_eq!((reply.code, reply.json), (401, expected), "{uri}");
    }
    let wrong = get_bearing(&server, PODS, "reade").await;
    assert_eq!(wrong.refusal(), "401 Unauthorized: Unauthorized");
    assert_eq!(get_bearing(&server, PODS, "reader").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_no_rule_allows_receives_403() {
    let server = guarded().with_token("reader");
    assert_eq!(get(&server, PODS).await.names(), ["a"]);
    let reply = get(&server, "/api/v1/pods").await;
    assert_eq!(reply.code, 403);
    expect![[r#"
        {
          "apiVersion": "v1",
          "code": 403,
          "details": {
            "kind": "pods"
          },
          "kind": "Status",
          "message": "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
          "metadata": {},
          "reason": "Forbidden",
          "status": "Failure"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&reply.json).unwrap());
    let reply = with(&server, "POST", PODS, &pod("b")).await;
    assert_eq!(reply.code, 403);
    assert_eq!(server.revision(), 1, "nothing was stored");
    let reply = get(&server, "/apis/apps/v1/namespaces/default/deployments/d").await;
    let details = json!({"name": "d", "group": "apps", "kind": "deployments"});
    assert_eq!(reply.json["details"], details);
    assert_eq!(
        get(&server, "/apis").await.code,
        200,
        "discovery is allowed for every user"
    );
    let master = server.with_token("admin");
    assert_eq!(with(&master, "POST", PODS, &pod("b")).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn rules_without_tokens_apply_to_anonymous_requests() {
    let server = builder().rules([Rule::allow(["get"], ["pods"])]).build();
    expect![[r#"403 Forbidden: pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&get(&server, PODS).await.refusal());
    let unauthenticated = Rule::allow(["list"], ["pods"]).for_group("system:unauthenticated");
    server.access().replace_rules([unauthenticated]);
    assert_eq!(get(&server, PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_unserved_path_receives_403_without_permission_and_404_with_it() {
    let server = guarded();
    let uri = "/apis/foo.io/v1/foos";
    assert_eq!(get_bearing(&server, uri, "reader").await.code, 403);
    assert_eq!(get_bearing(&server, uri, "admin").await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_rejected_and_open_watches_continue() {
    let server = guarded();
    let reader = server.with_token("reader");
    let mut watch = Watch::open(&reader, &format!("{PODS}?watch=1&resourceVersion=1")).await;
    assert!(server.access().revoke_token("reader"));
    assert!(
        !server.access().revoke_token("reader"),
        "it is already revoked"
    );
    assert_eq!(get(&reader, PODS).await.code, 401);
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\n");
    assert!(server.access().revoke_token("admin"));
    assert_eq!(
        get(&server, PODS).await.code,
        401,
        "a token is required although none is left"
    );
    server.access().grant_token("renewed", User::new("jane"));
    assert_eq!(get(&server.with_token("renewed"), PODS).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn rules_change_while_the_server_runs() {
    let server = guarded();
    let reader = server.with_token("reader");
    let mut watch = Watch::open(&reader, &format!("{PODS}?watch=1&resourceVersion=1")).await;
    server.access().replace_rules([]);
    assert_eq!(get(&reader, PODS).await.code, 403);
    server.create(pod("b")).unwrap();
    assert_eq!(watch.trace().await, "ADDED b 2\n");
    server.access().drop_rules();
    assert_eq!(get(&reader, "/api/v1/pods").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_logged_and_uses_up_no_fault() {
    let server = guarded();
    server.faults().answer(Match::list("pods"), 429);
    assert_eq!(get(&server, PODS).await.code, 401);
    assert_eq!(get_bearing(&server, PODS, "reader").await.code, 429);
    let log = server.requests();
    let statuses: Vec<Option<u16>> = log.iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(401), Some(429)]);
}

#[tokio::test(start_paused = true)]
async fn debug_output_contains_no_token() {
    let server = guarded().with_token("reader");
    get(&server, PODS).await;
    let log: Vec<String> = server
        .requests()
        .iter()
        .map(|request| format!("{request:?}"))
        .collect();
    let shown = format!("{server:?} {:?} {log:?}", server.access());
    assert!(!shown.contains("reader"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_request_overrides_that_of_the_handle() {
    let server = guarded().with_token("admin");
    assert_eq!(
        get_bearing(&server, "/api/v1/pods", "reader").await.code,
        403
    );
    assert_eq!(get(&server, "/api/v1/pods").await.code, 200);
}

// === Reviews ===

async fn review(server: &Server, group: &str, plural: &str, spec: Value) -> Reply {
    let body = json!({"spec": spec});
    with(server, "POST", &format!("/apis/{group}/v1/{plural}"), &body).await
}

async fn may(server: &Server, attributes: Value) -> Value {
    let spec = json!({"resourceAttributes": attributes});
    let group = "authorization.k8s.io";
    let reply = review(server, group, "selfsubjectaccessreviews", spec).await;
    assert_eq!(reply.code, 201);
    reply.json["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_access_review_reports_whether_a_request_is_allowed() {
    let server = guarded();
    let jane = server.with_token("reader");
    let list = json!({"verb": "list", "resource": "pods", "namespace": "default"});
    assert_eq!(may(&jane, list.clone()).await, json!({"allowed": true}));
    let everywhere = json!({"verb": "list", "resource": "pods"});
    assert_eq!(
        may(&jane, everywhere.clone()).await,
        json!({"allowed": false})
    );
    assert_eq!(
        may(&server.with_token("admin"), everywhere).await,
        json!({"allowed": true})
    );
    server.access().revoke_token("reader");
    let spec = json!({"user": "jane", "resourceAttributes": list});
    let admin = server.with_token("admin");
    let reply = review(&admin, "authorization.k8s.io", "subjectaccessreviews", spec).await;
    assert_eq!(reply.json["status"], json!({"allowed": true}));
    let reply = review(
        &admin,
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        json!({}),
    )
    .await;
    assert_eq!(reply.code, 422);
    server.access().drop_rules();
    let anything = json!({"verb": "*", "resource": "*", "group": "*"});
    assert_eq!(may(&admin, anything).await["allowed"], true);
}

#[tokio::test(start_paused = true)]
async fn a_rules_review_lists_the_rules_of_the_caller() {
    let jane = guarded().with_token("reader");
    let rules = async |namespace: &str| {
        let spec = json!({"namespace": namespace});
        review(
            &jane,
            "authorization.k8s.io",
            "selfsubjectrulesreviews",
            spec,
        )
        .await
    };
    let reply = rules("default").await;
    let listed = reply.json["status"]["resourceRules"].as_array().unwrap();
    let expected =
        json!({"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]});
    assert_eq!(listed.len(), 3, "two for the user itself, and {expected}");
    assert_eq!(listed[2], expected);
    let elsewhere = rules("x").await;
    assert_eq!(
        elsewhere.json["status"]["resourceRules"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(
        rules("").await.refusal(),
        "400 BadRequest: no namespace on request"
    );
}

#[tokio::test(start_paused = true)]
async fn user_reviews_report_the_user_of_a_token() {
    let server = guarded();
    let group = "authentication.k8s.io";
    let jane = json!({"username": "jane", "groups": ["system:authenticated"]});
    let reader = server.with_token("reader");
    let reply = review(&reader, group, "selfsubjectreviews", json!({})).await;
    assert_eq!(reply.json["status"], json!({"userInfo": jane}));
    let admin = server.with_token("admin");
    let reply = review(&admin, group, "tokenreviews", json!({"token": "reader"})).await;
    let audiences = ["https://kubernetes.default.svc"];
    assert_eq!(
        reply.json["status"],
        json!({"authenticated": true, "user": jane, "audiences": audiences})
    );
    let reply = review(&admin, group, "tokenreviews", json!({"token": "x"})).await;
    assert_eq!(
        reply.json["status"],
        json!({"user": {}, "error": "invalid bearer token"})
    );
}
