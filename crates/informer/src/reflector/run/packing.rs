//! Packed objects: what packs them is kept fit for them.

use std::sync::Arc;

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::task::{JoinSet, yield_now};

use super::{
    super::{DeltaKind, ReflectorStore},
    List, Running,
};
use crate::{
    beside::{self, OFFLOADED_MIN, offload},
    object::{Object, ObjectName, Opener},
};

/// So many objects of the store are looked at for each chunk that comes, and between two looks at whether
/// one has come: of pods, half a millisecond's work.
const STEP: usize = 32;

/// Through the store, in the order of names.
#[derive(Default)]
enum Walk {
    #[default]
    Done,
    Beginning,
    Behind(ObjectName),
}

/// How far a reflector has come with what was packed before the newest dictionary.
#[derive(Default)]
pub(super) struct Repacking {
    /// Of which dictionary it is.
    generation: u64,
    walk: Walk,
    /// What was on its way to the store is to be found there when the next chunk comes.
    again: bool,
}

impl Repacking {
    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.walk, Walk::Done)
    }
}

/// A dictionary of no more objects than this is made in place, which takes a millisecond or two.
const TRAINED_IN_PLACE: usize = 32;

/// Makes dictionaries, which takes as long as some hundred events, on the pool for blocking work. The list
/// waits for the first one, because everything that comes meanwhile would stay unpacked. Events go on during
/// the making of another one, and are packed with the one before. One of few objects is made in place.
pub(super) struct Training {
    /// One at most.
    under_way: JoinSet<()>,
}

impl Training {
    pub(super) fn new() -> Self {
        Self {
            under_way: JoinSet::new(),
        }
    }

    /// Makes one if it is time, or begins to.
    async fn tend<K: Send + Sync + 'static>(&mut self, opener: &Arc<Opener<K>>, more_comes: bool) {
        let packing = opener.packing();
        if !packing.is_due(more_comes) {
            return;
        }
        if packing.samples() <= TRAINED_IN_PLACE {
            packing.train(more_comes);
            return;
        }
        let is_first = packing.generation() == 0;
        let opener = Arc::clone(opener);
        let train = move || {
            opener.packing().train(more_comes);
        };
        if is_first {
            return offload(train).await;
        }
        while self.under_way.try_join_next().is_some() {}
        if self.under_way.is_empty() {
            self.under_way.spawn_blocking(train);
        }
    }
}

/// Objects of lone events are packed when so many have come, or with the next bookmark: in the meantime they
/// take ten times as much.
const PENDING_MAX: usize = 64;

/// The same when so many bytes of them have come.
const PENDING_BYTES: u64 = 1 << 20;

/// So many of them are packed at a time, each time when the runtime has nothing else to do or has done much: of
/// pods, a thirtieth of a millisecond's work, for which an event that comes meanwhile may have to wait.
const TURN: usize = 4;

/// So many computations pack them at a time at most.
const PACKING_MAX: usize = 4;

/// Objects that are in the store as they came, and are packed when this goes, however it goes: they outlive
/// the reflector, and the next one does not know what it left undone.
struct Unpacked<K>(Vec<Object<K>>);

impl<K> Unpacked<K> {
    /// # Cancel safety
    /// Dropping the future packs the rest.
    async fn pack(mut self) {
        while !self.0.is_empty() {
            yield_now().await;
            let first = self.0.len().saturating_sub(TURN);
            self.0.drain(first..).for_each(|object| object.pack_now());
        }
    }
}

impl<K> Drop for Unpacked<K> {
    fn drop(&mut self) {
        self.0.iter().for_each(Object::pack_now);
    }
}

/// What is to be packed before long.
pub(super) struct Pending<K> {
    unpacked: Unpacked<K>,
    bytes: u64,
    packing: JoinSet<()>,
    is_beside: bool,
}

