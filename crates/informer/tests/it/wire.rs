//! Over real TCP: the client that the library offers.

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kube_informer::{
    SharedInformerFactory, client,
    client::ListWatch,
    transport::{Class, ListOptions, ListerWatcher},
};
use kube_informer_apiserver::{Match, Server};

use crate::setting::pod;

async fn serve(server: &Server) -> (kube_informer_apiserver::Listening, Config) {
    let listening = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let uri = format!("http://{}", listening.local_addr())
        .parse()
        .unwrap();
    (listening, Config::new(uri))
}

#[tokio::test]
async fn one_429_is_one_request_and_one_error() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, config) = serve(&server).await;
    server.faults().answer(Match::any(), 429).retry_after(3);
    let source = ListWatch::<Pod>::new(client::connect(config).unwrap());
    let error = source.list(&ListOptions::default()).await.err().unwrap();
    assert_eq!(error.class(), Class::TooManyRequests);
    assert_eq!(error.retry_after(), Some(std::time::Duration::from_secs(3)));
    assert_eq!(server.requests().len(), 1, "nobody retries unseen");
    let agent = &server.requests().iter().next().unwrap().user_agent.clone();
    assert_eq!(agent, client::USER_AGENT);
    listening.shutdown().await;
}

#[tokio::test]
async fn nobody_listening_is_told_from_a_broken_connection() {
    let server = Server::builder().build();
    let (listening, config) = serve(&server).await;
    listening.shutdown().await;
    let source = ListWatch::<Pod>::new(client::connect(config).unwrap());
    let error = source.watch(&ListOptions::default()).await.err().unwrap();
    assert_eq!(error.class(), Class::ConnectionRefused, "{error}");
}

#[tokio::test]
async fn an_informer_works_over_tcp_from_list_to_handler() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, config) = serve(&server).await;
    let factory = SharedInformerFactory::builder(client::connect(config).unwrap()).build();
    let pods = factory.informer::<Pod>();
    let (tell, mut told) = tokio::sync::mpsc::channel(16);
    pods.on_add(move |pod, initial| {
        let tell = tell.clone();
        async move { tell.send((pod.name().to_owned(), initial)).await.unwrap() }
    })
    .register()
    .unwrap();
    factory.start();
    assert_eq!(told.recv().await, Some(("a".to_owned(), true)));
    server.create(pod("b")).unwrap();
    assert_eq!(told.recv().await, Some(("b".to_owned(), false)));
    factory.shutdown().await;
    listening.shutdown().await;
}
