//! Tests of the HTTP client that the library constructs, over TCP connections to the embedded server.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kube_informer::{
    SharedInformer, SharedInformerFactory, client,
    client::ListWatch,
    reflector::BackoffConfig,
    transport::{Class, ListOptions, ListerWatcher},
};
use kube_informer_apiserver::{Match, Server};

use crate::setting::{Trace, pod, run};

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
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
    assert_eq!(
        server.requests().len(),
        1,
        "the client does not retry by itself"
    );
    let agent = &server.requests().iter().next().unwrap().user_agent.clone();
    assert_eq!(agent, client::USER_AGENT);
    listening.shutdown().await;
}

#[tokio::test]
async fn a_refused_connection_is_distinguished_from_a_broken_one() {
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

#[tokio::test]
async fn an_informer_reconnects_to_a_restarted_server_and_loses_no_change() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, config) = serve(&server).await;
    let address = listening.local_addr();
    let source = ListWatch::<Pod>::new(client::connect(config).unwrap());
    let backoff = BackoffConfig {
        initial: Duration::from_millis(1),
        cap: Duration::from_millis(10),
        ..BackoffConfig::default()
    };
    let informer = run(SharedInformer::builder(source).backoff(backoff));
    let trace = Trace::default();
    trace.listen(&informer.pods);
    informer.caught_up(&server).await;

    listening.shutdown().await;
    server.delete("v1", "pods", "default/a").unwrap();
    server.create(pod("b")).unwrap();
    let listening = server.listen(address).await.unwrap();
    informer.caught_up(&server).await;

    assert_eq!(
        trace.take(),
        "add default/a@1 (initial)\nsynced\ndelete default/a@2\nadd default/b@3\n"
    );
    assert_eq!(server.requests().lists("pods").len(), 2);
    informer.stop().await;
    listening.shutdown().await;
}

#[tokio::test]
async fn an_incomplete_address_is_rejected_when_the_client_is_created() {
    for address in ["localhost:6443", "/api", "--kubeconfig", "10.0.0.1"] {
        let config = Config::new(address.parse().unwrap());
        let error = client::connect(config).err().expect(address);
        assert!(
            error.to_string().starts_with("HttpError"),
            "{address}: {error}"
        );
    }
    let whole = Config::new("https://localhost:6443/clusters/a".parse().unwrap());
    assert!(client::connect(whole).is_ok());
}
