//! One informer under test, its handler, and the comparison of both with the server.
//!
//! - [`Subject::wrong`] describes the first event that must not follow the events before it, such as an
//!   update of an object that was not added.
//! - [`Subject::difference`] compares the uids and revisions of the objects of the cache and of the handler
//!   with a list of the server. For the cache, it also compares the number that each write stores in its object.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube_client::Client;
use kube_core::{PartialObjectMeta, Resource};
use kube_informer::{
    Event, EventHandler, InitialList, Object, SharedInformer, client::ListWatch, pruning::Pruned,
    shared_informer::Builder, status::Activity, transport::Encoding,
};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::oneshot,
    task::{AbortHandle, JoinSet},
};

use crate::{
    object::{Kind, Selection, States, Truth, state_of},
    setback::Setbacks,
    wire::Wire,
};

/// The form of the objects in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Typed,
    Packed,
    Pruned,
    Metadata,
}

impl Form {
    pub(crate) const ALL: [Self; 4] = [Self::Typed, Self::Packed, Self::Pruned, Self::Metadata];
}

/// The options of an informer.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) form: Form,
    pub(crate) selection: Selection,
    pub(crate) encoding: Encoding,
    pub(crate) list: InitialList,
}

pub(crate) struct Subject {
    pub(crate) options: Options,
    /// The requests of each source.
    pub(crate) wires: Vec<Arc<Wire>>,
    cache: Box<dyn Cache>,
    heard: Arc<Mutex<Heard>>,
    stop: Option<oneshot::Sender<()>>,
    task: AbortHandle,
}

/// Access to the cache of an informer of any type.
trait Cache: Send + Sync {
    /// Returns the uid and the revision of each object.
    fn versions(&self) -> Versions;
    /// Returns the state in the body of each object.
    fn states(&self) -> Result<States>;
    fn activity(&self) -> Activity;
    fn describe(&self) -> String;
}

/// The uid and the revision of each object, by `NAMESPACE/NAME`.
type Versions = BTreeMap<String, Version>;

/// Uid and revision.
type Version = (String, u64);

impl Subject {
    /// Starts an informer, whose task is spawned into `tasks`. `client` sends the requests of the informer.
    ///
    /// # Errors
    /// Returns an error if the informer can't be built.
    pub(crate) fn start(
        options: Options,
        client: &Client,
        setbacks: &Setbacks,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        match options.kind {
            Kind::Pod => Self::of::<Pod>(options, client, setbacks, tasks),
            Kind::ConfigMap => Self::of::<ConfigMap>(options, client, setbacks, tasks),
            Kind::Secret => Self::of::<Secret>(options, client, setbacks, tasks),
        }
    }

    fn of<K>(
        options: Options,
        client: &Client,
        setbacks: &Setbacks,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self>
    where
        K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static,
    {
        let sources = Sources {
            options,
            client,
            setbacks,
            tasks,
        };
        match sources.options.form {
            Form::Typed => sources.run::<K>(Ok),
            Form::Packed => sources.run::<K>(|builder| Ok(builder.packed())),
            Form::Pruned => sources.run::<Pruned<K>>(|builder| {
                let fields = ["metadata.managedFields", "spec", "data"];
                let fields: Result<Vec<_>, _> = fields.iter().map(|field| field.parse()).collect();
                Ok(builder.prune(fields?)?)
            }),
            Form::Metadata => sources.run::<PartialObjectMeta<K>>(Ok),
        }
    }

    /// Returns the first illegal event.
    pub(crate) fn wrong(&self) -> Option<String> {
        let wrong = self.heard.lock().wrong.clone()?;
        Some(format!("{}: {wrong}", self.options.name))
    }

    /// Returns the number of events of the handler.
    pub(crate) fn events(&self) -> u64 {
        self.heard.lock().events
    }

    /// Returns whether all sources have an open watch.
    pub(crate) fn is_watching(&self) -> bool {
        self.cache.activity() == Activity::Watching
    }

    pub(crate) fn differs(&self, truth: &Truth) -> bool {
        self.difference(truth).is_some()
    }

    /// Compares the informer's cache, and the objects that its handler has received, with the server.
    ///
    /// Returns a description of the first difference, or `None` if there is no difference.
    pub(crate) fn difference(&self, truth: &Truth) -> Option<String> {
        let server = &truth.selected(self.options.kind, &self.options.selection);
        let version = |(key, state): (&String, &crate::object::State)| {
            let revision = state.revision.parse().unwrap_or_default();
            (key.clone(), (state.uid.clone(), revision))
        };
        let listed: Versions = server.iter().map(version).collect();
        let heard = self.heard.lock().versions.clone();
        let found = differing("the cache", &self.cache.versions(), &listed)
            .or_else(|| differing("the handler", &heard, &listed))
            .or_else(|| match self.cache.states() {
                Ok(states) => differing("the body", &states, server),
                Err(error) => Some(format!("{error:#}")),
            })?;
        let name = &self.options.name;
        Some(format!("{name}: {found}; {}", self.cache.describe()))
    }

    pub(crate) fn describe(&self) -> String {
        format!("{}: {}", self.options.name, self.cache.describe())
    }

    /// Requests the end of the informer.
    pub(crate) fn stop(&mut self) {
        self.stop = None;
    }

    /// Returns whether the task of the informer has ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.task.is_finished()
    }
}