impl<K: Send + Sync + 'static> Pending<K> {
    /// For the runtime that this is called in.
    pub(super) fn new() -> Self {
        Self {
            unpacked: Unpacked(Vec::new()),
            bytes: 0,
            packing: JoinSet::new(),
            is_beside: beside::width_here() > 0,
        }
    }

    /// Has it packed, if that was put off.
    pub(super) fn push(&mut self, object: &Object<K>) {
        if !object.is_pending() {
            return;
        }
        self.unpacked.0.push(object.clone());
        self.bytes += object.wire_bytes();
        if self.unpacked.0.len() >= PENDING_MAX || self.bytes >= PENDING_BYTES {
            self.pack();
        }
    }

    /// Has all packed for which that was put off.
    pub(super) fn pack(&mut self) {
        if self.unpacked.0.is_empty() {
            return;
        }
        let unpacked = std::mem::replace(&mut self.unpacked, Unpacked(Vec::new()));
        self.bytes = 0;
        while self.packing.try_join_next().is_some() {}
        if self.is_beside && self.packing.len() < PACKING_MAX {
            self.packing.spawn(unpacked.pack());
        }
    }
}

/// What keeps a reflector's objects packed; does nothing for objects that are not.
pub(super) struct Packing<K> {
    opener: Option<Arc<Opener<K>>>,
    training: Training,
    repacking: Repacking,
    pending: Pending<K>,
}

impl<K: Send + Sync + 'static> Packing<K> {
    /// For the runtime that this is called in.
    pub(super) fn new(opener: Option<Arc<Opener<K>>>) -> Self {
        Self {
            opener,
            training: Training::new(),
            repacking: Repacking::default(),
            pending: Pending::new(),
        }
    }

    /// A change is about to be handed on: its object is to be packed before long.
    pub(super) fn handed_on(&mut self, kind: &DeltaKind<K>) {
        match kind {
            DeltaKind::Added(object) | DeltaKind::Updated(object) => self.pending.push(object),
            DeltaKind::Bookmark { .. } => self.pending.pack(),
            _ => {}
        }
    }

    /// Has another dictionary made if it is time, which depends on whether a list goes on.
    async fn tend(&mut self, list: Option<&List<K>>, more_comes: bool) {
        let Some(opener) = &self.opener else {
            return;
        };
        self.training.tend(opener, more_comes).await;
        let generation = opener.packing().generation();
        if generation != self.repacking.generation {
            self.repacking = Repacking {
                generation,
                walk: Walk::Beginning,
                again: true,
            };
            // The store is not to get them as they are.
            let staged = list.map(List::objects).unwrap_or_default();
            let is_long = staged.len() >= OFFLOADED_MIN;
            let repack = move || staged.iter().for_each(Object::repack);
            if is_long {
                offload(repack).await;
            } else {
                repack();
            }
        } else if self.repacking.again && !self.repacking.is_under_way() {
            self.repacking.again = false;
            self.repacking.walk = Walk::Beginning;
        }
    }

    /// Whether something in the store is still to be packed anew.
    pub(super) fn is_under_way(&self) -> bool {
        self.repacking.is_under_way()
    }

    /// Packs anew some of what an older dictionary has packed.
    pub(super) fn repack_some(&mut self, store: &impl ReflectorStore<K>) {
        for _ in 0..STEP {
            let behind = match &self.repacking.walk {
                Walk::Done => return,
                Walk::Beginning => None,
                Walk::Behind(name) => Some(name),
            };
            self.repacking.walk = match store.object_after(behind) {
                Some(object) => {
                    object.repack();
                    Walk::Behind(object.object_name().clone())
                }
                None => Walk::Done,
            };
        }
    }
}

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Has another dictionary made if it is time, and packs anew some of what an older one has packed. `list` is the
    /// one under way.
    pub(super) async fn tend_packing(&mut self, list: Option<&List<K>>, more_comes: bool) {
        self.packing.tend(list, more_comes).await;
        self.packing.repack_some(&self.reflector.store);
    }
}

#[cfg(test)]
mod tests;
