//! Defines a simulated run, [`Life`]: its initial settings and its steps.
//!
//! A `Life` is plain data that can be printed, shortened and run again. All random choices during the run are
//! derived from the seed [`Setting::rng`].

use std::{fmt, num::NonZeroUsize, time::Duration};

use kube_informer::{InitialList, ObjectName, shared_informer::ListenerBuffer};

use crate::fault::Fault;

/// The namespaces of the simulated objects.
pub(crate) const NAMESPACES: [&str; 3] = ["a", "b", "c"];

/// Number of object names per namespace, so few that steps often change the same object.
pub(crate) const NAMES: usize = 5;

/// A simulated run of an informer: its initial settings and its steps.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// Seed of the random generator that selects the settings and the steps before the run starts.
    pub(crate) seed: u64,
    pub(crate) setting: Setting,
    /// The steps, each with its index before the run was shortened.
    pub(crate) steps: Vec<(usize, Step)>,
}

/// Initial settings of a simulated informer and its server, and the action that ends the run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Seed of all random choices of the server and the informer.
    pub(crate) rng: u64,
    pub(crate) store: Store,
    /// Number of received objects after which the cache creates its compression dictionary.
    ///
    /// `None` disables compression.
    pub(crate) packed: Option<usize>,
    /// Whether the cache keeps an object as undecoded bytes until the object is read.
    pub(crate) lazy: bool,
    /// Whether the informer requests protobuf instead of JSON.
    pub(crate) protobuf: bool,
    pub(crate) scope: Scope,
    pub(crate) queue: Queue,
    /// Capacity of the queue, in changes.
    pub(crate) capacity: usize,
    /// How the informer requests the initial objects.
    pub(crate) initial_list: InitialList,
    /// Maximum number of objects per page of a list; `None` uses the informer's default.
    pub(crate) page_size: Option<u32>,
    /// Default resync period of the informer, in seconds.
    pub(crate) resync: u64,
    /// Seconds between comparisons of the cache with the server; 0 disables the comparisons.
    pub(crate) consistency: u64,
    /// Capacity of the server's watch cache, in events; `None` disables the watch cache.
    pub(crate) watch_cache: Option<usize>,
    /// The objects that exist on the server before the informer starts.
    pub(crate) objects: Vec<Key>,
    pub(crate) end: End,
}

/// Rust type of the objects in an informer's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// Typed objects: `Pod`.
    Typed,
    /// JSON objects: `DynamicObject`.
    Dynamic,
    /// Only the metadata of objects: `PartialObjectMeta<Pod>`.
    Metadata,
}

/// Selection of the objects that an informer observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All objects in all namespaces.
    Everywhere,
    /// All objects in the namespaces `a` and `b`, with one list and watch per namespace.
    TwoNamespaces,
    /// Objects with the label `app=web` in all namespaces.
    Labelled,
}

/// Type of a queue for changes that are not yet applied to the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// Keeps the received order of changes, and applies at most this number in one batch.
    InOrder(usize),
    /// Queue with one entry per object, as in client-go.
    DeltaFifo,
}

/// Action that ends a simulated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All faults end, and the informer must recover before it is stopped.
    Heal,
    /// The informer is stopped while faults can still be active.
    Stop,
    /// The informer is dropped while faults can still be active.
    Kill,
}

/// Identifies an object by the index of its namespace and the number in its name.
///
/// For the object `b/p3`, `namespace` is 1, the index of `b` in [`NAMESPACES`], and `name` is 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: usize,
    pub(crate) name: usize,
}

/// A step of a simulated run.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Lets virtual time pass.
    Pass(Duration),
    Change(Change),
    Fault(Fault),
    User(Act),
}

/// A change of objects on the server.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Creates or updates an object.
    Write(Written),
    /// Deletes an object if it exists.
    Delete(Key),
    /// Deletes an object, and immediately creates it again.
    Recreate(Written),
    /// Writes several objects at the same virtual time.
    Burst(Vec<Written>),
    /// Deletes the namespace with this index in [`NAMESPACES`], and all objects in the namespace.
    DeleteNamespace(usize),
}

/// The state of an object that a step writes to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: Key,
    /// Value of the label `v`, different for each state that the steps of a run write.
    pub(crate) value: u32,
    /// Whether the object has the label `app=web`.
    pub(crate) web: bool,
}

/// An action of the program that uses the informer.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Registers an event handler with these settings.
    Join(Handler),
    /// Removes a handler other than the first, if there is one.
    ///
    /// The number, modulo the number of removable handlers, is the index of the removed handler among the
    /// removable handlers, in the order of registration.
    Leave(usize),
    AddIndex,
    /// Removes the index that `AddIndex` has added, if it exists.
    RemoveIndex,
    /// Ends the informer, starts a new informer, and registers the same handlers again.
    Restart {
        /// Whether the informer is dropped (`true`) or stopped (`false`).
        kill: bool,
    },
    /// Writes an object, and waits in the background until the cache contains the result.
    WriteAndRead(Written),
    /// Deletes an object, and waits in the background until the cache does not contain its UID.
    DeleteAndRead(Key),
}

/// Settings of an event handler that a user registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    /// Resync period of the handler, in seconds; 0 disables resyncs.
    pub(crate) resync: u64,
    /// Time for which each callback of the handler sleeps, in milliseconds.
    pub(crate) slow: u64,
    /// Number of events from one panic to the next; 0 disables panics.
    pub(crate) panics: u32,
    /// Buffer for the events that wait for delivery to the handler.
    pub(crate) buffer: ListenerBuffer,
    /// Whether the handler receives only objects with the label `app=web`.
    pub(crate) filtered: bool,
}

