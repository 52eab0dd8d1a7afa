//! Tests of RBAC: decisions by stored roles and bindings, default roles, and limits on what a writer can grant.

use expect_test::expect;
use http_body_util::Full;
use kube_informer_apiserver::{Authorization, Rule, Server, User};
use serde_json::{Value, json};

use crate::ask::{Reply, builder, get, pod, request, send, with};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn role(kind: &str, name: &str, rules: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "rules": rules,
    })
}

fn pods(verbs: &[&str]) -> Value {
    json!([{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}])
}

fn binding(kind: &str, role_kind: &str, role: &str, subject: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": role},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
        "subjects": [subject],
    })
}

fn jane() -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"})
}

/// Returns a server with RBAC and the tokens of `root`, a member of `system:masters`, and `jane`, who has no roles.
fn server() -> Server {
    builder()
        .authorization(Authorization::Rbac)
        .token("admin", User::new("root").in_group("system:masters"))
        .token("jane", User::new("jane"))
        .build()
}

#[tokio::test(start_paused = true)]
async fn an_operator_whose_role_lacks_one_verb_receives_403_for_this_verb() {
    let server = server();
    let operator = server.with_token("jane");
    let all = ["get", "list", "watch", "create"];
    server
        .create(role("Role", "operator", &pods(&all)))
        .unwrap();
    server
        .create(binding("RoleBinding", "Role", "operator", &jane()))
        .unwrap();
    assert_eq!(with(&operator, "POST", PODS, &pod("a")).await.code, 201);
    assert_eq!(get(&operator, PODS).await.names(), ["a"]);

    server
        .patch(
            "rbac.authorization.k8s.io/v1",
            "roles",
            "default/operator",
            json!({"rules": pods(&["get", "list", "watch"])}),
        )
        .unwrap();
    assert_eq!(get(&operator, PODS).await.names(), ["a"]);
    expect![[r#"403 Forbidden: pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&with(&operator, "POST", PODS, &pod("b")).await.refusal());

    server
        .delete("rbac.authorization.k8s.io/v1", "roles", "default/operator")
        .unwrap();
    expect![[r#"403 Forbidden: pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default": RBAC: role.rbac.authorization.k8s.io "operator" not found"#]]
        .assert_eq(&get(&operator, PODS).await.refusal());
}

#[tokio::test(start_paused = true)]
async fn a_request_without_credentials_is_anonymous_and_an_unknown_token_is_rejected() {
    let server = server();
    assert_eq!(get(&server, "/healthz").await.code, 200);
    assert_eq!(get(&server, "/version").await.code, 200);
    expect![[r#"403 Forbidden: forbidden: User "system:anonymous" cannot get path "/apis""#]]
        .assert_eq(&get(&server, "/apis").await.refusal());
    expect![[r#"403 Forbidden: pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default""#]]
        .assert_eq(&get(&server, PODS).await.refusal());
    let unknown = server.with_token("unknown");
    assert_eq!(get(&unknown, "/healthz").await.code, 401);
    assert_eq!(get(&server.with_token("jane"), "/apis").await.code, 200);
    assert_eq!(get(&server.with_token("admin"), "/metrics").await.code, 200);
    assert_eq!(get(&server.with_token("jane"), "/metrics").await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn rbac_applies_without_tokens_too() {
    let server = builder().authorization(Authorization::Rbac).build();
    assert_eq!(get(&server, PODS).await.code, 403);
    assert_eq!(get(&server, "/healthz").await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn an_access_rule_allows_what_rbac_does_not() {
    let server = server();
    let jane = server.with_token("jane");
    assert_eq!(get(&jane, PODS).await.code, 403);
    let rule = Rule::allow(["list"], ["pods"]).for_user("jane");
    server.access().replace_rules([rule]);
    assert_eq!(get(&jane, PODS).await.code, 200);
    assert_eq!(
        get(&jane, "/metrics").await.code,
        403,
        "a rule is for resources"
    );
    server.access().drop_rules();
    assert_eq!(get(&jane, PODS).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn default_roles_aggregate_the_rules_of_others() {
    let server = server();
    let jane_ = server.with_token("jane");
    server
        .create(binding("RoleBinding", "ClusterRole", "edit", &jane()))
        .unwrap();
    // `edit` has the rules of `system:aggregate-to-edit`, and by `view` those of `system:aggregate-to-view`.
    assert_eq!(with(&jane_, "POST", PODS, &pod("a")).await.code, 201);
    let quota = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(get(&jane_, quota).await.code, 200);
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(get(&jane_, widgets).await.code, 403);
    let mut role = role(
        "ClusterRole",
        "widgets",
        &json!([{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["list"]}]),
    );
    role["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    server.create(role).unwrap();
    assert_eq!(
        get(&jane_, widgets).await.code,
        404,
        "allowed, and not served"
    );
    server
        .delete("rbac.authorization.k8s.io/v1", "clusterroles", "widgets")
        .unwrap();
    assert_eq!(get(&jane_, widgets).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_seed_replaces_a_default_role() {
    let server = builder()
        .authorization(Authorization::Rbac)
        .seed([role("ClusterRole", "system:public-info-viewer", &json!([]))])
        .build();
    assert_eq!(get(&server, "/healthz").await.code, 403);
    let off = builder().build();
    let roles = off.list("rbac.authorization.k8s.io/v1", "clusterroles");
    assert_eq!(roles.len(), 0, "a server without RBAC has no roles");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_back_decides_by_the_earlier_objects() {
    let server = server();
    let jane_ = server.with_token("jane");
    let before = server.revision();
    server
        .create(binding("RoleBinding", "ClusterRole", "view", &jane()))
        .unwrap();
    assert_eq!(get(&jane_, PODS).await.code, 200);
    server.faults().restart_at(before).unwrap();
    assert_eq!(get(&jane_, PODS).await.code, 403);
}

#[cfg(feature = "persistence")]
#[tokio::test]
async fn a_restarted_server_decides_by_the_stored_objects() {
    let directory = crate::persistence::scratch("rbac");
    let open = || {
        builder()
            .authorization(Authorization::Rbac)
            .token("jane", User::new("jane"))
            .open(&directory)
            .unwrap()
    };
    let server = open();
    server
        .create(binding("RoleBinding", "ClusterRole", "view", &jane()))
        .unwrap();
    let group = "rbac.authorization.k8s.io/v1";
    server
        .delete(group, "clusterrolebindings", "system:discovery")
        .unwrap();
    assert_eq!(get(&server.with_token("jane"), "/apis").await.code, 403);
    drop(server);
    let server = open();
    assert_eq!(get(&server.with_token("jane"), PODS).await.code, 200);
    assert_eq!(
        get(&server.with_token("jane"), "/apis").await.code,
        200,
        "a missing default binding is created at the start"
    );
    drop(server);
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Returns a server on which `jane` may write RBAC objects in `default` and get pods there.
fn with_writer() -> (Server, Server) {
    let server = server();
    let rules = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create", "update", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]);
    server.create(role("Role", "writer", &rules)).unwrap();
    server
        .create(binding("RoleBinding", "Role", "writer", &jane()))
        .unwrap();
    let writer = server.with_token("jane");
    (server, writer)
}

async fn post(server: &Server, plural: &str, object: &Value) -> Reply {
    let uri = format!("{RBAC}/namespaces/default/{plural}");
    with(server, "POST", &uri, object).await
}

#[tokio::test(start_paused = true)]
async fn a_role_can_not_grant_what_its_writer_lacks() {
    let (server, writer) = with_writer();
    let reply = post(
        &writer,
        "roles",
        &role("Role", "b", &pods(&["list", "get", "delete"])),
    )
    .await;
    expect![[r#"
        403 Forbidden: roles.rbac.authorization.k8s.io "b" is forbidden: user "jane" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
        {APIGroups:[""], Resources:["pods"], Verbs:["list" "delete"]}"#]]
    .assert_eq(&reply.refusal());
    let reply = post(&writer, "roles", &role("Role", "b", &pods(&["get"]))).await;
    assert_eq!(reply.code, 201);
    let uri = format!("{RBAC}/namespaces/default/roles/b");
    let wider = json!({"rules": pods(&["get", "list"])});
    assert_eq!(with(&writer, "PATCH", &uri, &wider).await.code, 403);
    let renamed = json!({"metadata": {"finalizers": ["example.com/x"]}});
    assert_eq!(with(&writer, "PATCH", &uri, &renamed).await.code, 200);

    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]}]);
    server.create(role("Role", "escalate", &rules)).unwrap();
    server
        .create(binding("RoleBinding", "Role", "escalate", &jane()))
        .unwrap();
    assert_eq!(with(&writer, "PATCH", &uri, &wider).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn a_binding_can_not_grant_what_its_writer_lacks() {
    let (server, writer) = with_writer();
    let view = binding("RoleBinding", "ClusterRole", "view", &jane());
    let reply = post(&writer, "rolebindings", &view).await;
    assert_eq!(reply.code, 403);
    let start = "rolebindings.rbac.authorization.k8s.io \"view\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"bindings\"], Verbs:[\"get\" \"list\" \"watch\"]}\n";
    assert!(reply.message().starts_with(start), "{}", reply.message());
    let none = binding("RoleBinding", "Role", "none", &jane());
    expect![[r#"404 NotFound: role.rbac.authorization.k8s.io "none" not found"#]]
        .assert_eq(&post(&writer, "rolebindings", &none).await.refusal());
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "resourceNames": ["view"], "verbs": ["bind"]}]);
    server.create(role("Role", "bind", &rules)).unwrap();
    server
        .create(binding("RoleBinding", "Role", "bind", &jane()))
        .unwrap();
    assert_eq!(post(&writer, "rolebindings", &view).await.code, 201);
    let edit = binding("RoleBinding", "ClusterRole", "edit", &jane());
    assert_eq!(post(&writer, "rolebindings", &edit).await.code, 403);
}

#[tokio::test(start_paused = true)]
async fn a_role_with_too_many_combinations_is_rejected_before_it_is_divided() {
    let (_server, writer) = with_writer();
    let many: Vec<String> = (0..1_000).map(|nth| format!("r{nth}")).collect();
    let rules =
        json!([{"apiGroups": many, "resources": many, "resourceNames": many, "verbs": many}]);
    let reply = post(&writer, "roles", &role("Role", "b", &rules)).await;
    expect![[r#"403 Forbidden: roles.rbac.authorization.k8s.io "b" is forbidden: the rules have more than 20000 combinations of verbs, resources and names"#]]
        .assert_eq(&reply.refusal());
}

#[tokio::test(start_paused = true)]
async fn a_rules_review_lists_the_rules_of_all_bindings() {
    let server = server();
    server
        .create(role("Role", "operator", &pods(&["get"])))
        .unwrap();
    server
        .create(binding("RoleBinding", "Role", "operator", &jane()))
        .unwrap();
    let uri = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let body = json!({"spec": {"namespace": "default"}});
    let reply = with(&server.with_token("jane"), "POST", uri, &body).await;
    let status = &reply.json["status"];
    let resources = status["resourceRules"].as_array().unwrap();
    let own = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
    assert!(resources.contains(&own), "{status}");
    let paths = status["nonResourceRules"].as_array().unwrap();
    assert!(
        paths[0]["nonResourceURLs"]
            .as_array()
            .unwrap()
            .contains(&json!("/api/*"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_fault_endpoint_needs_a_permission_for_its_path() {
    let server = builder()
        .authorization(Authorization::Rbac)
        .token("admin", User::new("root").in_group("system:masters"))
        .fault_endpoint(true)
        .build();
    assert_eq!(get(&server, "/faults").await.code, 403);
    let request = request("GET", "/faults").header("authorization", "Bearer admin");
    let reply = send(&server, request.body(Full::default()).unwrap()).await;
    assert_eq!(reply.code, 200);
}
