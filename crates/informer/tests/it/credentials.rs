//! Tests an informer whose credentials expire while it runs.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    SharedInformer, SharedInformerFactory,
    client::{ListWatch, RotatingClient},
    transport::Error,
};
use kube_informer_apiserver::{Server, User};
use parking_lot::Mutex;

use crate::setting::{pod, run};

/// A simulated token file. `made` is the number of clients that the [`RotatingClient`] has created.
struct TokenFile {
    token: Arc<Mutex<&'static str>>,
    made: Arc<AtomicUsize>,
}

impl TokenFile {
    fn new(token: &'static str) -> Self {
        Self {
            token: Arc::new(Mutex::new(token)),
            made: Arc::default(),
        }
    }

    fn client_of(&self, server: &Server) -> RotatingClient {
        let (server, token, made) = (server.clone(), self.token.clone(), self.made.clone());
        RotatingClient::new(move || {
            made.fetch_add(1, Ordering::Relaxed);
            let client = server.with_token(*token.lock()).client();
            async move { Ok::<_, Error>(client) }
        })
    }

    fn made(&self) -> usize {
        self.made.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_with_expired_credentials_continues_with_new_ones() {
    let server = Server::builder()
        .seed([pod("a")])
        .token("spring", User::new("us"))
        .build();
    let file = TokenFile::new("spring");
    let client = file.client_of(&server);
    let pods = run(SharedInformer::builder(ListWatch::<Pod>::new(client)));
    pods.caught_up(&server).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    server.access().revoke_token("spring");
    server.access().grant_token("summer", User::new("us"));
    *file.token.lock() = "summer";
    server.faults().cut_watches();
    server.create(pod("b")).unwrap();
    pods.caught_up(&server).await;
    assert_eq!(pods.pods.indexer().len(), 2);
    assert_eq!(file.made(), 2, "one client per token");
    pods.stop().await;
}

#[tokio::test(start_paused = true)]
async fn all_requests_of_a_factory_share_the_current_client() {
    let server = Server::builder().token("summer", User::new("us")).build();
    let file = TokenFile::new("spring");
    let factory = SharedInformerFactory::builder(file.client_of(&server)).build();
    assert!(factory.discover("pods").await.is_err());
    *file.token.lock() = "summer";
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(factory.discover("pods").await.is_ok());
    let pods = factory.informer::<Pod>();
    factory.start();
    pods.wait_for_sync().await.unwrap();
    assert_eq!(file.made(), 2);
    factory.shutdown().await;
}
