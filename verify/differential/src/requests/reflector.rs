//! Runs sequences of operations on the library's reflector and client, against an embedded server, in paused
//! tokio time.

use std::{collections::BTreeMap, io, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    future::{Ready, ready},
    stream::poll_fn,
};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::Client;
use kube_informer::{
    client::ListWatch,
    indexer::{self, Indexer, Indexers},
    reflector::{InitialList, Reflector, TimeoutConfig},
};
use parking_lot::Mutex;
use tokio::{
    runtime,
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep},
};
use tower_service::Service;

use super::{
    PAGES, STREAMING,
    host::{Delivery, Host},
    line::Line,
};
use crate::{
    cached::{K, show},
    planted::{Bug, FaultySource},
    sequence::{Answer, Sequence, Step},
};

/// Number of objects per page with the option [`PAGES`], as in `verify/differential/oracle`.
const PAGE_SIZE: u32 = 2;
/// Timeout of all watches, longer than any sequence.
const NEVER: Duration = Duration::from_secs(10_000 * 3600);
/// Capacity, in frames, of the channel of each response body. No sequence fills the channel.
const MANY: usize = 256;

/// A frame of a response body, or the I/O error of a failed connection.
type Piece = Result<Frame<Bytes>, io::Error>;
type Pieces = Pin<Box<dyn futures_core::Stream<Item = Piece> + Send>>;

/// Runs a sequence on a new reflector and server, and returns one [`Step`] per operation.
pub(super) fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    // The server has its own runtime, which must not be created or dropped inside the client's.
    let host = Arc::new(Mutex::new(Host::new(sequence)));
    let runtime = runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without an I/O driver can be built");
    runtime.block_on(async {
        let mut here = Here::new(sequence, bug, Arc::clone(&host));
        let mut steps = Vec::with_capacity(sequence.operations.len());
        for at in 0..sequence.operations.len() {
            steps.push(here.step(at).await);
        }
        steps
    })
}

struct Here<'a> {
    sequence: &'a Sequence,
    server: Near,
    indexer: Indexer<K>,
    reflector: Option<Reflector<K, indexer::IndexerFeed<K>>>,
    /// Stops the reflector when dropped; `None` before the reflector has started.
    stop: Option<oneshot::Sender<()>>,
    running: JoinSet<()>,
}

impl<'a> Here<'a> {
    fn new(sequence: &'a Sequence, bug: Option<Bug>, host: Arc<Mutex<Host>>) -> Self {
        let server = Near {
            host,
            begin: Instant::now(),
            bodies: Arc::default(),
        };
        let client = Client::new(server.clone(), "default");
        let (indexer, writer) = indexer::new(Indexers::new()).expect("there are no indexes");
        let source = FaultySource::new(ListWatch::<K>::new(client), bug);
        let timeouts = TimeoutConfig {
            silence: NEVER,
            ..TimeoutConfig::default()
        };
        let initial_list = if sequence.has(STREAMING) {
            InitialList::Streaming
        } else {
            InitialList::List
        };
        let builder = Reflector::builder(source)
            .rng_seed(1)
            .watch_timeout_min(NEVER)
            .timeouts(timeouts)
            .initial_list(initial_list);
        let builder = if sequence.has(PAGES) {
            builder.page_size(PAGE_SIZE)
        } else {
            builder
        };
        Self {
            sequence,
            server,
            indexer,
            reflector: Some(builder.into_indexer(writer)),
            stop: None,
            running: JoinSet::new(),
        }
    }

    async fn step(&mut self, at: usize) -> Step {
        let (mut said, mut seen) = (Vec::new(), Vec::new());
        let mut turn = 0;
        loop {
            let more = self.turn(at, turn).await;
            let lines = self.server.host.lock().take();
            said.extend(lines.iter().map(ToString::to_string));
            seen.extend(lines.iter().flat_map(Line::seen));
            if !more {
                break;
            }
            said.push(super::THEN.to_owned());
            turn += 1;
        }
        let snapshot = self.indexer.snapshot();
        let broken = snapshot.broken().filter_map(|(name, _)| snapshot.get(name));
        let mut store: Vec<_> = snapshot.iter().chain(broken).map(show).collect();
        store.sort_unstable();
        Step {
            answer: Answer::said(super::join(said, &format!("[{}]", store.join(" ")))),
            seen,
        }
    }

    /// Executes one turn of the operation at index `at`, and returns whether another turn follows.
    ///
    /// In a turn, the server sends data or fails, and then virtual time passes. `turn` is 0 or 1.
    async fn turn(&mut self, at: usize, turn: usize) -> bool {
        let now = self.server.begin.elapsed();
        let happened = self.server.host.lock().operate(at, turn, now);
        for delivery in happened.delivers {
            self.server.deliver(&delivery);
        }
        if self.sequence.operations[at].verb == "start" && turn == 0 {
            self.start();
        }
        sleep(Duration::from_millis(happened.pass)).await;
        happened.more
    }

    fn start(&mut self) {
        let Some(reflector) = self.reflector.take() else {
            return;
        };
        let (stop, stopped) = oneshot::channel::<()>();
        self.stop = Some(stop);
        self.running.spawn(async {
            reflector.run(async { drop(stopped.await) }).await;
        });
    }
}

/// HTTP service that passes the requests of the library's client to the embedded server.
#[derive(Clone)]
struct Near {
    host: Arc<Mutex<Host>>,
    begin: Instant,
    /// Senders of the open response bodies, by response number ([`Delivery::stream`]).
    bodies: Arc<Mutex<BTreeMap<u64, mpsc::Sender<Piece>>>>,
}

impl Near {
    fn deliver(&self, delivery: &Delivery) {
        let mut bodies = self.bodies.lock();
        let Some(body) = bodies.get(&delivery.stream) else {
            return;
        };
        let bytes = Bytes::from(delivery.bytes.clone());
        let mut is_read = body.try_send(Ok(Frame::data(bytes))).is_ok();
        if delivery.end == "broken" {
            let _ = body.try_send(Err(io::ErrorKind::ConnectionReset.into()));
        }
        is_read &= delivery.end.is_empty();
        if !is_read {
            bodies.remove(&delivery.stream);
            self.host.lock().leave(delivery.stream);
        }
    }
}

impl<B> Service<Request<B>> for Near {
    type Response = Response<StreamBody<Pieces>>;
    type Error = io::Error;
    type Future = Ready<Result<Self::Response, io::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), io::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let uri = request.uri();
        let now = self.begin.elapsed();
        let query = uri.query().unwrap_or_default();
        let answered = self.host.lock().request(uri.path(), query, now);
        match answered.failure {
            "refused" => return ready(Err(io::ErrorKind::ConnectionRefused.into())),
            "reset" => return ready(Err(io::ErrorKind::ConnectionReset.into())),
            _ => {}
        }
        let (body, mut pieces) = mpsc::channel(MANY);
        let stream: Pieces = Box::pin(poll_fn(move |context| pieces.poll_recv(context)));
        let mut response = Response::builder().status(answered.status);
        for (name, value) in &answered.headers {
            response = response.header(name, value);
        }
        self.bodies.lock().insert(answered.delivery.stream, body);
        self.deliver(&answered.delivery);
        let response = response.body(StreamBody::new(stream));
        ready(Ok(response.expect("the server's headers are valid")))
    }
}
