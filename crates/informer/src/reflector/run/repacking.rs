//! Packed objects: what packs them is kept fit for them.

use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{super::ReflectorStore, Running};
use crate::object::ObjectName;

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

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Makes another dictionary if it is time, and packs anew some of what an older one has packed.
    pub(super) fn tend_packing(&mut self) {
        let Some(opener) = self.reflector.decoder.opener() else {
            return;
        };
        let packing = opener.packing();
        packing.train();
        let generation = packing.generation();
        if generation != self.repacking.generation {
            self.repacking = Repacking {
                generation,
                walk: Walk::Beginning,
                again: true,
            };
            // The store is not to get them as they are.
            for object in self.staged.iter().chain(self.initial.values()) {
                object.repack();
            }
        } else if self.repacking.again && !self.repacking.is_under_way() {
            self.repacking.again = false;
            self.repacking.walk = Walk::Beginning;
        }
        self.repack_some();
    }

    pub(super) fn repack_some(&mut self) {
        for _ in 0..STEP {
            let behind = match &self.repacking.walk {
                Walk::Done => return,
                Walk::Beginning => None,
                Walk::Behind(name) => Some(name),
            };
            self.repacking.walk = match self.reflector.store.object_after(behind) {
                Some(object) => {
                    object.repack();
                    Walk::Behind(object.object_name().clone())
                }
                None => Walk::Done,
            };
        }
    }
}
