//! A [`Life`]: what there is at the beginning, and what happens, step by step.
//!
//! It is a plain value that can be printed, shortened, and lived again: nothing in a world is drawn but
//! from [`Setting::rng`], which stays what it is when steps are left out.

use std::{fmt, num::NonZeroUsize, time::Duration};

use kube_informer::{InitialList, ObjectName, shared_informer::ListenerBuffer};

use crate::fault::Fault;

/// The namespaces in which objects live.
pub(crate) const NAMESPACES: [&str; 3] = ["a", "b", "c"];

/// Few names, so that the same object is changed, deleted and made again over and over.
pub(crate) const NAMES: usize = 5;

/// What happens between birth and end of an informer.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    /// Where it was drawn from.
    pub(crate) seed: u64,
    /// What there is at the beginning.
    pub(crate) setting: Setting,
    /// What happens, each with its place in the life as it was drawn.
    pub(crate) steps: Vec<(usize, Step)>,
}

/// What there is at the beginning.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Seeds the server and the informers.
    pub(crate) rng: u64,
    /// What the informer keeps of an object.
    pub(crate) store: Store,
    /// Whether they are kept packed, with dictionaries of so many.
    pub(crate) packed: Option<usize>,
    /// Whether they are kept as bytes until somebody reads them.
    pub(crate) lazy: bool,
    /// Which objects it is about.
    pub(crate) scope: Scope,
    /// Where changes wait.
    pub(crate) queue: Queue,
    /// How many may wait.
    pub(crate) capacity: usize,
    /// How everything is brought.
    pub(crate) initial_list: InitialList,
    /// Objects per page of a list; by default 500.
    pub(crate) page_size: Option<u32>,
    /// The informer's own resync period, in seconds.
    pub(crate) resync: u64,
    /// How often the cache is compared with the server, in seconds; 0 is never.
    pub(crate) consistency: u64,
    /// Events in the server's watch cache; `None` without one.
    pub(crate) watch_cache: Option<usize>,
    /// The objects that are there from the beginning.
    pub(crate) objects: Vec<Key>,
    /// How it ends.
    pub(crate) end: End,
}

/// What an informer keeps of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// A type of its own.
    Typed,
    /// JSON.
    Dynamic,
    /// Its metadata.
    Metadata,
}

/// Which objects an informer is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All.
    Everywhere,
    /// Those of the first two namespaces, each from a source of its own.
    TwoNamespaces,
    /// Those with the label `app=web`.
    Labelled,
}

/// Where changes wait for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// All in order, so many at a time.
    InOrder(usize),
    /// Per object.
    DeltaFifo,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The faults end, and everything comes right.
    Heal,
    /// The informer is stopped as it is.
    Stop,
    /// The informer is dropped as it is.
    Kill,
}

/// An object, by the numbers of its namespace and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: usize,
    pub(crate) name: usize,
}

/// What happens at one go.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Time passes.
    Pass(Duration),
    /// The cluster changes.
    Change(Change),
    /// Something breaks.
    Fault(Fault),
    /// The informer's user does something.
    User(Act),
}

/// A change of the cluster.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// An object is created, or updated.
    Write(Written),
    /// An object is deleted, if it is there.
    Delete(Key),
    /// An object is deleted, and made again at once.
    Recreate(Written),
    /// Many objects are written at one moment.
    Burst(Vec<Written>),
    /// A namespace is deleted with all that is in it.
    DeleteNamespace(usize),
}

/// What an object is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) key: Key,
    /// The label `v`, by which states are told apart.
    pub(crate) value: u32,
    /// Whether it has the label `app=web`.
    pub(crate) web: bool,
}

/// What a user does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// A handler joins.
    Join(Handler),
    /// The handler of this number, counted round, leaves.
    Leave(usize),
    /// An index is added.
    AddIndex,
    /// It is removed.
    RemoveIndex,
    /// The informer ends, and another one begins; its handlers join anew.
    Restart {
        /// Whether it is dropped rather than stopped.
        kill: bool,
    },
    /// The user writes an object, and waits to read it.
    WriteAndRead(Written),
    /// The user deletes an object, and waits to see it gone.
    DeleteAndRead(Key),
}

