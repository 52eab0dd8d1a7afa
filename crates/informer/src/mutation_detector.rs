//! Detects code that mutates cached objects, which all handlers and readers share.
//!
//! The detector is off by default and intended for tests: it copies every object and compares each object
//! with its copy once per second.
//!
//! Cached objects are behind an `Arc`. Code can mutate such an object only through interior mutability, for
//! example a field with a `Mutex`, an atomic or a `OnceCell`.
//!
//! An object state is one version of an object: the value behind one `Arc`.
//!
//! # Guarantees
//!
//! - The detector copies an object state before a handler, reader or index function can access the state.
//! - Each mutated state is reported once. The report names the object, but not the code that changed the
//!   object.
//! - A copy is dropped at the first check after the last reference to its state is dropped.
//! - The detector does not modify objects and holds no lock. Mutations of some data remain undetected: data
//!   that `Clone` shares with the original, and data that `PartialEq` ignores.

use std::{
    collections::BTreeSet,
    ptr,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    clock,
    object::{Deleted, Object, ObjectName, ResourceVersion},
    panics::confined,
    reflector::{DeltaKind, Error},
};

/// Interval between two comparisons of all object states, equal to that in client-go.
const PERIOD: Duration = Duration::from_secs(1);

/// Maximum number of object states that one call of [`MutationDetector::check`] compares.
const SLICE: usize = 1024;

/// Copies of the object states that one informer received.
pub(crate) struct MutationDetector<K> {
    copy: fn(&K) -> K,
    is_equal: fn(&K, &K) -> bool,
    copies: Vec<Copied<K>>,
    /// Index in `copies` at which the next call of [`check`](MutationDetector::check) continues.
    checked: usize,
    due: Instant,
}

struct Copied<K> {
    name: ObjectName,
    revision: ResourceVersion,
    shared: Weak<K>,
    /// Copy of the object behind `shared`, made before any handler or reader can mutate the object.
    copy: Box<K>,
}

impl<K> MutationDetector<K> {
    pub(crate) fn new() -> Self
    where
        K: Clone + PartialEq,
    {
        Self {
            copy: K::clone,
            is_equal: K::eq,
            copies: Vec::new(),
            checked: 0,
            due: Instant::now(),
        }
    }

    /// Copies the objects that `delta` contains. Skips listed objects that were already copied.
    pub(crate) fn take_in(&mut self, delta: &DeltaKind<K>) {
        let objects = match delta {
            DeltaKind::Added(object)
            | DeltaKind::Updated(object)
            | DeltaKind::Replaced(object)
            | DeltaKind::Sync(object)
            | DeltaKind::Deleted(Deleted::Known(object)) => std::slice::from_ref(object),
            DeltaKind::Deleted(Deleted::FinalStateUnknown { last_known, .. }) => {
                last_known.as_slice()
            }
            DeltaKind::ReplacedAll { objects, .. } => objects,
            DeltaKind::SyncAll | DeltaKind::Bookmark { .. } => &[],
        };
        let copied: BTreeSet<*const K> = match delta {
            // A list contains unchanged objects as the same `Arc` as in the cache.
            DeltaKind::ReplacedAll { .. } => {
                let copied = self.copies.iter();
                copied.map(|copied| copied.shared.as_ptr()).collect()
            }
            _ => BTreeSet::new(),
        };
        let is_copied = |object: &Object<K>| {
            let live = object.live().map(ptr::from_ref);
            live.is_some_and(|live| copied.contains(&live))
        };
        let new = objects.iter().filter(|object| !is_copied(object));
        new.for_each(|object| self.copy(object));
    }

    /// Copies one object state.
    ///
    /// If copying panics, or the copy does not equal the original, logs a warning. Mutations of this state
    /// are then not detected.
    pub(crate) fn copy(&mut self, object: &Object<K>) {
        let Ok(shared) = object.get() else {
            return;
        };
        let (copy, is_equal) = (self.copy, self.is_equal);
        let copied = confined(|| {
            let copy = copy(&shared);
            is_equal(&shared, &copy).then_some(copy)
        });
        let Ok(Some(copy)) = copied else {
            tracing::warn!(
                ?object,
                "an object differs from its own copy; mutations of it are not detected"
            );
            return;
        };
        if self.copies.is_empty() {
            self.due = clock::after(Instant::now(), PERIOD);
        }
        self.copies.push(Copied {
            name: object.object_name().clone(),
            revision: object.revision().clone(),
            shared: Arc::downgrade(&shared),
            copy: Box::new(copy),
        });
    }

    /// Returns when to call [`check`](Self::check) next, or `None` if the detector stores no copies of
    /// objects.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.copies.is_empty()).then_some(self.due)
    }

    /// Compares up to [`SLICE`] object states with their copies, and returns an error for each mutated state.
    ///
    /// The next call continues with the remaining states.
    pub(crate) fn check(&mut self) -> Vec<Error> {
        let mut mutated = Vec::new();
        for _ in 0..SLICE {
            let Some(copied) = self.copies.get(self.checked) else {
                break;
            };
            let state = copied.state(self.is_equal);
            if state == State::Unchanged {
                self.checked += 1;
                continue;
            }
            let Copied { name, revision, .. } = self.copies.swap_remove(self.checked);
            if state == State::Mutated {
                mutated.push(Error::Mutated {
                    object: name,
                    revision,
                });
            }
        }
        if self.checked == self.copies.len() {
            self.checked = 0;
            self.copies.shrink_to(2 * self.copies.len());
            self.due = clock::after(Instant::now(), PERIOD);
        }
        mutated
    }

    pub(crate) fn check_all(&mut self) -> Vec<Error> {
        self.checked = 0;
        let mut mutated = self.check();
        while self.checked > 0 {
            mutated.append(&mut self.check());
        }
        mutated
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unchanged,
    Mutated,
    /// No result: the cache and all readers have dropped the object, or the comparison panicked.
    Void,
}

impl<K> Copied<K> {
    fn state(&self, is_equal: fn(&K, &K) -> bool) -> State {
        let Some(shared) = self.shared.upgrade() else {
            return State::Void;
        };
        match confined(|| is_equal(&shared, &self.copy)) {
            Ok(true) => State::Unchanged,
            Ok(false) => State::Mutated,
            Err(_) => {
                let (object, revision) = (&self.name, &self.revision);
                tracing::warn!(%object, %revision, "comparing an object with its copy panicked; mutations of it are not detected");
                State::Void
            }
        }
    }
}

#[cfg(test)]
mod tests;
