//! Tests of the headers `Impersonate-*`.

use expect_test::expect;
use http_body_util::Full;
use kube_informer_apiserver::{Authorization, Server, User};
use serde_json::{Value, json};

use crate::ask::{Reply, builder, request, send};

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns a server with RBAC, on which `root` may do everything, and `jane` what `rules` allow.
fn server(rules: &Value) -> Server {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "jane"},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "jane"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "jane"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}],
    });
    builder()
        .authorization(Authorization::Rbac)
        .token("admin", User::new("root").in_group("system:masters"))
        .token("jane", User::new("jane"))
        .seed([role, binding])
        .build()
}

/// Sends a request with a token and further headers: a `SelfSubjectReview`, or a list of pods.
async fn ask(server: &Server, token: &str, uri: &str, headers: &[(&str, &str)]) -> Reply {
    let method = if uri == WHO { "POST" } else { "GET" };
    let mut request = request(method, uri)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(server, request.body(Full::from("{}")).unwrap()).await
}

async fn who(server: &Server, token: &str, headers: &[(&str, &str)]) -> Value {
    let reply = ask(server, token, WHO, headers).await;
    assert_eq!(reply.code, 201, "{}", reply.text);
    reply.json["status"]["userInfo"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_request_continues_as_the_impersonated_user() {
    let server = server(&json!([]));
    let user = who(
        &server,
        "admin",
        &[
            ("impersonate-user", "joe"),
            ("impersonate-group", "g"),
            ("impersonate-uid", "4711"),
            ("impersonate-extra-scopes", "a"),
            ("impersonate-extra-scopes", "b"),
            ("impersonate-extra-example.com%2fkey", "c"),
        ],
    )
    .await;
    let expected = json!({
        "username": "joe",
        "uid": "4711",
        "groups": ["g", "system:authenticated"],
        "extra": {"scopes": ["a", "b"], "example.com/key": ["c"]},
    });
    assert_eq!(user, expected);
    let joe = [("impersonate-user", "joe")];
    expect![[r#"403 Forbidden: pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&ask(&server, "admin", PODS, &joe).await.refusal());
    for (name, groups) in [
        (
            "system:serviceaccount:x:a",
            json!([
                "system:serviceaccounts",
                "system:serviceaccounts:x",
                "system:authenticated"
            ]),
        ),
        ("system:serviceaccount:x", json!(["system:authenticated"])),
        (
            "system:node:n",
            json!(["system:nodes", "system:authenticated"]),
        ),
        ("system:node:N", json!(["system:authenticated"])),
    ] {
        let user = who(&server, "admin", &[("impersonate-user", name)]).await;
        assert_eq!(user["groups"], groups, "{name}");
    }
    let anonymous = [("impersonate-user", "system:anonymous")];
    assert_eq!(
        ask(&server, "admin", "/healthz", &anonymous).await.code,
        200
    );
    assert_eq!(ask(&server, "admin", "/apis", &anonymous).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn each_impersonated_value_needs_the_permission() {
    let server = server(&json!([
        {"apiGroups": [""], "resources": ["users"], "resourceNames": ["joe"], "verbs": ["impersonate"]},
        {"apiGroups": [""], "resources": ["groups"], "resourceNames": ["g"], "verbs": ["impersonate"]},
        {"apiGroups": ["authentication.k8s.io"], "resources": ["userextras/scopes"], "verbs": ["impersonate"]},
    ]));
    let joe = ("impersonate-user", "joe");
    let all = [
        joe,
        ("impersonate-group", "g"),
        ("impersonate-extra-scopes", "x"),
    ];
    assert_eq!(who(&server, "jane", &all).await["username"], "joe");
    for header in [
        ("impersonate-group", "h"),
        ("impersonate-group", "system:masters"),
        ("impersonate-uid", "1"),
        ("impersonate-extra-other", "x"),
    ] {
        let reply = ask(&server, "jane", WHO, &[joe, header]).await;
        assert_eq!(reply.code, 403, "{header:?}");
    }
    for name in ["ann", "system:serviceaccount:x:a", "system:node:n"] {
        let reply = ask(&server, "jane", WHO, &[("impersonate-user", name)]).await;
        assert_eq!(reply.code, 403, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn constrained_impersonation_allows_one_verb_as_one_user() {
    let group = "authentication.k8s.io";
    let server = server(&json!([
        {"apiGroups": [group], "resources": ["users"], "resourceNames": ["joe"], "verbs": ["impersonate:user-info"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["impersonate-on:user-info:list"]},
        {"apiGroups": [group], "resources": ["groups"], "verbs": ["impersonate:user-info"]},
    ]));
    let joe = [("impersonate-user", "joe")];
    // Allowed to impersonate, and the impersonated user may not list.
    let reply = ask(&server, "jane", PODS, &joe).await;
    assert!(
        reply.message().contains("User \"joe\" cannot list"),
        "{}",
        reply.message()
    );
    let reply = ask(&server, "jane", &format!("{PODS}/a"), &joe).await;
    expect![[r#"403 Forbidden: pods "a" is forbidden: User "jane" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&reply.refusal());
    let masters = [joe[0], ("impersonate-group", "system:masters")];
    expect![[r#"403 Forbidden: groups.authentication.k8s.io "system:masters" is forbidden: User "jane" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed"#]]
        .assert_eq(&ask(&server, "jane", PODS, &masters).await.refusal());
}

#[tokio::test(start_paused = true)]
async fn a_server_without_access_control_ignores_the_headers() {
    let server = builder().build();
    let user = who(&server, "any", &[("impersonate-user", "joe")]).await;
    assert_eq!(user["username"], "system:anonymous");
    let reply = ask(&server, "any", PODS, &[("impersonate-group", "g")]).await;
    assert_eq!(reply.code, 200);
}

#[tokio::test(start_paused = true)]
async fn impersonation_works_with_tokens_and_without_rbac() {
    let server = builder().token("t", User::new("jane")).build();
    let joe = [("impersonate-user", "joe")];
    assert_eq!(who(&server, "t", &joe).await["username"], "joe");
    let reply = ask(&server, "t", PODS, &[("impersonate-uid", "1")]).await;
    assert_eq!(reply.code, 400);
}