/// Returns how `ours` differs from the server's list.
fn differing<S: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &BTreeMap<String, S>,
    server: &BTreeMap<String, S>,
) -> Option<String> {
    if ours == server {
        return None;
    }
    let surplus = ours.keys().filter(|key| !server.contains_key(*key));
    let surplus: Vec<_> = surplus.take(3).collect();
    let other = server
        .iter()
        .filter(|(key, state)| ours.get(*key) != Some(*state));
    let other = other.map(|(key, state)| format!("{key} has {:?}, not {state:?}", ours.get(key)));
    let other: Vec<_> = other.take(3).collect();
    let (has, expected) = (ours.len(), server.len());
    Some(format!(
        "{what} has {has} objects, the server {expected}; not on the server: {surplus:?}; {other:?}"
    ))
}

struct Sources<'a> {
    options: Options,
    client: &'a Client,
    setbacks: &'a Setbacks,
    tasks: &'a mut JoinSet<()>,
}

impl Sources<'_> {
    fn run<K>(self, form: impl FnOnce(Builder<K>) -> Result<Builder<K>>) -> Result<Subject>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
    {
        let options = self.options;
        let namespaces = match &options.selection {
            Selection::Namespaces(namespaces) => {
                namespaces.iter().map(|each| Some(*each)).collect()
            }
            _ => vec![None],
        };
        let mut wires = Vec::new();
        let mut builder: Option<Builder<K>> = None;
        for (index, namespace) in namespaces.into_iter().enumerate() {
            let wire = Wire::new(format!("{}.{index}", options.name));
            let mut source = ListWatch::<K>::new(wire.client(self.client));
            if let Some(namespace) = namespace {
                source = source.namespace(namespace);
            }
            match &options.selection {
                Selection::Node(node) => {
                    source = source.fields(format!("spec.nodeName={node}"));
                }
                Selection::Even => source = source.labels(&"parity=even".parse()?),
                Selection::All | Selection::Namespaces(_) => {}
            }
            let source = source.encoding(options.encoding);
            wires.push(wire);
            builder = Some(match builder {
                None => SharedInformer::builder(source),
                Some(builder) => builder.source(source),
            });
        }
        let builder = builder.context("an informer has a source")?;
        let builder = form(builder.name(&*options.name).initial_list(options.list))?;
        let (informer, controller) = builder.build();
        let heard = Arc::new(Mutex::new(Heard {
            setbacks: self.setbacks.clone(),
            versions: BTreeMap::new(),
            events: 0,
            wrong: None,
        }));
        let registered = informer.handler(Listening(Arc::clone(&heard))).register();
        registered.context("the informer has stopped")?;
        let (stop, stopped) = oneshot::channel::<()>();
        let failed = Arc::clone(&heard);
        let task = self.tasks.spawn(async move {
            let ended = controller.run(async { drop(stopped.await) }).await;
            if let Err(error) = ended {
                failed
                    .lock()
                    .wrong
                    .get_or_insert(format!("the informer failed: {error}"));
            }
        });
        Ok(Subject {
            options,
            wires,
            cache: Box::new(informer),
            heard,
            stop: Some(stop),
            task,
        })
    }
}

impl<K> Cache for SharedInformer<K>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
{
    fn versions(&self) -> Versions {
        let snapshot = self.indexer().snapshot();
        snapshot.iter().filter_map(version).collect()
    }

    fn states(&self) -> Result<States> {
        let snapshot = self.indexer().snapshot();
        let mut states = States::new();
        for object in snapshot.iter().filter(|object| is_ours(object)) {
            let body = object.get()?;
            let state = state_of(&*body).context("an object has no number")?;
            states.insert(object.object_name().to_string(), state);
        }
        Ok(states)
    }

    fn activity(&self) -> Activity {
        self.status().get().activity()
    }

    fn describe(&self) -> String {
        self.status().get().to_string()
    }
}

