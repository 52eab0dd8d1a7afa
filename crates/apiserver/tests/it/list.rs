//! Tests list requests: the revision and the objects of a list, and the rejection of invalid options.

use serde_json::json;

use kube_informer_apiserver::{Kind, Scope, WatchCache};

use crate::ask::{builder, get, labelled, pod, pods};

const PODS: &str = "/api/v1/pods";

#[tokio::test(start_paused = true)]
async fn a_list_is_ordered_by_key_and_has_its_revision() {
    let server = builder()
        .seed([pod("b/x"), pod("a-b/x"), pod("a/y"), pod("a/x")])
        .build();
    server
        .create(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}))
        .unwrap();
    let list = get(&server, PODS).await;
    let namespaces: Vec<_> = list.json["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["namespace"].clone())
        .collect();
    assert_eq!(
        namespaces,
        ["a-b", "a", "a", "b"],
        "'-' precedes '/', as in etcd"
    );
    assert_eq!(
        list.revision(),
        "5",
        "a write of another kind increases it too"
    );
    assert_eq!(
        get(&server, "/api/v1/namespaces/a/pods").await.names(),
        ["x", "y"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_empty_list_has_no_items_and_the_current_revision() {
    let server = builder().build();
    let list = get(&server, PODS).await;
    assert_eq!(list.json["items"], json!([]));
    assert_eq!(list.revision(), "1");
}

#[tokio::test(start_paused = true)]
async fn built_in_lists_start_with_metadata_and_custom_ones_end_with_it() {
    let server = builder()
        .kind(Kind::custom(
            "example.com",
            "v1",
            "Widget",
            "widgets",
            Scope::Namespaced,
        ))
        .seed([
            pod("a"),
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        ])
        .build();
    let built_in = get(&server, PODS).await.text;
    assert!(
        built_in.starts_with(r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"2"},"items":[{"metadata":"#),
        "{built_in}"
    );
    let custom = get(&server, "/apis/example.com/v1/widgets").await.text;
    assert!(
        custom.starts_with(r#"{"apiVersion":"example.com/v1","items":[{"apiVersion":"#),
        "{custom}"
    );
    assert!(
        custom.ends_with("],\"kind\":\"WidgetList\",\"metadata\":{\"continue\":\"\",\"resourceVersion\":\"2\"}}\n"),
        "{custom}"
    );
}

/// Lists pods, and returns their names and the list's revision, or the error.
///
/// Pods `a`, `b` and `c` are created at revisions 1, 2 and 3, and pod `a` is deleted at revision 4.
async fn names(query: &str, cache: WatchCache) -> String {
    let server = builder()
        .watch_cache(cache)
        .seed([pod("a"), pod("b"), pod("c")])
        .build();
    server.delete("v1", "pods", "default/a").unwrap();
    let list = get(&server, &format!("{PODS}?{query}")).await;
    if list.code != 200 {
        return list.refusal();
    }
    format!("{} at {}", list.names().join(" "), list.revision())
}

#[tokio::test(start_paused = true)]
async fn every_row_of_the_revision_table_returns_its_revision() {
    for (query, expected) in [
        ("", "b c at 4"),
        ("resourceVersion=0", "b c at 4"),
        ("resourceVersion=2", "b c at 4"),
        ("limit=1", "b at 4"),
        ("limit=1&resourceVersion=0", "b c at 4"),
        ("limit=1&resourceVersion=2", "a at 2"),
        ("limit=5&resourceVersion=2", "a b at 2"),
        ("resourceVersionMatch=Exact&resourceVersion=3", "a b c at 3"),
        (
            "resourceVersionMatch=Exact&resourceVersion=3&limit=2",
            "a b at 3",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=0",
            "b c at 4",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=2",
            "b c at 4",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=2&limit=1",
            "b at 4",
        ),
    ] {
        assert_eq!(
            names(query, WatchCache::Adaptive).await,
            expected,
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_cache_a_list_at_0_applies_its_limit() {
    assert_eq!(
        names("limit=1&resourceVersion=0", WatchCache::Off).await,
        "b at 4"
    );
    assert_eq!(
        names("limit=1&resourceVersion=0", WatchCache::Size(0)).await,
        "b at 4"
    );
}

#[tokio::test(start_paused = true)]
async fn contradictory_list_options_are_rejected_with_kubernetes_message() {
    let invalid =
        |body: &str| format!("422 Invalid: ListOptions.meta.k8s.io \"\" is invalid: {body}");
    for (query, expected) in [
        ("resourceVersionMatch=Exact", invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")),
        ("resourceVersionMatch=NotOlderThan", invalid("resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided")),
        ("resourceVersionMatch=Exact&continue=x", invalid("[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided, resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided]")),
        ("resourceVersionMatch=Foo&resourceVersion=1", invalid("resourceVersionMatch: Unsupported value: \"Foo\": supported values: \"Exact\", \"NotOlderThan\", \"\"")),
        ("resourceVersionMatch=Exact&resourceVersion=0", invalid("resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")),
        ("sendInitialEvents=true", invalid("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list")),
        ("continue=x", "400 BadRequest: invalid continue token: continue key is not valid: illegal base64 data at input byte 0".to_owned()),
        ("continue=abc&resourceVersion=4", "400 BadRequest: invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value".to_owned()),
        ("resourceVersion=abc", "400 BadRequest: invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax".to_owned()),
        ("resourceVersion=99999999999999999999", "400 BadRequest: invalid resource version: resourceVersion: Invalid value: \"99999999999999999999\": strconv.ParseUint: parsing \"99999999999999999999\": value out of range".to_owned()),
        ("limit=x", "400 BadRequest: strconv.ParseInt: parsing \"x\": invalid syntax".to_owned()),
        ("fieldSelector=spec.foo=1", "400 BadRequest: field label not supported: spec.foo".to_owned()),
        ("labelSelector=a=b=c", "400 BadRequest: found '=', expected: ',' or 'end of string'".to_owned()),
        ("labelSelector==b", "400 BadRequest: found '=', expected: !, identifier, or 'end of string'".to_owned()),
        ("labelSelector=a,", "400 BadRequest: found '', expected: identifier after ','".to_owned()),
        ("labelSelector=a%20in%20(b,-c)", "400 BadRequest: unable to parse requirement: values[0][a]: Invalid value: \"-c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned()),
        ("labelSelector=-a", "400 BadRequest: unable to parse requirement: <nil>: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')".to_owned()),
    ] {
        assert_eq!(names(query, WatchCache::Adaptive).await, expected, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_of_options_has_one_cause_per_field() {
    let server = builder().build();
    let reply = get(
        &server,
        "/api/v1/pods?resourceVersionMatch=Exact&sendInitialEvents=true",
    )
    .await;
    let fields: Vec<_> = reply.json["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].clone())
        .collect();
    assert_eq!(fields, ["resourceVersionMatch", "sendInitialEvents"]);
    assert_eq!(reply.json["details"]["group"], "meta.k8s.io");
    assert_eq!(reply.json["details"]["kind"], "ListOptions");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_field_label_is_rejected_with_the_known_ones() {
    let server = builder().build();
    let reply = get(&server, "/api/v1/configmaps?fieldSelector=foo=1").await;
    let known =
        "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"";
    assert_eq!(reply.refusal(), format!("400 BadRequest: {known}"));
}

#[tokio::test(start_paused = true)]
async fn a_list_waits_3_seconds_for_a_future_revision() {
    let server = pods(&["a"]);
    let began = tokio::time::Instant::now();
    let reply = get(&server, "/api/v1/pods?resourceVersion=9").await;
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!(
        reply.refusal(),
        "504 Timeout: Timeout: Too large resource version: 9, current: 1"
    );
    assert_eq!(reply.headers["retry-after"], "1");
    assert_eq!(
        reply.json["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );

    let (reply, ()) = tokio::join!(get(&server, "/api/v1/pods?resourceVersion=2"), async {
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        server.create(pod("b")).unwrap();
    });
    assert_eq!(reply.names(), ["a", "b"], "a write in time ends the wait");
}

#[tokio::test(start_paused = true)]
async fn without_a_watch_cache_an_exact_future_revision_is_rejected_at_once() {
    let server = builder().watch_cache_for("pods", WatchCache::Off).build();
    let began = tokio::time::Instant::now();
    let reply = get(
        &server,
        "/api/v1/pods?resourceVersion=9&resourceVersionMatch=Exact",
    )
    .await;
    assert_eq!((reply.code, began.elapsed().as_secs()), (504, 0));
    assert!(!reply.headers.contains_key("retry-after"));
}

#[tokio::test(start_paused = true)]
async fn an_exact_list_of_an_expired_revision_receives_410() {
    let server = pods(&["a", "b"]);
    server.faults().expire_history();
    let exact = |revision: u64| {
        format!("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion={revision}")
    };
    let reply = get(&server, &exact(1)).await;
    assert_eq!(
        reply.refusal(),
        "410 Expired: The resourceVersion for the provided list is too old."
    );
    assert_eq!(
        get(&server, &exact(2)).await.names(),
        ["a", "b"],
        "the current revision is known"
    );
}

#[tokio::test(start_paused = true)]
async fn selectors_select_the_matching_objects() {
    let mut bound = labelled("b", "app", "web");
    bound["spec"]["nodeName"] = json!("n1");
    let server = builder()
        .seed([labelled("a", "app", "db"), bound, pod("c")])
        .build();
    for (query, expected) in [
        ("labelSelector=app%3Dweb", vec!["b"]),
        ("labelSelector=app!%3Dweb", vec!["a", "c"]),
        ("labelSelector=app+in+(web,db)", vec!["a", "b"]),
        ("labelSelector=!app", vec!["c"]),
        ("fieldSelector=spec.nodeName%3Dn1", vec!["b"]),
        ("fieldSelector=spec.nodeName%3D", vec!["a", "c"]),
        (
            "fieldSelector=metadata.name!%3Da,metadata.namespace%3Ddefault",
            vec!["b", "c"],
        ),
        (
            "fieldSelector=status.phase%3DPending&labelSelector=app",
            vec!["a", "b"],
        ),
    ] {
        assert_eq!(
            get(&server, &format!("{PODS}?{query}")).await.names(),
            expected,
            "{query}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_get_waits_for_its_revision_and_names_a_missing_object() {
    let server = pods(&["a"]);
    let path = "/api/v1/namespaces/default/pods";
    assert_eq!(
        get(&server, &format!("{path}/a?resourceVersion=1"))
            .await
            .revision(),
        "1"
    );
    assert_eq!(
        get(&server, &format!("{path}/a?resourceVersion=0"))
            .await
            .code,
        200
    );
    assert_eq!(
        get(&server, &format!("{path}/a?resourceVersion=5"))
            .await
            .code,
        504
    );
    let missing = get(&server, &format!("{path}/nope")).await;
    assert_eq!(missing.refusal(), "404 NotFound: pods \"nope\" not found");
    assert_eq!(
        missing.json["details"],
        json!({"name": "nope", "kind": "pods"})
    );
    let elsewhere = get(&server, "/apis/apps/v1/namespaces/default/deployments/x").await;
    assert_eq!(
        elsewhere.refusal(),
        "404 NotFound: deployments.apps \"x\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn twenty_thousand_objects_are_listed_in_chunks() {
    use http_body_util::BodyExt;
    use tower_service::Service;

    let mut server = builder()
        .seed((0..20_000).map(|n| pod(&format!("p{n:06}"))))
        .build();
    let request = crate::ask::request("GET", PODS)
        .body(http_body_util::Full::<bytes::Bytes>::default())
        .unwrap();
    let mut body = server.call(request).await.unwrap().into_body();
    let (mut whole, mut largest, mut chunks) = (Vec::new(), 0, 0);
    while let Some(frame) = body.frame().await {
        let chunk = frame.unwrap().into_data().unwrap();
        largest = largest.max(chunk.len());
        chunks += 1;
        whole.extend_from_slice(&chunk);
    }
    assert!(largest < 70 * 1024, "{largest}");
    assert!(chunks > 30, "{chunks}");
    let list: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 20_000);
}
