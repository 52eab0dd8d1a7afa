//! Runs one informer with one handler while the server is killed and restarted repeatedly.
//!
//! Guarantees: [`Informed::agrees`] returns an error in each of these cases:
//! - the handler received the events of an object in an invalid order, such as an update before the addition;
//! - the old state in an update is not the state that the handler received last;
//! - the cache or the delivered states differ from the server's objects after a time limit.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::{Client, ResourceExt as _};
use kube_informer::{
    Event, EventHandler, Object, SharedInformer,
    reflector::BackoffConfig,
    transport::{Encoding, client::ListWatch},
};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use crate::object::Seen;

/// Index in [`KINDS`](crate::object::KINDS) of the kind that the informer lists and watches.
pub(crate) const KIND: usize = 0;

/// Maximum time that [`Informed::agrees`] waits until the cache and the handler agree with the server.
const HEALED: Duration = Duration::from_secs(20);

/// The number stored in each object, and the object's revision, by object name.
type States = BTreeMap<String, (u64, u64)>;

/// A running informer of config maps, and the events that its handler has received.
pub(crate) struct Informed {
    informer: SharedInformer<ConfigMap>,
    heard: Arc<Mutex<Heard>>,
    stop: oneshot::Sender<()>,
    tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Heard {
    states: States,
    events: usize,
    /// The first event that contradicts earlier events.
    wrong: Option<String>,
}

/// The informer's handler, which applies each event to the shared [`Heard`] value.
struct Listening(Arc<Mutex<Heard>>);

impl Informed {
    /// Starts an informer that requests objects with `client`, in the encoding `encoding`.
    ///
    /// # Errors
    /// Returns an error if the handler can't be registered.
    pub(crate) fn start(client: Client, encoding: Encoding) -> Result<Self> {
        let source = ListWatch::<ConfigMap>::new(client);
        let source = source.namespace("default").encoding(encoding);
        // A restart of the server takes about as long.
        let backoff = BackoffConfig {
            initial: Duration::from_millis(5),
            cap: Duration::from_millis(50),
            ..BackoffConfig::default()
        };
        let (informer, controller) = SharedInformer::builder(source).backoff(backoff).build();
        let heard = Arc::default();
        informer
            .handler(Listening(Arc::clone(&heard)))
            .register()
            .context("the informer has stopped")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let ended = controller.run(async { drop(stopped.await) }).await;
            ended.expect("the informer does not fail");
        });
        Ok(Self {
            informer,
            heard,
            stop,
            tasks,
        })
    }

    /// Waits until the cache and the handler agree with `server`.
    ///
    /// # Errors
    /// Returns an error if the cache or the handler still differs after the time [`HEALED`], or if an event
    /// contradicted earlier events. Also returns an error if a cached object can't be read.
    pub(crate) async fn agrees(&self, server: &States) -> Result<()> {
        let begun = Instant::now();
        loop {
            let cached = self.cached()?;
            let heard = {
                let heard = self.heard.lock();
                if let Some(wrong) = &heard.wrong {
                    bail!("the informer's handler received an inconsistent event: {wrong}");
                }
                heard.states.clone()
            };
            if cached == *server && heard == *server {
                return Ok(());
            }
            if begun.elapsed() > HEALED {
                bail!("the server has {server:?}, the cache {cached:?}, the handler {heard:?}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn cached(&self) -> Result<States> {
        let snapshot = self.informer.indexer().snapshot();
        snapshot.iter().map(state).collect()
    }

    /// Stops the informer, and returns the number of events that its handler received.
    pub(crate) async fn stop(mut self) -> usize {
        drop(self.stop);
        while self.tasks.join_next().await.is_some() {}
        let heard = self.heard.lock();
        heard.events
    }
}

/// Returns an object's name, stored number and revision.
///
/// # Errors
/// Returns an error if this program did not write the object.
fn state(object: &Object<ConfigMap>) -> Result<(String, (u64, u64))> {
    let map = object.get()?;
    let value = serde_json::to_value(&*map)?;
    let seen = Seen::read(KIND, &value)?;
    Ok((map.name_any(), (seen.value, seen.revision)))
}

impl EventHandler<ConfigMap> for Listening {
    async fn handle(&mut self, event: Event<ConfigMap>) {
        let mut heard = self.0.lock();
        heard.events += 1;
        if let Err(wrong) = heard.take(&event) {
            heard.wrong.get_or_insert(format!("{wrong:#}"));
        }
    }
}

impl Heard {
    fn take(&mut self, event: &Event<ConfigMap>) -> Result<()> {
        match event {
            Event::Added { object, .. } => {
                let (name, new) = state(object)?;
                if let Some(known) = self.states.insert(name.clone(), new) {
                    bail!("{name} was added as {new:?}, but was already delivered as {known:?}");
                }
            }
            Event::Updated { old, new, .. } => {
                let ((name, old), (_, new)) = (state(old)?, state(new)?);
                let known = self.states.insert(name.clone(), new);
                if known != Some(old) || new.1 < old.1 {
                    bail!(
                        "{name} changed from {old:?} to {new:?}, but was last delivered as {known:?}"
                    );
                }
            }
            Event::Deleted(deleted) => {
                let name = deleted.object_name().name().to_owned();
                if self.states.remove(&name).is_none() {
                    bail!("{name} was deleted, but had not been added");
                }
            }
            Event::Synced => {}
        }
        Ok(())
    }
}
