//! Runs the benchmark's object server for one test. The server stops when the test drops [`Served`].

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use source::{Chunking, Corpus, CorpusKind, Source, serve};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) struct Served {
    pub(crate) uri: String,
    http: Client<HttpConnector, Empty<Bytes>>,
    _server: JoinSet<()>,
}

/// Returns a simulated time in nanoseconds since 1970, which advances by 1 ns per call.
fn ticks() -> u64 {
    static TICKS: AtomicU64 = AtomicU64::new(1_780_000_000_000_000_000);
    TICKS.fetch_add(1, Ordering::Relaxed)
}

impl Served {
    pub(crate) async fn new(kind: CorpusKind, objects: usize) -> Served {
        let corpus = Corpus::new(kind, objects, 1).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(serve(
            listener,
            Source::new(corpus, ticks),
            Chunking::Server,
            std::future::pending(),
        ));
        Served {
            uri,
            http: Client::builder(TokioExecutor::new()).build_http(),
            _server: server,
        }
    }

    pub(crate) fn kube(&self) -> kube::Client {
        let config = kube::Config::new(self.uri.parse().unwrap());
        kube::Client::try_from(config).unwrap()
    }

    /// Sends a GET request over HTTP/2, with flow-control windows that never delay the server.
    pub(crate) async fn ask_http2(&self, path: &str, accept: &str) -> Response<Incoming> {
        let http: Client<HttpConnector, Empty<Bytes>> = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .http2_initial_stream_window_size(1 << 28)
            .http2_initial_connection_window_size(1 << 29)
            .build_http();
        let request = Request::get(format!("{}{path}", self.uri)).header(header::ACCEPT, accept);
        let request = request.body(Empty::new()).unwrap();
        http.request(request).await.unwrap()
    }

    /// Sends a request over HTTP/1.1, and returns the status code and the complete body.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        accept: &str,
    ) -> (StatusCode, Bytes) {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.uri))
            .header(header::ACCEPT, accept);
        let answer = self
            .http
            .request(request.body(Empty::new()).unwrap())
            .await
            .unwrap();
        let code = answer.status();
        (code, answer.into_body().collect().await.unwrap().to_bytes())
    }

    pub(crate) async fn post(&self, path: &str) -> Value {
        let (code, body) = self.ask(Method::POST, path, "*/*").await;
        assert_eq!(code, StatusCode::OK, "{path}");
        serde_json::from_slice(&body).unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> (StatusCode, Value) {
        let (code, body) = self.ask(Method::GET, path, "application/json").await;
        (code, serde_json::from_slice(&body).unwrap())
    }
}
