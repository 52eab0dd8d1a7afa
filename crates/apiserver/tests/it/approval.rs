//! Tests the approval of certificate requests: what it changes, and who may approve.

use kube_informer_apiserver::{Authorization, Server, User};
use serde_json::{Value, json};

use crate::ask::{Reply, builder, get, with};

const REQUEST: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests/a";
const APPROVAL: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests/a/approval";
const STATUS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests/a/status";

/// The time of the clock of the tests.
const NOW: &str = "2027-01-15T08:00:00Z";

const BEFORE: &str = "2027-01-14T08:00:00Z";

/// A stored certificate request with this status.
fn request(status: &Value) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "a"},
        "spec": {"request": "YQ==", "signerName": "example.com/a", "usages": ["client auth"]},
        "status": status,
    })
}

fn server(status: &Value) -> Server {
    builder().seed([request(status)]).build()
}

fn condition(name: &str) -> Value {
    json!({"type": name, "status": "True", "reason": "R"})
}

fn with_times(mut condition: Value, updated: &str, changed: &str) -> Value {
    condition["lastUpdateTime"] = json!(updated);
    condition["lastTransitionTime"] = json!(changed);
    condition
}

async fn set_conditions(server: &Server, uri: &str, conditions: &[Value]) -> Reply {
    let patch = json!({"status": {"conditions": conditions}});
    with(server, "PATCH", uri, &patch).await
}

#[tokio::test(start_paused = true)]
async fn an_approval_changes_conditions_and_sets_their_times() {
    let server = server(&json!({"certificate": "YQ=="}));
    let mut sent = request(&json!({"certificate": "Yg==", "conditions": [condition("Approved")]}));
    sent["spec"]["signerName"] = json!("example.com/b");
    let approved = with(&server, "PUT", APPROVAL, &sent).await;
    assert_eq!(approved.code, 200, "{}", approved.text);
    assert_eq!(approved.json["spec"]["signerName"], "example.com/a");
    assert_eq!(approved.json["status"]["certificate"], "YQ==");
    let approval = with_times(condition("Approved"), NOW, NOW);
    assert_eq!(approved.json["status"]["conditions"], json!([approval]));
    let read = get(&server, APPROVAL).await.json;
    assert_eq!(read["status"], approved.json["status"]);
}

#[tokio::test(start_paused = true)]
async fn a_transition_keeps_its_time_until_the_status_changes() {
    let pending = json!({"type": "x", "status": "False", "reason": "R"});
    let old = with_times(pending.clone(), BEFORE, BEFORE);
    let server = server(&json!({"conditions": [old]}));
    let same = set_conditions(&server, APPROVAL, &[pending]).await.json;
    let times = &same["status"]["conditions"][0];
    assert_eq!(times["lastUpdateTime"], NOW);
    assert_eq!(times["lastTransitionTime"], BEFORE);
    let changed = json!({"type": "x", "status": "True", "reason": "R"});
    let changed = set_conditions(&server, APPROVAL, &[changed]).await.json;
    assert_eq!(
        changed["status"]["conditions"][0]["lastTransitionTime"],
        NOW
    );
}

