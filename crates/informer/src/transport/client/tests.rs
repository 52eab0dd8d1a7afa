//! Tests of the `Accept` headers of requests.

use k8s_openapi::api::core::v1::Pod;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube_informer_apiserver::Server;

use super::*;

/// Returns the `Accept` header of each type of request, one per line.
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
async fn protobuf_is_accepted_on_request_and_only_for_kinds_in_the_table() {
    let client = || Server::builder().build().client();
    let none = ListOptions::default();
    let protobuf = ListOptions {
        encoding: Some(Encoding::Protobuf),
        ..ListOptions::default()
    };
    let json = ListOptions {
        encoding: Some(Encoding::Json),
        ..ListOptions::default()
    };
    let pods = ListWatch::<Pod>::new(client());
    let plain = accepted(&pods, &none);
    expect_test::expect![[r#"
        json
        json;as=PartialObjectMetadataList,json
        json"#]]
    .assert_eq(&plain);
    assert_eq!(accepted(&pods, &json), plain);
    let both = accepted(&pods, &protobuf);
    expect_test::expect![[r#"
        vnd.kubernetes.protobuf,json
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList,vnd.kubernetes.protobuf,json
        vnd.kubernetes.protobuf,json"#]].assert_eq(&both);
    let pods = pods.encoding(Encoding::Protobuf);
    assert_eq!(accepted(&pods, &none), both);
    assert_eq!(accepted(&pods, &json), plain);
    let names = ListWatch::<PartialObjectMeta<Pod>>::new(client());
    expect_test::expect![[r#"
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList
        vnd.kubernetes.protobuf;as=PartialObjectMetadataList,json;as=PartialObjectMetadataList
        vnd.kubernetes.protobuf;as=PartialObjectMetadata,json;as=PartialObjectMetadata"#]]
    .assert_eq(&accepted(&names, &protobuf));
    let widget = GroupVersionKind::gvk("example.com", "v1", "Widget");
    let widget = ApiResource::from_gvk_with_plural(&widget, "widgets");
    let widgets = ListWatch::<DynamicObject>::with_type(client(), &widget);
    assert_eq!(accepted(&widgets, &protobuf), plain);
}
