//! Tests `Server::client`, which returns kube-rs's `Client` connected to the server without a socket.

use k8s_openapi::api::core::v1::Pod;
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::{Api, ResourceExt};

use kube_informer_apiserver::{Match, User};

use crate::ask::{builder, pod, pods};

#[tokio::test(start_paused = true)]
async fn typed_objects_are_written_and_read() {
    let server = pods(&["a"]);
    let api: Api<Pod> = Api::default_namespaced(server.client());
    let list = api.list(&ListParams::default()).await.unwrap();
    assert_eq!(list.items[0].name_any(), "a");
    let mut pod = list.items[0].clone();
    pod.metadata = kube_client::api::ObjectMeta {
        name: Some("b".into()),
        ..Default::default()
    };
    let created = api.create(&PostParams::default(), &pod).await.unwrap();
    assert_eq!(created.resource_version().as_deref(), Some("2"));
    let deleted = api.delete("b", &DeleteParams::default()).await.unwrap();
    let gone = deleted.left().expect("the response is the pod");
    assert_eq!(gone.metadata.name.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn rejections_are_returned_unchanged_and_not_retried() {
    let server = pods(&["a"]);
    server
        .faults()
        .answer(Match::list("pods"), 429)
        .retry_after(1);
    let api: Api<Pod> = Api::default_namespaced(server.client());
    let error = api.list(&ListParams::default()).await.unwrap_err();
    let kube_client::Error::Api(status) = error else {
        panic!("{error:?}")
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (429, "TooManyRequests")
    );
    assert_eq!(server.requests().len(), 1, "the client did not retry");
}

#[tokio::test(start_paused = true)]
async fn a_clients_credentials_can_expire() {
    let server = builder()
        .seed([pod("a")])
        .token("short-lived", User::new("jane"))
        .build();
    let code = async |client| {
        let api: Api<Pod> = Api::default_namespaced(client);
        match api.list(&ListParams::default()).await {
            Ok(_) => 200,
            Err(kube_client::Error::Api(status)) => status.code,
            Err(error) => panic!("{error:?}"),
        }
    };
    assert_eq!(code(server.client()).await, 401);
    let client = server.with_token("short-lived").client();
    assert_eq!(code(client.clone()).await, 200);
    server.access().revoke_token("short-lived");
    assert_eq!(code(client).await, 401);
}