#[tokio::test(start_paused = true)]
async fn invalid_conditions_are_rejected() {
    let server = server(&json!({"conditions": [condition("Approved"), condition("Failed")]}));
    let (approved, failed) = (condition("Approved"), condition("Failed"));
    let unknown = json!({"type": "Approved", "status": "Unknown"});
    let untyped = json!({"status": ""});
    for (conditions, why) in [
        (
            vec![failed.clone()],
            "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"",
        ),
        (
            vec![approved.clone()],
            "status.conditions: Forbidden: updates may not remove a condition of type \"Failed\"",
        ),
        (
            vec![approved.clone(), failed.clone(), condition("Denied")],
            "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
        ),
        (
            vec![approved.clone(), failed.clone(), failed.clone()],
            "status.conditions[2].type: Duplicate value: \"Failed\"",
        ),
        (
            vec![unknown, failed.clone()],
            "status.conditions[0].status: Unsupported value: \"Unknown\": supported values: \"True\"",
        ),
        (
            vec![approved.clone(), failed.clone(), untyped],
            "[status.conditions[2].type: Required value, status.conditions[2].status: Required value]",
        ),
    ] {
        let refused = set_conditions(&server, APPROVAL, &conditions).await;
        let prefix =
            "422 Invalid: CertificateSigningRequest.certificates.k8s.io \"a\" is invalid: ";
        assert_eq!(refused.refusal(), format!("{prefix}{why}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_of_the_status_changes_no_decision() {
    let approved = with_times(condition("Approved"), BEFORE, BEFORE);
    let server = server(&json!({"conditions": [approved]}));
    let mut changed = condition("Approved");
    changed["reason"] = json!("other");
    let conditions = [changed, condition("Failed")];
    let kept = set_conditions(&server, STATUS, &conditions).await.json;
    let failed = with_times(condition("Failed"), NOW, NOW);
    assert_eq!(kept["status"]["conditions"], json!([approved, failed]));
    let certificate = |text: &str| json!({"status": {"certificate": text}});
    let issued = with(&server, "PATCH", STATUS, &certificate("YQ==")).await;
    assert_eq!(issued.code, 200);
    let reissued = with(&server, "PATCH", STATUS, &certificate("Yg==")).await;
    assert_eq!(
        reissued.refusal(),
        "422 Invalid: CertificateSigningRequest.certificates.k8s.io \"a\" is invalid: status.certificate: Forbidden: updates may not modify existing certificate content"
    );
}

#[tokio::test(start_paused = true)]
async fn an_approver_owns_the_conditions_in_the_subresource() {
    let server = builder().build();
    let requests = REQUEST.trim_end_matches("/a");
    let mut new = request(&Value::Null);
    // A request without metadata that a creator can own has no owners, and gets none.
    new["metadata"]["labels"] = json!({"k": "v"});
    let created = with(&server, "POST", requests, &new).await;
    assert_eq!(created.code, 201, "{}", created.text);
    let sent = json!({
        "spec": {"signerName": "example.com/b"},
        "status": {"certificate": "Yg==", "conditions": [condition("Approved")]},
    });
    let uri = format!("{APPROVAL}?fieldManager=approver");
    let approved = with(&server, "PATCH", &uri, &sent).await;
    assert_eq!(approved.code, 200, "{}", approved.text);
    let approved = approved.json;
    let owners = approved["metadata"]["managedFields"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["manager"] == "approver");
    let owner = owner.unwrap();
    assert_eq!(owner["subresource"], "approval");
    let fields = owner["fieldsV1"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["f:status"]);
    assert!(fields["f:status"].get("f:conditions").is_some());
    assert!(fields["f:status"].get("f:certificate").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_approver_needs_a_permission_for_the_signer() {
    let server = builder()
        .authorization(Authorization::Rbac)
        .token("jane", User::new("jane"))
        .seed([request(&json!({}))])
        .build();
    let jane = server.with_token("jane");
    let allow = |rules: Value| {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "approver"},
            "rules": rules,
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "approver"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "approver"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
        });
        for object in [role, binding] {
            if server.create(object.clone()).is_err() {
                server.update(object).unwrap();
            }
        }
    };
    let approvals = [condition("Approved")];
    let approve = || set_conditions(&jane, APPROVAL, &approvals);
    let write = json!({"apiGroups": ["certificates.k8s.io"], "resources": ["certificatesigningrequests/approval"], "verbs": ["patch"]});
    let sign = |name: &str| json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [name], "verbs": ["approve"]});
    let refused = approve().await.refusal();
    assert!(refused.contains("cannot patch resource"), "{refused}");
    allow(json!([write, sign("example.com/b")]));
    assert_eq!(
        approve().await.refusal(),
        "403 Forbidden: certificatesigningrequests.certificates.k8s.io \"a\" is forbidden: user not permitted to approve requests with signerName \"example.com/a\""
    );
    for signer in ["example.com/*", "example.com/a"] {
        allow(json!([write, sign(signer)]));
        assert_eq!(approve().await.code, 200, "{signer}");
    }
}
