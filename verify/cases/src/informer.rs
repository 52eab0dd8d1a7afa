//! Runs the informers of a case: starts them, reads what handlers and readers see, and stops them.
//!
//! Guarantees: each informer has its own runtime and its own connections. [`Informer::stop`] fails if a task
//! of the informer is left.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use kube_client::Config;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_informer::{
    Event, EventHandler, InformerOptions, InitialList, Object, SharedInformer,
    SharedInformerFactory,
    factory::FactoryBuilder,
    indexer::Cause,
    reflector::{BackoffConfig, TimeoutConfig},
    shared_informer::ListenerBuffer,
    status,
    transport::{Class, Error},
};
use serde_json::{Map, Value, json};
use tokio::{
    runtime::{self, Runtime},
    sync::mpsc,
    time::{Instant, sleep, timeout},
};

use crate::{
    answer::{Answer, End, Line},
    clients::Clients,
    informer_command::{Action, Activity, Options, Seen},
    proxy::Proxy,
    target::Connection,
};

/// Time limit of each wait: for the sync, the next event, a status, or the end of all tasks.
const WAIT_MAX: Duration = Duration::from_secs(6);

/// At the end of a case: maximum wait, per handler, for an event that no command has read.
///
/// Such an event is an error.
const MORE: Duration = Duration::from_millis(50);

/// Pause between two counts of the tasks that are left.
const PAUSE: Duration = Duration::from_millis(5);

/// First and maximum pause before a retry. Both are much shorter than the defaults, so that cases run fast.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(40));

/// Maximum time that a watch waits for the cache to accept a change. The informer then closes the watch.
const FULL_STORE: Duration = Duration::from_millis(200);

/// Maximum number of received events of a handler that the case has not read.
const UNREAD_MAX: usize = 1000;

/// Members of an object that a case's output shows, in addition to some members of `metadata`.
const SHOWN: [&str; 3] = ["data", "reason", "status"];

/// Members of an object's `metadata` that a case's output shows.
const SHOWN_METADATA: [&str; 5] = ["name", "labels", "resourceVersion", "uid", "finalizers"];

/// An informer of a case. Dropping it aborts its tasks.
pub(crate) struct Informer {
    handle: SharedInformer<DynamicObject>,
    /// Both are `None` after the stop.
    running: Option<(SharedInformerFactory, Runtime)>,
    proxy: Proxy,
    clients: Arc<Clients>,
    handlers: BTreeMap<String, mpsc::Receiver<Event<DynamicObject>>>,
}

/// An event handler that sends the events to the case.
struct Recorder(mpsc::Sender<Event<DynamicObject>>);

impl EventHandler<DynamicObject> for Recorder {
    async fn handle(&mut self, event: Event<DynamicObject>) {
        // The receiver is dropped at the end of the case.
        let _ = self.0.send(event).await;
    }
}

impl Informer {
    /// Starts an informer with its own connection to the server of `connection`.
    ///
    /// # Errors
    /// Returns an error if an option is unknown.
    pub(crate) async fn start(options: &Options, connection: &Connection) -> Result<Self> {
        let mut config = connection.config.clone();
        let server = address(&config)?;
        let proxy = Proxy::start(server).await?;
        let url = config.cluster_url.to_string();
        config.cluster_url = url
            .replace(&server.to_string(), &proxy.address().to_string())
            .parse()?;
        let clients = Arc::new(Clients::new(config, connection.token("admin")?));
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        for (name, value) in &options.settings {
            match (&**name, &**value) {
                ("network", "cut") => proxy.cut(),
                ("user", user) => clients.set_token(connection.token(user)?),
                _ => {}
            }
        }
        let (factory, handle) = {
            let _inside = runtime.enter();
            build(options, Arc::clone(&clients))?
        };
        Ok(Self {
            handle,
            running: Some((factory, runtime)),
            proxy,
            clients,
            handlers: BTreeMap::new(),
        })
    }

