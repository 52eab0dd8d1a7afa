//! Finds objects that somebody changes while everybody shares them. Off unless asked for, and then a
//! tool for tests: it costs a copy of every object and a comparison each second.
//!
//! A cached object is behind an `Arc`, so only a type with interior mutability (a `Mutex`, an atomic,
//! a `OnceCell` in a field) can be changed there. Such a change reaches all handlers and readers, no
//! server knows of it, and the next state from the watch undoes it.
//!
//! # What it promises
//!
//! - A state is copied before any handler, reader or index function can see it, so whatever they do
//!   to it is a difference. Whoever changes it first is not known, but which object it is.
//! - Each state that differs is reported once.
//! - A copy is let go of at the first check after the last holder of its state is gone.
//! - It changes nothing and holds no lock. What the type's `Clone` shares with the original, and what
//!   its `PartialEq` leaves out, it can't see.

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

/// How often everything is compared: client-go's period.
const PERIOD: Duration = Duration::from_secs(1);

/// So many states are compared before the informer's loop looks at its commands again.
const SLICE: usize = 1024;

/// The copies of one informer. `K` needs its bounds only where this is made.
pub(crate) struct MutationDetector<K> {
    copy: fn(&K) -> K,
    is_equal: fn(&K, &K) -> bool,
    /// In no particular order.
    copies: Vec<Copied<K>>,
    /// How many of them the check under way has been through.
    checked: usize,
    due: Instant,
}

struct Copied<K> {
    name: ObjectName,
    revision: ResourceVersion,
    shared: Weak<K>,
    /// In a box, so that room in the list costs little.
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

    /// Copies what a delta brings.
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
            // It brings what has not changed as the very object that is in the cache.
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

    /// Copies one state. A broken one has no body; one whose body can't be copied, or is not equal to
    /// its own copy (a NaN is not), can't be watched.
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
            tracing::warn!(?object, "differs from its own copy; mutations are not seen");
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

    /// When the next check is due; `None` while there is nothing to compare.
    pub(crate) fn due(&self) -> Option<Instant> {
        (!self.copies.is_empty()).then_some(self.due)
    }

    /// Compares the next [`SLICE`] states; what has changed. It is due again at once until it is
    /// through, and then a second later.
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

    /// Compares everything at once, from the beginning.
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
    /// Nobody holds it any more, or it can't be compared.
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
                tracing::warn!(%object, %revision, "comparing it panicked; mutations are not seen");
                State::Void
            }
        }
    }
}

#[cfg(test)]
mod tests;
