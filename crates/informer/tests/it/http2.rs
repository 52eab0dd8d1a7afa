//! Tests of the library's HTTP client: the number of connections, and requests that share a connection.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, future::join_all};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_informer::{
    SharedInformer, client,
    client::ListWatch,
    transport::{ListOptions, ListerWatcher},
};
use kube_informer_apiserver::{Listening, Server, Tls};
use serde_json::json;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use crate::setting::{Running, pod, run};

/// A TCP proxy that counts the accepted connections and can close them.
struct Between {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    cuts: watch::Sender<usize>,
    _tasks: JoinSet<()>,
}

impl Between {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::<AtomicUsize>::default();
        let cuts = watch::Sender::new(0);
        let (count, heard) = (Arc::clone(&accepted), cuts.subscribe());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                count.fetch_add(1, Ordering::Relaxed);
                let mut cut = heard.clone();
                cut.mark_unchanged();
                connections.spawn(async move {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        biased;
                        ended = copy_bidirectional(&mut near, &mut far) => drop(ended),
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            accepted,
            cuts,
            _tasks: tasks,
        }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn serve_tls(server: &Server) -> (Listening, Between, Config) {
    let tls = Tls::generate([]).unwrap();
    let local = "127.0.0.1:0".parse().unwrap();
    let listening = server.listen_tls(local, &tls).await.unwrap();
    let between = Between::before(listening.local_addr()).await;
    let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig().to_string()).unwrap();
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    config.cluster_url = format!("https://{}", between.address).parse().unwrap();
    (listening, between, config)
}

async fn serve_plain(server: &Server) -> (Listening, Between, Config) {
    let local = "127.0.0.1:0".parse().unwrap();
    let listening = server.listen(local).await.unwrap();
    let between = Between::before(listening.local_addr()).await;
    let uri = format!("http://{}", between.address).parse().unwrap();
    (listening, between, Config::new(uri))
}

fn informers(client: &Client, count: usize) -> Vec<Running> {
    let informer = |_| {
        run(SharedInformer::builder(ListWatch::<Pod>::new(
            client.clone(),
        )))
    };
    (0..count).map(informer).collect()
}

async fn all_caught_up(informers: &[Running], server: &Server) {
    join_all(informers.iter().map(|informer| informer.caught_up(server))).await;
}

async fn stop(informers: Vec<Running>, listening: Listening) {
    join_all(informers.into_iter().map(Running::stop)).await;
    listening.shutdown().await;
}

#[tokio::test]
async fn more_informers_than_a_server_accepts_requests_of_a_connection_share_two() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, between, config) = serve_tls(&server).await;
    let informers = informers(&client::connect(config).unwrap(), 120);
    all_caught_up(&informers, &server).await;
    assert_eq!(between.accepted(), 2);
    stop(informers, listening).await;
}

#[tokio::test]
async fn a_hundred_informers_share_one_connection_and_a_new_one_after_its_end() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, between, config) = serve_tls(&server).await;
    let informers = informers(&client::connect(config).unwrap(), 100);
    all_caught_up(&informers, &server).await;
    assert_eq!(between.accepted(), 1);
    between.cut();
    server.create(pod("b")).unwrap();
    all_caught_up(&informers, &server).await;
    assert_eq!(between.accepted(), 2);
    stop(informers, listening).await;
}

#[tokio::test]
async fn without_http2_on_the_server_every_watch_has_its_own_connection() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, between, config) = serve_plain(&server).await;
    let informers = informers(&client::connect(config).unwrap(), 3);
    all_caught_up(&informers, &server).await;
    server.create(pod("b")).unwrap();
    all_caught_up(&informers, &server).await;
    assert!(between.accepted() >= 3, "{}", between.accepted());
    stop(informers, listening).await;
}

#[tokio::test]
async fn with_prior_knowledge_one_connection_without_tls_is_shared() {
    let server = Server::builder().seed([pod("a")]).build();
    let (listening, between, config) = serve_plain(&server).await;
    let client = client::connect_with_prior_knowledge(config).unwrap();
    let informers = informers(&client, 10);
    all_caught_up(&informers, &server).await;
    assert_eq!(between.accepted(), 1);
    stop(informers, listening).await;
}

#[tokio::test]
async fn ten_unread_watches_do_not_block_the_eleventh() {
    let server = Server::builder().build();
    let (listening, between, config) = serve_tls(&server).await;
    let source = ListWatch::<Pod>::new(client::connect(config).unwrap());
    let options = ListOptions::default();
    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(source.watch(&options).await.unwrap());
    }
    let read = source.watch(&options).await.unwrap();
    let mut read = read.into_body();
    for number in 0..200 {
        let mut large = pod(&format!("pod-{number}"));
        large["metadata"]["annotations"] = json!({"filler": "x".repeat(20_000)});
        server.create(large).unwrap();
        let name = format!("pod-{number}");
        let mut told = Vec::new();
        while !String::from_utf8_lossy(&told).contains(&name) {
            let piece = timeout(Duration::from_secs(30), read.next())
                .await
                .expect("no event");
            let piece = piece.expect("the watch continues").unwrap();
            told.extend_from_slice(&piece);
        }
    }
    assert_eq!(between.accepted(), 1);
    drop((unread, read));
    listening.shutdown().await;
}
