//! The [`Housekeeping`] of packed objects: trains dictionaries, and packs objects that are still uncompressed.

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

/// Trains a dictionary if one is due, and packs earlier objects with it.
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

/// Packs an object's body, if that is pending.
fn pack_now<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.pack_now();
    }
}

/// Packs an object's body again, if it was packed with an older dictionary.
fn repack<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.repack();
    }
}

/// Number of objects repacked per received chunk, and between two checks for a new chunk: for pods, half a
/// millisecond's work.
const STEP: usize = 32;

/// A walk through the store, in the order of names.
#[derive(Default)]
enum Walk {
    #[default]
    Done,
    Beginning,
    Behind(ObjectName),
}

/// Progress of repacking objects with the newest dictionary.
#[derive(Default)]
struct Repacking {
    /// The number of that dictionary.
    generation: u64,
    walk: Walk,
    /// Whether to walk again at the next chunk, for objects that were on their way to the store.
    again: bool,
}

impl Repacking {
    fn is_under_way(&self) -> bool {
        !matches!(self.walk, Walk::Done)
    }
}

/// Maximum objects of a dictionary that is trained in place, which takes one or two milliseconds.
const TRAINED_IN_PLACE: usize = 32;

/// Trains dictionaries on the pool for blocking work; training takes as long as some hundred events.
///
/// A list waits for the first dictionary, because its objects would stay unpacked otherwise. During the training of
/// a later one events continue, and are packed with the one before. A dictionary of few objects is trained in place.
struct Training {
    /// At most one training.
    under_way: JoinSet<()>,
}

impl Training {
    fn new() -> Self {
        Self {
            under_way: JoinSet::new(),
        }
    }

    /// Trains a dictionary if one is due, or starts to.
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

/// Maximum number of objects of single events before they are packed; a bookmark packs them too. Unpacked they take
/// ten times as much memory.
const PENDING_MAX: usize = 64;

/// Maximum bytes of such objects before they are packed.
const PENDING_BYTES: u64 = 1 << 20;

/// Objects packed per turn, when the runtime is idle or after much work: for pods, a thirtieth of a millisecond, by
/// which an event may be delayed.
const TURN: usize = 4;

/// Maximum number of concurrent packing tasks.
const PACKING_MAX: usize = 4;

/// Stored objects that are still unpacked. They are packed when this is dropped, because they outlive the reflector,
/// and the next reflector does not know them.
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

/// The objects to pack later.
struct Pending<K> {
    unpacked: Unpacked<K>,
    bytes: u64,
    packing: JoinSet<()>,
    has_other_workers: bool,
}

impl<K: Send + Sync + 'static> Pending<K> {
    /// Creates one for the current runtime.
    fn new() -> Self {
        Self {
            unpacked: Unpacked(Vec::new()),
            bytes: 0,
            packing: JoinSet::new(),
            has_other_workers: offload::width_here() > 0,
        }
    }

    /// Adds an object, if its packing is pending.
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

    /// Starts to pack all objects.
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
    /// Creates one for the current runtime.
    fn new(decoder: Arc<PackedDecoder<K>>) -> Self {
        Self {
            decoder,
            training: Training::new(),
            repacking: Repacking::default(),
            pending: Pending::new(),
        }
    }

    /// Trains a dictionary if one is due, and packs the staged objects with a new one.
    async fn tend(&mut self, staged: StagedObjects<'_, K>, more_comes: bool) {
        self.training.tend(&self.decoder, more_comes).await;
        let generation = self.decoder.packing().generation();
        if generation != self.repacking.generation {
            self.repacking = Repacking {
                generation,
                walk: Walk::Beginning,
                again: true,
            };
            // Packed before they enter the store.
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
