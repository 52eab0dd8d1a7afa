//! Tests that the server works with the watcher, the reflector and the controller of kube-rs.

mod controller;
mod derived;
mod operator;
mod reflector;
mod watcher;

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Api, Client, Resource, ResourceExt};
use kube_informer_apiserver::{LoggedRequest, Server};
use kube_runtime::watcher::{Config, Error, Event};
use serde::de::DeserializeOwned;

/// Virtual time without events after which a test expects no more events.
///
/// Longer than kube-rs's first backoff, which is at most 1.6 s with jitter.
const SILENCE: Duration = Duration::from_secs(2);

/// Returns two watcher configurations: one with a list, and one with a streaming list.
fn both_strategies() -> [Config; 2] {
    [Config::default(), Config::default().streaming_lists()]
}

fn client(server: &Server) -> Client {
    Client::new(server.clone(), "default")
}

fn all_pods(server: &Server) -> Api<Pod> {
    Api::all(client(server))
}

/// A running kube-rs watcher whose events are returned as lines of text.
struct WatcherTrace<K> {
    events: Pin<Box<dyn Stream<Item = Result<Event<K>, Error>> + Send>>,
}

impl<K> WatcherTrace<K>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    fn by(api: Api<K>, config: Config) -> WatcherTrace<K> {
        WatcherTrace {
            events: Box::pin(kube_runtime::watcher(api, config)),
        }
    }

    /// Returns one line for each event and error, until none arrives for [`SILENCE`].
    async fn trace(&mut self) -> String {
        let mut trace = String::new();
        while let Ok(event) = tokio::time::timeout(SILENCE, self.events.next()).await {
            trace.push_str(&line(&event.expect("a watcher does not end")));
            trace.push('\n');
        }
        trace
    }

    /// Asserts that the watcher returns no event and no error within the duration `long`.
    async fn expect_silence(&mut self, long: Duration) {
        let event = tokio::time::timeout(long, self.events.next()).await;
        assert!(event.is_err(), "{}", line(&event.unwrap().unwrap()));
    }

    /// Returns the next event or error as text; panics if none arrives within [`SILENCE`].
    async fn next(&mut self) -> String {
        let event = tokio::time::timeout(SILENCE, self.events.next()).await;
        line(&event.expect("no silence").expect("a watcher does not end"))
    }
}

fn line<K: ResourceExt>(event: &Result<Event<K>, Error>) -> String {
    let object = |what: &str, object: &K| {
        let revision = object.resource_version().unwrap_or_default();
        format!("{what} {} {revision}", object.name_any())
    };
    match event {
        Ok(Event::Init) => "init".into(),
        Ok(Event::InitApply(it)) => object("initial", it),
        Ok(Event::InitDone) => "done".into(),
        Ok(Event::Apply(it)) => object("apply", it),
        Ok(Event::Delete(it)) => object("delete", it),
        Err(Error::InitialListFailed(error)) => format!("list failed: {}", of_api(error)),
        Err(Error::WatchStartFailed(error)) => format!("watch refused: {}", of_api(error)),
        Err(Error::WatchError(status)) => {
            format!(
                "watch error: {} {}: {}",
                status.code, status.reason, status.message
            )
        }
        Err(Error::WatchFailed(_)) => "watch broken".into(),
        Err(Error::NoResourceVersion) => "no revision".into(),
    }
}

fn of_api(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => {
            format!("{} {}: {}", status.code, status.reason, status.message)
        }
        other => other.to_string(),
    }
}

/// Returns the logged requests for pods, one per line, and clears the log.
fn logged(server: &Server) -> String {
    let log = server.requests();
    log.clear();
    let pods = log.filter(|request| request.resource == "pods");
    pods.iter().map(logged_line).collect()
}

fn logged_line(request: &LoggedRequest) -> String {
    let options = &request.options;
    let limit = options.limit.map(|limit| format!(" limit {limit}"));
    let continued = options.continue_token.as_ref().map(|_| " continued".into());
    let revision = options.resource_version.as_ref();
    let from = revision.map(|revision| format!(" from {revision}"));
    let streamed = options.send_initial_events == Some(true);
    let streamed = streamed.then(|| " with initial events".into());
    let parts: Vec<String> = [limit, continued, from, streamed]
        .into_iter()
        .flatten()
        .collect();
    format!("{}{}\n", request.verb, parts.concat())
}