/// Returns whether this program wrote the object.
fn is_ours<K>(object: &Object<K>) -> bool {
    object
        .namespace()
        .is_some_and(|namespace| namespace.starts_with("soak-"))
        && object.name().starts_with("slot-")
}

/// Returns the name, the uid and the revision of an object that this program wrote; `None` for other objects.
fn version<K: Resource>(object: &Object<K>) -> Option<(String, Version)> {
    let revision = object.revision().as_u64().unwrap_or_default();
    let version = (object.uid().to_owned(), revision);
    is_ours(object).then(|| (object.object_name().to_string(), version))
}

/// The objects according to the events.
#[derive(Debug)]
struct Heard {
    setbacks: Setbacks,
    versions: Versions,
    events: u64,
    wrong: Option<String>,
}

struct Listening(Arc<Mutex<Heard>>);

impl<K: Resource + Send + Sync + 'static> EventHandler<K> for Listening {
    async fn handle(&mut self, event: Event<K>) {
        self.0.lock().receive(&event);
    }
}

impl Heard {
    fn receive<K: Resource>(&mut self, event: &Event<K>) {
        self.events += 1;
        let wrong = match event {
            Event::Added { object, .. } => {
                version(object).and_then(|(key, new)| self.added(&key, &new))
            }
            Event::Updated { old, new, .. } => {
                let both = version(old).zip(version(new));
                both.and_then(|((_, old), (key, new))| self.updated(&key, &old, &new))
            }
            Event::Deleted(deleted) => {
                let key = deleted.object_name().to_string();
                let ours = key.starts_with("soak-") && key.contains("/slot-");
                let unknown = ours && self.versions.remove(&key).is_none();
                unknown.then(|| format!("{key} was deleted, but had not been added"))
            }
            Event::Synced => None,
        };
        if let Some(wrong) = wrong {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn added(&mut self, key: &str, new: &Version) -> Option<String> {
        let known = self.versions.insert(key.to_owned(), new.clone())?;
        Some(format!(
            "{key} was added as {new:?}, but was already delivered as {known:?}"
        ))
    }

    fn updated(&mut self, key: &str, old: &Version, new: &Version) -> Option<String> {
        let known = self.versions.insert(key.to_owned(), new.clone());
        if known.as_ref() != Some(old) {
            return Some(format!(
                "{key} changed from {old:?} to {new:?}, but was last delivered as {known:?}"
            ));
        }
        let went_back = new.1 < old.1 && !self.setbacks.is_active();
        went_back.then(|| format!("{key} went back from {old:?} to {new:?} without a setback"))
    }
}

#[cfg(test)]
mod tests {
    use kube_core::ObjectMeta;
    use kube_informer::Cause;

    use super::*;

    fn heard() -> Heard {
        Heard {
            setbacks: Setbacks::default(),
            versions: Versions::new(),
            events: 0,
            wrong: None,
        }
    }

    fn pod(name: &str, revision: u64) -> Object<Pod> {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("soak-0".to_owned()),
            uid: Some("uid".to_owned()),
            resource_version: Some(revision.to_string()),
            ..ObjectMeta::default()
        };
        let pod = Pod {
            metadata,
            ..Pod::default()
        };
        Object::new(pod).unwrap()
    }

    fn added(revision: u64) -> Event<Pod> {
        Event::Added {
            object: pod("slot-1", revision),
            in_initial_list: false,
        }
    }

    fn updated(old: u64, new: u64) -> Event<Pod> {
        Event::Updated {
            old: pod("slot-1", old),
            new: pod("slot-1", new),
            cause: Cause::Watch,
        }
    }

    /// Returns the description of the first illegal event.
    fn wrong(mut heard: Heard, events: &[Event<Pod>]) -> String {
        for event in events {
            heard.receive(event);
        }
        heard.wrong.unwrap_or_default()
    }

    #[test]
    fn the_first_illegal_event_is_found() {
        assert_eq!(wrong(heard(), &[added(1), updated(1, 3)]), "");
        let twice = wrong(heard(), &[added(1), added(2)]);
        assert!(twice.contains("already delivered"), "{twice}");
        let other = wrong(heard(), &[added(1), updated(2, 3)]);
        assert!(other.contains("last delivered as"), "{other}");
        let back = wrong(heard(), &[added(2), updated(2, 1)]);
        assert!(back.contains("without a setback"), "{back}");
    }

    #[test]
    fn revisions_may_go_back_during_a_setback() {
        let heard = heard();
        heard.setbacks.set(true);
        assert_eq!(wrong(heard, &[added(2), updated(2, 1)]), "");
    }
}
