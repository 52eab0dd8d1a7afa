//! Tests of the `Accept` headers of requests.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;

use super::*;
use crate::pruning::Pruned;

/// Returns the `Accept` header of each type of request, one per line, without the texts `application/` and
/// `;g=meta.k8s.io;v=v1`.
fn accepted<K>(source: &ListWatch<K>, options: &ListOptions) -> String {
    let wanted = [Wanted::List, Wanted::ListOfMetadata, Wanted::Watch];
    let header = |wanted| {
        let request = source.request(options, wanted).unwrap();
        let accept = request.headers()[http::header::ACCEPT].to_str().unwrap();
        // The parameters that are the same for all metadata-only requests.
        accept
            .replace(";g=meta.k8s.io;v=v1", "")
            .replace("application/", "")
    };
    wanted.map(header).join("\n")
}

#[tokio::test]
async fn types_of_k8s_openapi_and_metadata_of_built_in_kinds_are_requested_in_protobuf() {
    let client = || Server::builder().build().client();
    let none = ListOptions::default();
    let in_encoding = |encoding| ListOptions {
        encoding: Some(encoding),
        ..ListOptions::default()
    };
    let (json, protobuf) = (in_encoding(Encoding::Json), in_encoding(Encoding::Protobuf));
    let pods = ListWatch::<Pod>::new(client());
    let both = accepted(&pods, &none);
    expect_test::expect![[r#"
        vnd.kubernetes.protobuf,json
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList,vnd.kubernetes.protobuf,json
        vnd.kubernetes.protobuf,json"#]].assert_eq(&both);
    assert_eq!(accepted(&pods, &protobuf), both);
    let plain = accepted(&pods, &json);
    expect_test::expect![[r#"
        json
        json;as=PartialObjectMetadataList,json
        json"#]]
    .assert_eq(&plain);
    let pods = pods.encoding(Encoding::Json);
    assert_eq!(accepted(&pods, &none), plain);
    assert_eq!(accepted(&pods, &protobuf), both);
    let pruned = ListWatch::<Pruned<Pod>>::new(client());
    assert_eq!(accepted(&pruned, &none), both);
    let names = ListWatch::<PartialObjectMeta<Pod>>::new(client());
    let names = accepted(&names, &none);
    expect_test::expect![[r#"
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList
        vnd.kubernetes.protobuf;as=PartialObjectMetadata,json;as=PartialObjectMetadata"#]]
    .assert_eq(&names);
}

#[tokio::test]
async fn other_types_are_requested_in_protobuf_only_on_request_and_custom_resources_never() {
    let client = || Server::builder().build().client();
    let none = ListOptions::default();
    let protobuf = ListOptions {
        encoding: Some(Encoding::Protobuf),
        ..ListOptions::default()
    };
    let is_of_protobuf = |accept: String| accept.contains("protobuf");
    let pod = ApiResource::erase::<Pod>(&());
    let pods = ListWatch::<DynamicObject>::with_type(client(), &pod);
    assert!(!is_of_protobuf(accepted(&pods, &none)));
    assert!(is_of_protobuf(accepted(&pods, &protobuf)));
    let widget = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widget = ApiResource::from_gvk_with_plural(&widget, "widgets");
    let widgets = ListWatch::<DynamicObject>::with_type(client(), &widget);
    assert!(!is_of_protobuf(accepted(&widgets, &protobuf)));
    let names = ListWatch::<PartialObjectMeta<DynamicObject>>::with_type(client(), &widget);
    assert!(!is_of_protobuf(accepted(&names, &none)));
}

/// Returns a client of a server that responds with 406 if `Accept` contains `protobuf` or `as=`.
///
/// `requests` receives the first media type of each `Accept` header.
fn without_protobuf(requests: &Arc<Mutex<Vec<String>>>) -> Client {
    let requests = Arc::clone(requests);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let accept = request.headers()[http::header::ACCEPT].to_str().unwrap();
        let is_rejected = accept.contains("protobuf") || accept.contains("as=");
        requests
            .lock()
            .push(accept.split(';').next().unwrap_or(accept).to_owned());
        let response = http::Response::builder()
            .status(if is_rejected { 406 } else { 200 })
            .header("content-type", "application/json")
            .body(Body::from(b"{}".to_vec()));
        async { response }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_server_that_rejects_protobuf_with_a_406_is_asked_for_json_from_then_on() {
    let requests = Arc::default();
    let pods = ListWatch::<Pod>::new(without_protobuf(&requests));
    let (none, protobuf) = (
        "application/json",
        "application/vnd.kubernetes.protobuf,application/json",
    );
    pods.list(&ListOptions::default()).await.unwrap();
    pods.clone().watch(&ListOptions::default()).await.unwrap();
    assert_eq!(*requests.lock(), [protobuf, none, none]);
}

#[tokio::test]
async fn a_406_for_both_encodings_is_an_error_and_later_requests_accept_protobuf() {
    let requests = Arc::default();
    let names = ListWatch::<PartialObjectMeta<Pod>>::new(without_protobuf(&requests));
    for _ in 0..2 {
        let error = names.list(&ListOptions::default()).await.unwrap_err();
        assert_eq!(error.class(), Class::Invalid);
    }
    let (json, protobuf) = ("application/json", "application/vnd.kubernetes.protobuf");
    assert_eq!(*requests.lock(), [protobuf, json, protobuf, json]);
}