    /// Runs one command on the informer.
    ///
    /// `last` is the last response body or event object that the case has read, or null if the body was not
    /// JSON.
    ///
    /// # Errors
    /// Returns an error if the command is invalid, for example because it names an unknown handler. Also
    /// returns an error if a task still runs after the informer was stopped.
    pub(crate) async fn act(
        &mut self,
        action: &Action,
        connection: &Connection,
        last: &Value,
    ) -> Result<Answer> {
        Ok(match action {
            Action::Start(_) => bail!("the informer exists"),
            Action::Handler { handler, is_slow } => self.register(handler, *is_slow),
            Action::Synced => {
                let synced = self.handle.wait_for_sync().deadline(WAIT_MAX);
                synced.await.map_or_else(
                    |_| Answer::Impossible("not synced in time".to_owned()),
                    |()| Answer::Nothing,
                )
            }
            Action::Seen { handler, wanted } => self.seen(handler, *wanted).await?,
            Action::Store => self.store()?,
            Action::Status(activity) => self.status(activity).await,
            Action::Watching => match self.status(&Activity::Watching).await {
                Answer::Lines { .. } => Answer::Nothing,
                late => late,
            },
            Action::Written => {
                let revision = last["metadata"]["resourceVersion"].as_str();
                let revision = revision.context("the last response has no revision")?;
                let waited = self.handle.wait_for_revision(revision, WAIT_MAX);
                waited.await.map_or_else(
                    |_| Answer::Impossible("not in the cache in time".to_owned()),
                    |()| Answer::Nothing,
                )
            }
            Action::Cut => {
                self.proxy.cut();
                Answer::Nothing
            }
            Action::Restore => {
                self.proxy.restore();
                Answer::Nothing
            }
            Action::User(user) => {
                self.clients.set_token(connection.token(user)?);
                Answer::Nothing
            }
            Action::Stop => {
                self.stop().await?;
                Answer::Nothing
            }
        })
    }

    /// Checks that the case has read all events of all handlers.
    ///
    /// # Errors
    /// Returns an error that contains an event that the case has not read.
    pub(crate) async fn no_more_events(&mut self) -> Result<()> {
        for (handler, events) in &mut self.handlers {
            if let Ok(Some(event)) = timeout(MORE, events.recv()).await {
                let line = line(&event)?;
                bail!("the case does not read this event of the handler {handler}: {line:?}");
            }
        }
        Ok(())
    }

    /// Drops the events that the handlers received, and stops the informer.
    ///
    /// # Errors
    /// Returns an error if the informer does not stop, or if some of its tasks still run after the stop.
    pub(crate) async fn end(&mut self) -> Result<()> {
        self.handlers.clear();
        self.stop().await
    }

    async fn stop(&mut self) -> Result<()> {
        let Some((factory, runtime)) = self.running.take() else {
            return Ok(());
        };
        let stopped = timeout(WAIT_MAX, factory.shutdown()).await;
        drop(factory);
        self.clients.close();
        let until = Instant::now() + WAIT_MAX;
        let tasks = || runtime.metrics().num_alive_tasks();
        while tasks() > 0 && Instant::now() < until {
            sleep(PAUSE).await;
        }
        let left = tasks();
        runtime.shutdown_background();
        stopped.context("the informer does not stop")?;
        ensure!(left == 0, "{left} tasks are left after the stop");
        Ok(())
    }

    fn register(&mut self, handler: &str, is_slow: bool) -> Answer {
        let (capacity, buffer) = if is_slow {
            (1, ListenerBuffer::Block(std::num::NonZeroUsize::MIN))
        } else {
            (UNREAD_MAX, ListenerBuffer::default())
        };
        let (events, received) = mpsc::channel(capacity);
        let registered = self.handle.handler(Recorder(events)).buffer(buffer);
        match registered.register() {
            Ok(_) => {
                self.handlers.insert(handler.to_owned(), received);
                Answer::Nothing
            }
            Err(stopped) => Answer::line(stopped.to_string(), Vec::new()),
        }
    }

