//! Tests requests with protobuf bodies, which Go clients send.
//!
//! The server accepts protobuf bodies for built-in kinds and rejects them for custom kinds.

use http_body_util::Full;
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::json;

use crate::ask::{Reply, builder, get, pods, request, send, with};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Encodes a protobuf field whose value is shorter than 128 bytes.
fn field(number: u8, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    let length = u8::try_from(bytes.len()).unwrap();
    assert!(length < 128 && number < 16);
    [&[number << 3 | 2, length], bytes].concat()
}

fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version), field(2, kind)].concat();
    [&b"k8s\0"[..], &field(1, type_meta), &field(2, object)].concat()
}

async fn write(server: &Server, method: &str, uri: &str, body: Vec<u8>) -> Reply {
    let request = request(method, uri).header("content-type", PROTOBUF);
    send(server, request.body(Full::from(body)).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_and_updated_in_protobuf_and_returned_in_json() {
    let server = builder().build();
    let maps = "/api/v1/namespaces/default/configmaps";
    let object = |value: &str| {
        let entry = [field(1, "k"), field(2, value)].concat();
        let object = [field(1, field(1, "a")), field(2, entry)].concat();
        body("v1", "ConfigMap", &object)
    };
    let created = write(&server, "POST", maps, object("one")).await;
    assert_eq!(
        (created.code, &created.json["data"]["k"]),
        (201, &"one".into())
    );
    assert_eq!(created.headers["content-type"], "application/json");
    let path = format!("{maps}/a");
    let updated = write(&server, "PUT", &path, object("two")).await;
    assert_eq!(
        (updated.code, &updated.json["data"]["k"]),
        (200, &"two".into())
    );
    assert_eq!(get(&server, &path).await.json, updated.json);
}

#[tokio::test(start_paused = true)]
async fn a_null_is_absent_in_both_formats() {
    let server = builder().build();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    // A time of zero is null in JSON.
    let spec = [field(1, "h"), field(4, "")].concat();
    let object = [field(1, field(1, "a")), field(2, spec)].concat();
    let object = body("coordination.k8s.io/v1", "Lease", &object);
    let of_protobuf = write(&server, "POST", leases, object).await;
    let object =
        json!({"metadata": {"name": "b"}, "spec": {"holderIdentity": "h", "renewTime": null}});
    let of_json = with(&server, "POST", leases, &object).await;
    assert_eq!(of_protobuf.json["spec"], json!({"holderIdentity": "h"}));
    assert_eq!(of_json.json["spec"], of_protobuf.json["spec"]);
}

#[tokio::test(start_paused = true)]
async fn subresources_and_reviews_are_accepted_in_protobuf() {
    let deployment = serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "default", "name": "a"},
        "spec": {"replicas": 1},
    });
    let server = builder().seed([deployment]).build();
    let path = "/apis/apps/v1/namespaces/default/deployments/a";
    let scale = [field(1, field(1, "a")), field(2, [0x08, 7])].concat();
    let uri = format!("{path}/scale");
    let scaled = write(
        &server,
        "PUT",
        &uri,
        body("autoscaling/v1", "Scale", &scale),
    )
    .await;
    assert_eq!(
        (scaled.code, &scaled.json["spec"]["replicas"]),
        (200, &7.into())
    );
    assert_eq!(get(&server, path).await.json["spec"]["replicas"], 7);
    let other = write(&server, "PUT", &uri, body("apps/v1", "Deployment", &scale)).await;
    assert_eq!(
        other.refusal(),
        "400 BadRequest: Deployment in version \"v1\" cannot be handled as a Scale: converting (v1.Deployment) to (autoscaling.Scale): unknown conversion"
    );
    let attributes = [field(2, "get"), field(5, "pods")].concat();
    let review = body(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        &field(2, field(1, attributes)),
    );
    let uri = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let reviewed = write(&server, "POST", uri, review).await;
    assert_eq!(reviewed.json["status"]["allowed"], true);
    assert_eq!(
        reviewed.json["spec"]["resourceAttributes"]["resource"],
        "pods"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_in_protobuf() {
    let server = pods(&["a"]);
    let target = [field(1, "Node"), field(3, "n")].concat();
    let binding = [field(1, field(1, "a")), field(2, target)].concat();
    let pod = "/api/v1/namespaces/default/pods/a";
    let uri = format!("{pod}/binding");
    let bound = write(&server, "POST", &uri, body("v1", "Binding", &binding)).await;
    assert_eq!(bound.code, 201);
    assert_eq!(get(&server, pod).await.json["spec"]["nodeName"], "n");
}

#[tokio::test(start_paused = true)]
async fn custom_kinds_accept_json_only_but_their_delete_options_may_be_protobuf() {
    let kind = Kind::custom("example.com", "v1", "Foo", "foos", Scope::Namespaced);
    let foo = serde_json::json!({
        "apiVersion": "example.com/v1",
        "kind": "Foo",
        "metadata": {"namespace": "default", "name": "a"},
    });
    let server = builder().kind(kind).seed([foo]).build();
    let foos = "/apis/example.com/v1/namespaces/default/foos";
    let sent = body("example.com/v1", "Foo", &field(1, field(1, "b")));
    assert_eq!(
        write(&server, "POST", foos, sent).await.refusal(),
        "415 UnsupportedMediaType: the body of the request was in an unknown format - accepted media types include: application/json, application/yaml"
    );
    let path = format!("{foos}/a");
    let guarded = |uid: &str| {
        let preconditions = field(2, field(1, uid));
        body("example.com/v1", "DeleteOptions", &preconditions)
    };
    let refused = write(&server, "DELETE", &path, guarded("other")).await;
    assert_eq!(refused.code, 409);
    let uid = get(&server, &path).await.json["metadata"]["uid"].clone();
    let deleted = write(&server, "DELETE", &path, guarded(uid.as_str().unwrap())).await;
    assert_eq!(deleted.code, 200);
    assert_eq!(get(&server, &path).await.code, 404);
}
