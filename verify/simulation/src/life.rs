//! A [`Life`]: an initial setting, and the steps that happen.
//!
//! It is a plain value that can be printed, shortened and run again: all random choices in a world come from
//! [`Setting::rng`], which does not change when steps are removed.

use std::{fmt, num::NonZeroUsize, time::Duration};

use kube_informer::{InitialList, ObjectName, shared_informer::ListenerBuffer};

use crate::fault::Fault;

/// The namespaces in which objects live.
pub(crate) const NAMESPACES: [&str; 3] = ["a", "b", "c"];

/// Few names, so that the same object is changed, deleted and created again repeatedly.
pub(crate) const NAMES: usize = 5;

/// Everything that happens between start and end of an informer.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// The seed that it was drawn from.
    pub(crate) seed: u64,
    /// The initial setting.
    pub(crate) setting: Setting,
    /// The steps, each with its index in the life as drawn.
    pub(crate) steps: Vec<(usize, Step)>,
}

/// The initial configuration of a simulated informer and its server.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Seeds the server and the informers.
    pub(crate) rng: u64,
    /// The part of an object that the informer stores.
    pub(crate) store: Store,
    /// Number of dictionaries for packed objects; `None` for unpacked objects.
    pub(crate) packed: Option<usize>,
    /// Whether objects are stored as bytes until they are read.
    pub(crate) lazy: bool,
    /// The observed objects.
    pub(crate) scope: Scope,
    /// The queue of changes.
    pub(crate) queue: Queue,
    /// Capacity of the queue.
    pub(crate) capacity: usize,
    /// How the initial list is transferred.
    pub(crate) initial_list: InitialList,
    /// Objects per page of a list; the default is 500.
    pub(crate) page_size: Option<u32>,
    /// The informer's own resync period, in seconds.
    pub(crate) resync: u64,
    /// Interval in seconds between comparisons of the cache with the server; 0 is never.
    pub(crate) consistency: u64,
    /// Number of events in the server's watch cache; `None` without one.
    pub(crate) watch_cache: Option<usize>,
    /// The initial objects.
    pub(crate) objects: Vec<Key>,
    /// How the life ends.
    pub(crate) end: End,
}

/// The part of an object that an informer stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// The typed object.
    Typed,
    /// The object as JSON.
    Dynamic,
    /// Only the metadata.
    Metadata,
}

/// The objects that an informer observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All objects.
    Everywhere,
    /// Objects in the first two namespaces, with one source per namespace.
    TwoNamespaces,
    /// Objects with the label `app=web`.
    Labelled,
}

/// The queue of changes before the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// In order, with this maximum batch size.
    InOrder(usize),
    /// One queue entry per object.
    DeltaFifo,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The faults end, and the informer must recover.
    Heal,
    /// The informer is stopped in its current state.
    Stop,
    /// The informer is dropped in its current state.
    Kill,
}

/// An object, by the indexes of its namespace and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: usize,
    pub(crate) name: usize,
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Time passes.
    Pass(Duration),
    /// The cluster changes.
    Change(Change),
    /// A fault starts.
    Fault(Fault),
    /// The informer's user acts.
    User(Act),
}

/// A change of the cluster.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// An object is created, or updated.
    Write(Written),
    /// An object is deleted, if it exists.
    Delete(Key),
    /// An object is deleted and immediately created again.
    Recreate(Written),
    /// Several objects are written at one moment.
    Burst(Vec<Written>),
    /// A namespace is deleted with its contents.
    DeleteNamespace(usize),
}

/// The new state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: Key,
    /// The label `v`, which distinguishes states.
    pub(crate) value: u32,
    /// Whether it has the label `app=web`.
    pub(crate) web: bool,
}

/// An action of a user.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A handler is registered.
    Join(Handler),
    /// The handler with this number, modulo their count, is removed.
    Leave(usize),
    /// An index is added.
    AddIndex,
    /// The index is removed.
    RemoveIndex,
    /// The informer ends, and a new one starts; its handlers are registered again.
    Restart {
        /// Whether it is dropped instead of stopped.
        kill: bool,
    },
    /// The user writes an object, and waits until the cache contains it.
    WriteAndRead(Written),
    /// The user deletes an object, and waits until the cache no longer contains it.
    DeleteAndRead(Key),
}

/// A handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    /// Resync period in seconds; 0 is never.
    pub(crate) resync: u64,
    /// Duration of a callback in milliseconds.
    pub(crate) slow: u64,
    /// The handler panics on every nth event; 0 is never.
    pub(crate) panics: u32,
    /// Buffer of undelivered events.
    pub(crate) buffer: ListenerBuffer,
    /// Whether it receives only objects with the label `app=web`.
    pub(crate) filtered: bool,
}

impl Setting {
    /// Returns whether the informer observes an object.
    pub(crate) fn wants(&self, namespace: &str, web: bool) -> bool {
        match self.scope {
            Scope::Everywhere => true,
            Scope::TwoNamespaces => NAMESPACES[..2].contains(&namespace),
            Scope::Labelled => web,
        }
    }

    /// Returns whether an index function reads each state on arrival, so that no object stays unread.
    pub(crate) fn reads_each_state(&self) -> bool {
        self.rng.is_multiple_of(2)
    }

    /// Returns the number of sources, each with its own list and watch.
    pub(crate) fn sources(&self) -> usize {
        if self.scope == Scope::TwoNamespaces {
            2
        } else {
            1
        }
    }
}

impl Key {
    /// Every possible object.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let namespaces = 0..NAMESPACES.len();
        namespaces.flat_map(|namespace| (0..NAMES).map(move |name| Self { namespace, name }))
    }

    pub(crate) fn namespace(self) -> &'static str {
        NAMESPACES[self.namespace]
    }

    /// Returns the name in paths and caches.
    pub(crate) fn object_name(self) -> ObjectName {
        ObjectName::new(Some(self.namespace()), &format!("p{}", self.name))
    }
}

impl Handler {
    /// Name of its buffer in the coverage table.
    pub(crate) fn policy(&self) -> &'static str {
        match self.buffer {
            ListenerBuffer::Coalesce => "coalesce",
            ListenerBuffer::Block(_) => "block",
            _ => "grow",
        }
    }

    /// Returns the capacity of a bounded buffer, which may block the informer.
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