    async fn seen(&mut self, handler: &str, wanted: Seen) -> Result<Answer> {
        let events = self.handlers.get_mut(handler);
        let events = events.with_context(|| format!("there is no handler {handler}"))?;
        let mut lines = Vec::new();
        let end = loop {
            if wanted == Seen::Count(lines.len()) {
                break End::Received;
            }
            match timeout(WAIT_MAX, events.recv()).await {
                Err(_) => break End::Late,
                Ok(None) => break End::Ended,
                Ok(Some(event)) => lines.push(line(&event)?),
            }
        };
        Ok(Answer::Lines { lines, end })
    }

    /// Returns the objects in the cache, sorted by namespace and name.
    fn store(&self) -> Result<Answer> {
        let mut objects = self.handle.indexer().list();
        objects.sort_by_key(|object| object.object_name().as_str().to_owned());
        let text = match objects.len() {
            1 => "1 object".to_owned(),
            count => format!("{count} objects"),
        };
        let objects = objects.iter().map(short).collect::<Result<_>>()?;
        Ok(Answer::line(text, objects))
    }

    /// Waits until the status has the activity `wanted`.
    async fn status(&self, wanted: &Activity) -> Answer {
        let mut reader = self.handle.status();
        let found = reader.wait_for(|status| is(status, wanted));
        if let Ok(Some(status)) = timeout(WAIT_MAX, found).await {
            return Answer::line(described(&status), Vec::new());
        }
        let error = last_error(&self.handle.status().get());
        Answer::Impossible(format!("not in time{error}"))
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        // A runtime must not be dropped in asynchronous code, because the drop blocks.
        if let Some((_, runtime)) = self.running.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the address of the server of `config`.
fn address(config: &Config) -> Result<SocketAddr> {
    let authority = config.cluster_url.authority();
    let authority = authority.context("the server has no address")?;
    authority.as_str().parse().context("not an address")
}

/// Creates a factory and its informer, and starts the informer. Must be called inside the runtime that runs
/// the informer.
fn build(
    options: &Options,
    clients: Arc<Clients>,
) -> Result<(SharedInformerFactory, SharedInformer<DynamicObject>)> {
    let (initial, cap) = BACKOFF;
    let mut builder = SharedInformerFactory::builder(clients)
        .backoff(BackoffConfig {
            initial,
            cap,
            ..BackoffConfig::default()
        })
        .timeouts(TimeoutConfig {
            full_store: FULL_STORE,
            ..TimeoutConfig::default()
        });
    for (name, value) in &options.settings {
        builder = set(builder, name, value)?;
    }
    let (kind, namespace) = kind(options)?;
    let mut informer = InformerOptions::new().namespaces(namespace);
    if let Some(labels) = &options.labels {
        informer = informer.labels(labels.parse()?);
    }
    if let Some(fields) = &options.fields {
        informer = informer.fields(fields);
    }
    let factory = builder.build();
    let informer = factory.for_resource_with(&kind, informer)?;
    factory.start();
    Ok((factory, informer))
}

fn set(builder: FactoryBuilder, name: &str, value: &str) -> Result<FactoryBuilder> {
    Ok(match (name, value) {
        ("list", "pages") => builder.initial_list(InitialList::Pages),
        ("list", "list") => builder.initial_list(InitialList::List),
        ("list", "streaming") => builder.initial_list(InitialList::Streaming),
        ("page-size", size) => builder.page_size(size.parse().context("not a page size")?),
        ("queue", changes) => builder.queue_capacity(changes.parse().context("not a number")?),
        ("network", "cut") | ("user", _) => builder,
        ("definitions", "follow") => builder.follow_definitions(),
        _ => bail!("{name}: {value} is no option of an informer"),
    })
}

/// Returns the kind and the namespace of the collection that `options` names.
fn kind(options: &Options) -> Result<(ApiResource, Option<&str>)> {
    let parts: Vec<_> = options.path.trim_start_matches('/').split('/').collect();
    let (group, version, rest) = match &*parts {
        ["api", version, rest @ ..] => ("", version, rest),
        ["apis", group, version, rest @ ..] => (*group, version, rest),
        _ => bail!("{:?} is no path of a collection", options.path),
    };
    let (namespace, plural) = match rest {
        [plural] => (None, plural),
        ["namespaces", namespace, plural] => (Some(*namespace), plural),
        _ => bail!("{:?} is no path of a collection", options.path),
    };
    let kind = GroupVersionKind::gvk(group, version, &options.kind);
    Ok((ApiResource::from_gvk_with_plural(&kind, plural), namespace))
}

fn is(status: &status::Status, wanted: &Activity) -> bool {
    let class = status.last_error().map(|error| error.class().as_str());
    match (wanted, status.activity()) {
        (Activity::Watching, status::Activity::Watching)
        | (Activity::NotServed, status::Activity::NotServed)
        | (Activity::Full, status::Activity::StoreFull)
        | (Activity::Stopped, status::Activity::Stopped) => true,
        (Activity::Failing(wanted), status::Activity::BackingOff { .. }) => class == Some(wanted),
        _ => false,
    }
}

/// Returns the part of the status that does not depend on time.
fn described(status: &status::Status) -> String {
    let synced = if status.has_synced() {
        "synced"
    } else {
        "not synced"
    };
    let activity = match status.activity() {
        status::Activity::Watching => "watching",
        status::Activity::BackingOff { .. } => "failing",
        status::Activity::NotServed => "not served",
        status::Activity::StoreFull => "full",
        status::Activity::Stopped => "stopped",
        _ => "starting",
    };
    format!("{synced}, {activity}{}", last_error(status))
}

/// Returns the informer's last error with a prefix, or an empty text if there is no error.
fn last_error(status: &status::Status) -> String {
    let error = status.last_error().map(|error| error_text(error));
    error.map_or_else(String::new, |error| format!("; last error: {error}"))
}

/// Returns the class and the message of an error.
///
/// Omits the message of a connection error or a timeout, because this message depends on the transport.
fn error_text(error: &Error) -> String {
    let class = error.class();
    match class {
        Class::Connection | Class::ConnectionRefused | Class::Timeout => class.as_str().to_owned(),
        _ => format!("{}: {error}", class.as_str()),
    }
}

/// Returns an event as text, with the old and the new state of its object.
fn line(event: &Event<DynamicObject>) -> Result<Line> {
    let (text, objects) = match event {
        Event::Added {
            object,
            in_initial_list: true,
        } => ("ADDED in the initial list", vec![object]),
        Event::Added { object, .. } => ("ADDED", vec![object]),
        Event::Updated { old, new, cause } => {
            let text = match cause {
                Cause::Watch => "UPDATED",
                Cause::Relist => "UPDATED by a relist",
                Cause::Resync => "UPDATED by a resync",
            };
            (text, vec![old, new])
        }
        Event::Deleted(deleted) => {
            let text = if deleted.is_final_state_unknown() {
                "DELETED, the final state is unknown"
            } else {
                "DELETED"
            };
            (text, deleted.object().into_iter().collect())
        }
        Event::Synced => ("SYNCED", Vec::new()),
    };
    let objects = objects.into_iter().map(short).collect::<Result<_>>()?;
    let text = text.to_owned();
    Ok(Line { text, objects })
}

/// Returns an object with only the members that a case's output shows.
fn short(object: &Object<DynamicObject>) -> Result<Value> {
    let object = serde_json::to_value(&*object.get()?)?;
    let part = |of: &Value, names: &[&str]| -> Map<String, Value> {
        let parts = names
            .iter()
            .map(|name| ((*name).to_owned(), of[*name].clone()));
        parts.filter(|(_, part)| !part.is_null()).collect()
    };
    let mut shown = part(&object, &SHOWN);
    let mut metadata = part(&object["metadata"], &SHOWN_METADATA);
    if !object["metadata"]["deletionTimestamp"].is_null() {
        metadata.insert("deletionTimestamp".to_owned(), json!("<time>"));
    }
    shown.insert("metadata".to_owned(), metadata.into());
    Ok(shown.into())
}