impl Setting {
    /// Returns whether the informer observes an object in the namespace `namespace`.
    ///
    /// `web` is whether the object has the label `app=web`.
    pub(crate) fn wants(&self, namespace: &str, web: bool) -> bool {
        match self.scope {
            Scope::Everywhere => true,
            Scope::TwoNamespaces => NAMESPACES[..2].contains(&namespace),
            Scope::Labelled => web,
        }
    }

    /// Returns whether the informer's index by the label `app` decodes each new state of an object.
    ///
    /// Otherwise, the index reads the label without decoding the object.
    pub(crate) fn reads_each_state(&self) -> bool {
        self.rng.is_multiple_of(2)
    }

    /// Returns the number of the informer's sources, each with its own list and watch.
    pub(crate) fn sources(&self) -> usize {
        if self.scope == Scope::TwoNamespaces {
            2
        } else {
            1
        }
    }
}

impl Key {
    /// Returns the keys of all objects that a simulated run can create.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let namespaces = 0..NAMESPACES.len();
        namespaces.flat_map(|namespace| (0..NAMES).map(move |name| Self { namespace, name }))
    }

    pub(crate) fn namespace(self) -> &'static str {
        NAMESPACES[self.namespace]
    }

    pub(crate) fn object_name(self) -> ObjectName {
        ObjectName::new(Some(self.namespace()), &format!("p{}", self.name))
    }
}

impl Handler {
    /// Returns the name of the handler's buffer type, such as `coalesce`.
    pub(crate) fn policy(&self) -> &'static str {
        match self.buffer {
            ListenerBuffer::Coalesce => "coalesce",
            ListenerBuffer::Block(_) => "block",
            _ => "grow",
        }
    }

    /// Returns the capacity of a [`ListenerBuffer::Block`].
    pub(crate) fn bound(&self) -> Option<NonZeroUsize> {
        match self.buffer {
            ListenerBuffer::Block(most) => Some(most),
            _ => None,
        }
    }
}

// === as text ===

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.setting)?;
        for (at, step) in &self.steps {
            writeln!(f, "  {at:>4}  {step}")?;
        }
        match self.setting.end {
            End::Heal => writeln!(f, "   end  the faults end, the informer recovers"),
            End::Stop => writeln!(f, "   end  the informer is stopped"),
            End::Kill => writeln!(f, "   end  the informer is dropped"),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.store)?;
        if let Some(objects) = self.packed {
            write!(f, " packed from {objects}")?;
        }
        if self.lazy {
            f.write_str(" lazy")?;
        }
        if self.protobuf {
            f.write_str(" in protobuf")?;
        }
        if self.reads_each_state() {
            f.write_str(" read at once")?;
        }
        write!(f, ", {:?}, {:?}", self.scope, self.queue)?;
        write!(f, " of capacity {}, {:?}", self.capacity, self.initial_list)?;
        if let Some(page) = self.page_size {
            write!(f, " in pages of {page}")?;
        }
        write!(f, ", resync {} s", self.resync)?;
        if self.consistency > 0 {
            write!(f, ", compared every {} s", self.consistency)?;
        }
        match self.watch_cache {
            Some(events) => write!(f, "; a watch cache of {events}")?,
            None => write!(f, "; no watch cache")?,
        }
        let objects: Vec<_> = self.objects.iter().map(ToString::to_string).collect();
        write!(f, "; initial objects: {}", objects.join(" "))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/p{}", self.namespace(), self.name)
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let app = if self.web { " web" } else { "" };
        write!(f, "{} v={}{app}", self.key, self.value)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass(time) => write!(f, "pass {time:?}"),
            Self::Change(change) => change.fmt(f),
            Self::Fault(fault) => write!(f, "{}: {}", fault.name(), fault.plan),
            Self::User(act) => act.fmt(f),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(written) => write!(f, "write {written}"),
            Self::Delete(key) => write!(f, "delete {key}"),
            Self::Recreate(written) => write!(f, "recreate {written}"),
            Self::Burst(all) => {
                let all: Vec<_> = all.iter().map(ToString::to_string).collect();
                write!(f, "burst {}", all.join(", "))
            }
            Self::DeleteNamespace(namespace) => {
                write!(f, "delete namespace {}", NAMESPACES[*namespace])
            }
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Join(handler) => write!(f, "add a handler: {handler}"),
            Self::Leave(number) => write!(f, "remove handler {number}"),
            Self::AddIndex => f.write_str("add an index"),
            Self::RemoveIndex => f.write_str("remove the index"),
            Self::Restart { kill: true } => f.write_str("drop the informer, start a new one"),
            Self::Restart { kill: false } => f.write_str("stop the informer, start a new one"),
            Self::WriteAndRead(written) => write!(f, "write and read {written}"),
            Self::DeleteAndRead(key) => write!(f, "delete and read {key}"),
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} ms per event", self.buffer, self.slow)?;
        if self.resync > 0 {
            write!(f, ", resync {} s", self.resync)?;
        }
        if self.panics > 0 {
            write!(f, ", panics every {} events", self.panics)?;
        }
        if self.filtered {
            f.write_str(", web only")?;
        }
        Ok(())
    }
}