/// A handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    /// How often it wants to hear everything again, in seconds; 0 is never.
    pub(crate) resync: u64,
    /// How long it takes for an event, in milliseconds.
    pub(crate) slow: u64,
    /// It panics with every so many events; 0 is never.
    pub(crate) panics: u32,
    /// What waits for it.
    pub(crate) buffer: ListenerBuffer,
    /// Whether it only wants to hear of objects with the label `app=web`.
    pub(crate) filtered: bool,
}

impl Setting {
    /// Whether the informer is about an object.
    pub(crate) fn wants(&self, namespace: &str, web: bool) -> bool {
        match self.scope {
            Scope::Everywhere => true,
            Scope::TwoNamespaces => NAMESPACES[..2].contains(&namespace),
            Scope::Labelled => web,
        }
    }

    /// Whether an index function reads each state when it arrives, so that no object is unread.
    pub(crate) fn reads_each_state(&self) -> bool {
        self.rng.is_multiple_of(2)
    }

    /// How many lists and watches the informer has.
    pub(crate) fn sources(&self) -> usize {
        if self.scope == Scope::TwoNamespaces {
            2
        } else {
            1
        }
    }
}

impl Key {
    /// Every object that can be.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let namespaces = 0..NAMESPACES.len();
        namespaces.flat_map(|namespace| (0..NAMES).map(move |name| Self { namespace, name }))
    }

    pub(crate) fn namespace(self) -> &'static str {
        NAMESPACES[self.namespace]
    }

    /// As in paths and caches.
    pub(crate) fn object_name(self) -> ObjectName {
        ObjectName::new(Some(self.namespace()), &format!("p{}", self.name))
    }
}

impl Handler {
    /// What a coverage table calls its buffer.
    pub(crate) fn policy(&self) -> &'static str {
        match self.buffer {
            ListenerBuffer::Coalesce => "coalesce",
            ListenerBuffer::Block(_) => "block",
            _ => "grow",
        }
    }

    /// A bounded buffer, which may hold the informer up.
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
            End::Heal => writeln!(f, "   end  the faults end"),
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
        write!(f, " of {} waiting, {:?}", self.capacity, self.initial_list)?;
        if let Some(page) = self.page_size {
            write!(f, " in pages of {page}")?;
        }
        write!(f, ", resync {} s", self.resync)?;
        if self.consistency > 0 {
            write!(f, ", compared each {} s", self.consistency)?;
        }
        match self.watch_cache {
            Some(events) => write!(f, "; a watch cache of {events}")?,
            None => write!(f, "; no watch cache")?,
        }
        let objects: Vec<_> = self.objects.iter().map(ToString::to_string).collect();
        write!(f, "; {} from the beginning", objects.join(" "))
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
            Self::Join(handler) => write!(f, "a handler joins: {handler}"),
            Self::Leave(number) => write!(f, "handler {number} leaves"),
            Self::AddIndex => f.write_str("add an index"),
            Self::RemoveIndex => f.write_str("remove the index"),
            Self::Restart { kill: true } => f.write_str("drop the informer, begin anew"),
            Self::Restart { kill: false } => f.write_str("stop the informer, begin anew"),
            Self::WriteAndRead(written) => write!(f, "write and read {written}"),
            Self::DeleteAndRead(key) => write!(f, "delete and read {key}"),
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} ms for an event", self.buffer, self.slow)?;
        if self.resync > 0 {
            write!(f, ", resync {} s", self.resync)?;
        }
        if self.panics > 0 {
            write!(f, ", panics with each {}.", self.panics)?;
        }
        if self.filtered {
            f.write_str(", web only")?;
        }
        Ok(())
    }
}
