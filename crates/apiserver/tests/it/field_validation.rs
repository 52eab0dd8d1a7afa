//! Tests the `fieldValidation` query option.
//!
//! The option determines whether the server rejects, reports or ignores the unknown and duplicate fields of a
//! request body.

use bytes::Bytes;
use http_body_util::Full;
use kube_informer_apiserver::{Kind, Scope, Server};
use serde_json::json;

use crate::ask::{Reply, builder, get, pod, request, send};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A pod with unknown and duplicate fields.
const WRONG: &str = r#"{"metadata":{"name":"a","foo":1},"spec":{"containers":[
    {"name":"c","image":"i","imagex":"j","livenessProbe":{"httpGet":{"path":"/","port":1,"b":2}}},
    {"name":"d","image":"i","image":"k"}],
    "foo":1,"foo":2,"nodename":"y","volumes":[{"name":"v","emptyDir":{},"hostpath":{}}]},
    "extra":{"a":1}}"#;

/// The errors that kube-apiserver 1.36.3 reports for [`WRONG`].
const COMPLAINTS: [&str; 8] = [
    r#"unknown field "metadata.foo""#,
    r#"unknown field "spec.containers[0].imagex""#,
    r#"unknown field "spec.containers[0].livenessProbe.httpGet.b""#,
    r#"duplicate field "spec.containers[1].image""#,
    r#"unknown field "spec.foo""#,
    r#"unknown field "spec.nodename""#,
    r#"unknown field "spec.volumes[0].hostpath""#,
    r#"unknown field "extra""#,
];

async fn write(server: &Server, method: &str, uri: &str, kind: &str, body: &str) -> Reply {
    let kind = match kind {
        "" => "application/json".to_owned(),
        patch => format!("application/{patch}+json"),
    };
    let request = request(method, uri).header("content-type", kind);
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes()));
    send(server, request.body(body).unwrap()).await
}

