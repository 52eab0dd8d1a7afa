//! The [`Housekeeping`] of packed objects: what packs them is kept fit for them, and what was left unpacked
//! is packed.

use std::sync::Arc;

use futures_core::future::BoxFuture;
use tokio::task::{JoinSet, yield_now};

use super::{
    super::{Housekeeping, ObjectAfter, StagedObjects},
    Body, Object, ObjectName, PackedBody, PackedDecoder,
};
use crate::offload::{self, OFFLOADED_MIN, offload};

pub(in crate::object) fn housekeeping<K: Send + Sync + 'static>(
    decoder: &Arc<PackedDecoder<K>>,
) -> Box<dyn Housekeeping<K>> {
    Box::new(Packer::new(Arc::clone(decoder)))
}

/// Makes a dictionary if one is due, and packs with it what was packed before.
pub(in crate::object) fn keep_house<K>(
    decoder: &PackedDecoder<K>,
    objects: &[Vec<Object<K>>],
    more_comes: bool,
) {
    let packing = decoder.packing();
    if packing.is_due(more_comes) && packing.train(more_comes) {
        objects.iter().flatten().for_each(repack);
    }
}

fn body<K>(object: &Object<K>) -> Option<&PackedBody<K>> {
    match &object.inner.body {
        Body::Packed(packed) => Some(packed),
        Body::Live(_) | Body::Lazy(_) | Body::Broken(_) => None,
    }
}

fn is_pending<K>(object: &Object<K>) -> bool {
    body(object).is_some_and(PackedBody::is_pending)
}

/// Packs its body, if that was put off.
fn pack_now<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.pack_now();
    }
}

/// Packs its body anew, if it was packed with what is no longer the best.
fn repack<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.repack();
    }
}

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
struct Repacking {
    /// Of which dictionary it is.
    generation: u64,
    walk: Walk,
    /// What was on its way to the store is to be found there when the next chunk comes.
    again: bool,
}

impl Repacking {
    fn is_under_way(&self) -> bool {
        !matches!(self.walk, Walk::Done)
    }
}

/// A dictionary of no more objects than this is made in place, which takes a millisecond or two.
const TRAINED_IN_PLACE: usize = 32;

/// Makes dictionaries, which takes as long as some hundred events, on the pool for blocking work. The list
/// waits for the first one, because everything that comes meanwhile would stay unpacked. Events go on during
/// the making of another one, and are packed with the one before. One of few objects is made in place.
struct Training {
    /// One at most.
    under_way: JoinSet<()>,
}

impl Training {
    fn new() -> Self {
        Self {
            under_way: JoinSet::new(),
        }
    }

    /// Makes one if it is time, or begins to.
    async fn tend<K: Send + Sync + 'static>(
        &mut self,
        decoder: &Arc<PackedDecoder<K>>,
        more_comes: bool,
    ) {
        let packing = decoder.packing();
        if !packing.is_due(more_comes) {
            return;
        }
        if packing.samples() <= TRAINED_IN_PLACE {
            packing.train(more_comes);
            return;
        }
        let is_first = packing.generation() == 0;
        let decoder = Arc::clone(decoder);
        let train = move || {
            decoder.packing().train(more_comes);
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
            self.0.drain(first..).for_each(|object| pack_now(&object));
        }
    }
}

impl<K> Drop for Unpacked<K> {
    fn drop(&mut self) {
        self.0.iter().for_each(pack_now);
    }
}

/// What is to be packed before long.
struct Pending<K> {
    unpacked: Unpacked<K>,
    bytes: u64,
    packing: JoinSet<()>,
    has_other_workers: bool,
}

impl<K: Send + Sync + 'static> Pending<K> {
    /// For the runtime that this is called in.
    fn new() -> Self {
        Self {
            unpacked: Unpacked(Vec::new()),
            bytes: 0,
            packing: JoinSet::new(),
            has_other_workers: offload::width_here() > 0,
        }
    }

    /// Has it packed, if that was put off.
    fn push(&mut self, object: &Object<K>) {
        if !is_pending(object) {
            return;
        }
        self.unpacked.0.push(object.clone());
        self.bytes += object.wire_bytes();
        if self.unpacked.0.len() >= PENDING_MAX || self.bytes >= PENDING_BYTES {
            self.pack();
        }
    }

    /// Has all packed for which that was put off.
    fn pack(&mut self) {
        if self.unpacked.0.is_empty() {
            return;
        }
        let unpacked = std::mem::replace(&mut self.unpacked, Unpacked(Vec::new()));
        self.bytes = 0;
        while self.packing.try_join_next().is_some() {}
        if self.has_other_workers && self.packing.len() < PACKING_MAX {
            self.packing.spawn(unpacked.pack());
        }
    }
}

struct Packer<K> {
    decoder: Arc<PackedDecoder<K>>,
    training: Training,
    repacking: Repacking,
    pending: Pending<K>,
}

impl<K: Send + Sync + 'static> Packer<K> {
    /// For the runtime that this is called in.
    fn new(decoder: Arc<PackedDecoder<K>>) -> Self {
        Self {
            decoder,
            training: Training::new(),
            repacking: Repacking::default(),
            pending: Pending::new(),
        }
    }

    /// Has another dictionary made if it is time, and what is staged packed with a new one.
    async fn tend(&mut self, staged: StagedObjects<'_, K>, more_comes: bool) {
        self.training.tend(&self.decoder, more_comes).await;
        let generation = self.decoder.packing().generation();
        if generation != self.repacking.generation {
            self.repacking = Repacking {
                generation,
                walk: Walk::Beginning,
                again: true,
            };
            // The store is not to get them as they are.
            let staged = staged();
            let is_long = staged.len() >= OFFLOADED_MIN;
            let repack = move || staged.iter().for_each(repack);
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
}

impl<K: Send + Sync + 'static> Housekeeping<K> for Packer<K> {
    fn handed_on(&mut self, object: &Object<K>) {
        self.pending.push(object);
    }

    fn paused(&mut self) {
        self.pending.pack();
    }

    fn decoded<'a>(
        &'a mut self,
        staged: StagedObjects<'a, K>,
        more_comes: bool,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.tend(staged, more_comes))
    }

    fn has_work(&self) -> bool {
        self.repacking.is_under_way()
    }

    fn step(&mut self, after: ObjectAfter<'_, K>) {
        for _ in 0..STEP {
            let behind = match &self.repacking.walk {
                Walk::Done => return,
                Walk::Beginning => None,
                Walk::Behind(name) => Some(name),
            };
            self.repacking.walk = match after(behind) {
                Some(object) => {
                    repack(&object);
                    Walk::Behind(object.object_name().clone())
                }
                None => Walk::Done,
            };
        }
    }
}

#[cfg(test)]
mod tests;
