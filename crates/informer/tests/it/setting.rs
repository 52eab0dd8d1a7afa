//! The setup that most tests share: pods, a running informer, and a handler that records its events.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_informer::{
    Cause, Deleted, Event, EventHandler, InitialList, SharedInformer, SharedInformerFactory,
    client::ListWatch,
    factory::FactoryBuilder,
    shared_informer::{Builder, Registration},
    transport::Encoding,
};
use kube_informer_apiserver::{LoggedRequest, Server, Verb};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::JoinHandle, time::timeout};

/// A long duration for deadlines and sleeps. Under tokio's paused clock, it takes no real time.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "pause"}]},
    })
}

/// Returns a pod with the label `app` set to `value`. The pod has no `resourceVersion`, so an update with
/// this pod is unconditional.
pub(crate) fn labelled(name: &str, value: &str) -> Value {
    let mut pod = pod(name);
    pod["metadata"]["labels"] = json!({"app": value});
    pod
}

/// Returns the encoding in the environment variable `TEST_ENCODING`, or JSON if the variable is not set.
#[expect(
    clippy::disallowed_methods,
    reason = "a test reads the encoding that its stage of the CI selects"
)]
fn encoding() -> Encoding {
    match std::env::var("TEST_ENCODING") {
        Ok(encoding) if encoding == "protobuf" => Encoding::Protobuf,
        Ok(other) => panic!("TEST_ENCODING is {other:?}, not \"protobuf\""),
        Err(_) => Encoding::Json,
    }
}

pub(crate) fn builder(server: &Server) -> Builder<Pod> {
    SharedInformer::builder(ListWatch::<Pod>::new(server.client()))
        .name("pods")
        .rng_seed(1)
        .encoding(encoding())
}

/// Returns the builder of a factory whose informers request the encoding in `TEST_ENCODING`, or JSON.
pub(crate) fn factory_builder(client: Client) -> FactoryBuilder {
    SharedInformerFactory::builder(client).encoding(encoding())
}

pub(crate) fn in_json(server: &Server) -> Builder<Pod> {
    builder(server).encoding(Encoding::Json)
}

/// Returns the builder of an informer that uses plain instead of streaming lists.
pub(crate) fn listing(server: &Server) -> Builder<Pod> {
    builder(server).initial_list(InitialList::List)
}

/// Returns the builder of an informer of pods that uses streaming lists.
pub(crate) fn streaming(server: &Server) -> Builder<Pod> {
    builder(server).initial_list(InitialList::Streaming)
}

/// A running informer of pods, its task, and the sender that stops the task.
pub(crate) struct Running {
    pub(crate) pods: SharedInformer<Pod>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test owns the task and waits for it"
)]
pub(crate) fn run(builder: Builder<Pod>) -> Running {
    let (pods, controller) = builder.build();
    let (stop, stopped) = oneshot::channel();
    // Dropping the sender also stops the informer.
    let running = controller.run(async { drop(stopped.await) });
    let task = tokio::spawn(async {
        running.await.unwrap();
    });
    Running { pods, stop, task }
}

impl Running {
    /// Waits until the cache and the handlers have received all changes of the server.
    pub(crate) async fn caught_up(&self, server: &Server) {
        self.pods.wait_for_sync().deadline(LONG).await.unwrap();
        self.pods
            .wait_for_revision(server.revision(), LONG)
            .await
            .unwrap();
        timeout(LONG, self.pods.handlers_idle())
            .await
            .expect("the handlers are idle in time");
    }

    /// Aborts the informer's task, so that it neither saves its cache nor delivers the remaining events.
    pub(crate) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.is_err_and(|error| error.is_cancelled()));
    }

    pub(crate) async fn stop(self) -> SharedInformer<Pod> {
        let _ = self.stop.send(());
        self.task.await.unwrap();
        self.pods
    }
}

/// Recorded lines of text. Also a handler of pods that records each event in one line.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Vec<String>>>);

impl Trace {
    pub(crate) fn take(&self) -> String {
        self.0
            .lock()
            .drain(..)
            .flat_map(|line| [line, "\n".to_owned()])
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn note(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    /// Registers this trace as a handler of the informer.
    pub(crate) fn listen(&self, pods: &SharedInformer<Pod>) -> Registration<Pod> {
        pods.handler(self.clone()).register().unwrap()
    }
}

impl EventHandler<Pod> for Trace {
    async fn handle(&mut self, event: Event<Pod>) {
        self.note(show(&event));
    }
}

pub(crate) fn show(event: &Event<Pod>) -> String {
    match event {
        Event::Added {
            object,
            in_initial_list,
        } => {
            let initial = if *in_initial_list { " (initial)" } else { "" };
            format!("add {object:?}{initial}")
        }
        Event::Updated { old, new, cause } => {
            let cause = match cause {
                Cause::Watch => "",
                Cause::Relist => " (relist)",
                Cause::Resync => " (resync)",
            };
            format!("update {old:?} → {}{cause}", new.revision())
        }
        Event::Deleted(Deleted::Known(object)) => format!("delete {object:?}"),
        Event::Deleted(Deleted::FinalStateUnknown { name, last_known }) => match last_known {
            Some(object) => format!("delete {object:?} (final state unknown)"),
            None => format!("delete {name} (never known)"),
        },
        Event::Synced => "synced".to_owned(),
    }
}

/// Returns the list and watch requests that the server received, one per line. A line contains the
/// parameters `resourceVersion` and `limit`, and the response status.
pub(crate) fn requests(server: &Server) -> String {
    let log = server.requests();
    let wanted = |request: &&LoggedRequest| matches!(request.verb, Verb::List | Verb::Watch);
    let lines = log.iter().filter(wanted).map(|request| {
        let options = &request.options;
        let verb = format!("{:?}", request.verb).to_lowercase();
        let revision = options.resource_version.as_deref().unwrap_or("-");
        let mut line = format!("{verb} {revision}");
        if let Some(limit) = options.limit {
            line = format!("{line} limit={limit}");
        }
        if options.continue_token.is_some() {
            line += " continue";
        }
        let status = request
            .status
            .map_or("refused".to_owned(), |status| status.to_string());
        format!("{line}: {status}\n")
    });
    lines.collect()
}