/// Returns the unescaped text of each `Warning` header, without code and agent.
fn warnings(reply: &Reply) -> Vec<String> {
    let all = reply.headers.get_all("warning").iter();
    all.map(|value| {
        let text = value.to_str().unwrap().strip_prefix("299 - \"").unwrap();
        text.strip_suffix('"').unwrap().replace("\\\"", "\"")
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn strict_validation_reports_all_errors_in_one_message() {
    let server = builder().build();
    let uri = format!("{PODS}?fieldValidation=Strict");
    let refused = write(&server, "POST", &uri, "", WRONG).await;
    assert_eq!(
        refused.refusal(),
        format!(
            "400 BadRequest: Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: {}",
            COMPLAINTS.join(", ")
        )
    );
    assert_eq!((server.revision(), warnings(&refused).len()), (1, 0));
    let sound = write(&server, "POST", &uri, "", &pod("a").to_string()).await;
    assert_eq!(sound.code, 201, "{}", sound.text);
    let uri = format!("{PODS}/a?fieldValidation=Strict");
    let refused = write(&server, "PUT", &uri, "", WRONG).await;
    assert_eq!(refused.code, 400);
}

#[tokio::test(start_paused = true)]
async fn warnings_are_the_default_and_unknown_fields_are_not_stored() {
    for (query, warned) in [
        ("", true),
        ("?fieldValidation=Warn", true),
        ("?fieldValidation=Ignore", false),
    ] {
        let server = builder().build();
        let made = write(&server, "POST", &format!("{PODS}{query}"), "", WRONG).await;
        assert_eq!(made.code, 201);
        let expected: &[&str] = if warned { &COMPLAINTS } else { &[] };
        assert_eq!(warnings(&made), expected, "{query}");
        let stored = get(&server, &format!("{PODS}/a")).await.json;
        for unknown in [
            "/extra",
            "/metadata/foo",
            "/spec/foo",
            "/spec/nodename",
            "/spec/containers/0/imagex",
            "/spec/containers/0/livenessProbe/httpGet/b",
            "/spec/volumes/0/hostpath",
        ] {
            assert_eq!(stored.pointer(unknown), None, "{unknown}");
        }
        assert_eq!(stored["spec"]["containers"][1]["image"], "k");
        assert_eq!(
            stored["spec"]["volumes"],
            json!([{"name": "v", "emptyDir": {}}])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_for_another_reason_has_the_warnings_too() {
    let server = builder().seed([pod("a")]).build();
    let refused = write(&server, "POST", PODS, "", WRONG).await;
    assert_eq!(
        (refused.code, warnings(&refused).len()),
        (409, COMPLAINTS.len())
    );
}

#[tokio::test(start_paused = true)]
async fn duplicate_fields_of_a_patch_and_unknown_fields_of_its_result_are_reported() {
    const PATCH: &str = r#"{"metadata":{"foo":1,"labels":{"a":"b","a":"c"}},"data":{"a":"b","a":"d"},"xx":1,"xx":2}"#;
    const OPERATIONS: &str = r#"[{"op":"add","path":"/data","path":"/data/b","value":"x","foo":1},{"op":"add","path":"/spec","value":{"a":1,"a":2}}]"#;
    let of_merge = [
        r#"duplicate field "metadata.labels.a""#,
        r#"duplicate field "data.a""#,
        r#"duplicate field "xx""#,
        r#"unknown field "metadata.foo""#,
        r#"unknown field "xx""#,
    ];
    let of_json = [
        r#"json patch duplicate field "[0].path""#,
        r#"json patch unknown field "[0].foo""#,
        r#"json patch duplicate field "[1].value.a""#,
        r#"unknown field "spec""#,
    ];
    let go = r#""map[data:map[a:d] metadata:map[foo:1 labels:map[a:c]] xx:2]""#;
    for (kind, body, expected, shown) in [
        (
            "merge-patch",
            PATCH,
            &of_merge[..],
            r#""{\"apiVersion\":\"v1\",\"#,
        ),
        ("strategic-merge-patch", PATCH, &of_merge, go),
        (
            "json-patch",
            OPERATIONS,
            &of_json,
            r#""{\"apiVersion\":\"v1\",\"#,
        ),
    ] {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"z": "z"}});
        let server = builder().seed([map]).build();
        let uri = format!("{MAPS}/a");
        let strict = format!("{uri}?fieldValidation=Strict");
        let refused = write(&server, "PATCH", &strict, kind, body).await;
        let message = refused.message();
        let start = format!(" \"\" is invalid: patch: Invalid value: {shown}");
        assert!(message.starts_with(&start), "{kind}: {message}");
        let end = format!(": strict decoding error: {}", expected.join(", "));
        assert!(message.ends_with(&end), "{kind}: {message}");
        assert_eq!((refused.code, server.revision()), (422, 1));
        let patched = write(&server, "PATCH", &uri, kind, body).await;
        assert_eq!(
            (patched.code, warnings(&patched)),
            (200, expected.iter().map(ToString::to_string).collect()),
            "{kind}"
        );
        let stored = server.get("v1", "configmaps", "default/a").unwrap();
        assert_eq!(
            (&stored["xx"], &stored["spec"]),
            (&json!(null), &json!(null)),
            "{kind}"
        );
        let ignored = write(
            &server,
            "PATCH",
            &format!("{uri}?fieldValidation=Ignore"),
            kind,
            body,
        )
        .await;
        assert_eq!((ignored.code, warnings(&ignored).len()), (200, 0), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_of_seeds_are_stored_and_not_reported_to_clients() {
    let mut odd = pod("a");
    odd["spec"]["n"] = json!(1);
    let server = builder().seed([odd]).build();
    assert_eq!(
        server.get("v1", "pods", "default/a").unwrap()["spec"]["n"],
        1
    );
    let uri = format!("{PODS}/a?fieldValidation=Strict");
    let label = r#"{"metadata":{"labels":{"a":"b"}}}"#;
    let patched = write(&server, "PATCH", &uri, "merge-patch", label).await;
    assert_eq!(
        (patched.code, &patched.json["spec"]["n"]),
        (200, &json!(null))
    );
}

#[tokio::test(start_paused = true)]
async fn only_the_metadata_of_a_custom_kind_is_validated() {
    let kind = Kind::custom("example.com", "v1", "Widget", "widgets", Scope::Cluster);
    let server = builder().kind(kind).build();
    let uri = "/apis/example.com/v1/widgets";
    let body = r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","foo":1},"spec":{"any":{"thing":1,"thing":2}}}"#;
    let made = write(&server, "POST", uri, "", body).await;
    assert_eq!(
        warnings(&made),
        [
            r#"unknown field "metadata.foo""#,
            r#"duplicate field "spec.any.thing""#
        ]
    );
    assert_eq!(made.json["spec"], json!({"any": {"thing": 2}}));
}
