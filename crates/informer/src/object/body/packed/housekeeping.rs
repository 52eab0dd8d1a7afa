//! Does the background work ([`Housekeeping`]) for packed objects, which a cache stores as compressed bytes.
//! The work creates compression dictionaries, and compresses objects that are stored uncompressed or with an
//! older dictionary.
//!
//! The module does not decode objects or change their content.

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

/// Creates a dictionary if one is due, and then compresses `objects` again with the new dictionary.
///
/// `more_comes` is true if more objects follow at once, as during a list. The minimum number of objects for a
/// dictionary is then higher.
pub(in crate::object) fn keep_house<K>(
    decoder: &PackedDecoder<K>,
    objects: &[Vec<Object<K>>],
    more_comes: bool,
) {
    let packing = decoder.packing();
    if packing.renew(more_comes) {
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

fn pack_now<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.pack_now();
    }
}

fn repack<K>(object: &Object<K>) {
    if let Some(packed) = body(object) {
        packed.repack();
    }
}

/// Number of objects that one step compresses again; for pods, a step takes half a millisecond.
const STEP: usize = 32;

/// Position in an iteration over the store in the order of names.
#[derive(Default)]
enum Walk {
    #[default]
    Done,
    Beginning,
    Behind(ObjectName),
}

/// Progress of compressing the store's objects again with the newest dictionary.
#[derive(Default)]
struct Repacking {
    /// Number of dictionaries that had been created when the repacking started.
    generation: u64,
    walk: Walk,
    /// Whether to iterate over the store a second time, for objects added during the first iteration.
    again: bool,
}

impl Repacking {
    fn is_under_way(&self) -> bool {
        !matches!(self.walk, Walk::Done)
    }
}

/// Maximum number of uncompressed objects that are collected before their compression starts.
const PENDING_MAX: usize = 64;

/// Compression starts when the collected uncompressed objects have this total size in bytes.
const PENDING_BYTES: u64 = 1 << 20;

/// Number of objects that a task compresses before it yields. Compressing this number of pods takes about 30
/// microseconds.
const TURN: usize = 4;

/// Maximum number of concurrent tasks that compress objects for one store.
const PACKING_MAX: usize = 4;

/// Objects with uncompressed bytes, which are compressed when this value is dropped.
struct Unpacked<K>(Vec<Object<K>>);

impl<K> Unpacked<K> {
    /// Compresses all objects, and yields after each [`TURN`] objects.
    ///
    /// # Cancel safety
    /// If the future is dropped, the remaining objects are compressed before the drop returns, so that they
    /// do not stay uncompressed.
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

/// Collects uncompressed objects from watch events, and compresses them in batches.
struct Pending<K> {
    unpacked: Unpacked<K>,
    bytes: u64,
    packing: JoinSet<()>,
    has_other_workers: bool,
}

impl<K: Send + Sync + 'static> Pending<K> {
    /// Must be called on the runtime that will run the compression tasks. The method reads the number of
    /// worker threads of the current runtime.
    fn new() -> Self {
        Self {
            unpacked: Unpacked(Vec::new()),
            bytes: 0,
            packing: JoinSet::new(),
            has_other_workers: offload::width_here() > 0,
        }
    }

    /// Adds an uncompressed object. Compresses all waiting objects if they reach [`PENDING_MAX`] or
    /// [`PENDING_BYTES`].
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

    /// Compresses all waiting objects in a new task.
    ///
    /// If the runtime has only one worker thread, or if [`PACKING_MAX`] tasks are running, this call
    /// compresses the objects itself.
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
    repacking: Repacking,
    pending: Pending<K>,
}

impl<K: Send + Sync + 'static> Packer<K> {
    /// Must be called on the tokio runtime that will run the background work.
    fn new(decoder: Arc<PackedDecoder<K>>) -> Self {
        Self {
            decoder,
            repacking: Repacking::default(),
            pending: Pending::new(),
        }
    }

    /// Creates a compression dictionary if one is due. If there is a new dictionary, compresses the `staged`
    /// objects with the new dictionary.
    ///
    /// Later calls of [`step`](Housekeeping::step) compress the objects in the store.
    /// [`Housekeeping::decoded`] describes the parameters.
    async fn tend(&mut self, staged: StagedObjects<'_, K>, more_comes: bool) {
        self.decoder.packing().renew(more_comes);
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
