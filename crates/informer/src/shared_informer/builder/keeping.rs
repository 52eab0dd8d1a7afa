//! What is kept of each object, and in which form.

use std::sync::Arc;

use kube_core::Resource;
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};

use super::Builder;
use crate::{
    decode,
    logs::Ration,
    object::{DecodeError, Opener, PackOptions},
    pruning::{FieldPath, NotPrunable, Pruning},
    reflector::{Error, Reporter},
};

impl<K> Builder<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Cuts these fields out of every object before it is decoded, so that they cost next to nothing; a
    /// [`transform`](Self::transform) that drops them costs what making them did. The last call counts.
    ///
    /// # Errors
    /// Another field than `metadata.managedFields` or `metadata.annotations`, or one of the annotations: an
    /// object that lacks anything else would destroy it when it is written back.
    pub fn prune(
        mut self,
        fields: impl IntoIterator<Item = FieldPath>,
    ) -> Result<Self, NotPrunable> {
        self.pruning = Pruning::new(fields)?;
        Ok(self)
    }

    pub(crate) fn pruning(mut self, pruning: Pruning) -> Self {
        self.pruning = pruning;
        self
    }

    /// Keeps the cache small: each object as the JSON that the server sent, compressed with a dictionary
    /// that is made of the first 256 of them; of pods it takes about a tenth of what they take decoded.
    /// Name, namespace, uid, revision and labels are kept beside it, so listing, selectors and indices by
    /// metadata need nothing else.
    ///
    /// An object is decoded each time that [`Object::get`](crate::Object::get) is called, unless somebody has it or it is one
    /// of the last sixteen; of a pod that takes some 30 µs. Handlers that only want to know which object it
    /// is, such as those that [`enqueue`](crate::enqueue) its name, and `old` of an update that nobody
    /// looks at, cost none of it; an index by a function of the whole object, and a transform, decode each
    /// state that comes, and with a transform what it makes is written as JSON again. Everything else is
    /// as without.
    ///
    /// What does not fit the type is noticed when it is asked for, not when it comes: `get` fails, it is
    /// reported once (to the log and to [`Builder::on_error`]), and handlers hear of such a state as of
    /// any other.
    ///
    /// Making a dictionary takes some 60 ms of pods, once, and again when what is written no longer fits
    /// it (the last thousand states took half as much again as the first).
    pub fn packed(self) -> Self
    where
        K: Serialize,
    {
        self.packing(PackOptions::default())
    }

    /// The same with dictionaries that are made of so many objects, at least 8: fewer than
    /// [`packed`](Self::packed) takes, where there are not that many, or more, where they are of many kinds
    /// of content. Until there are so many, all are kept as they came.
    pub fn packed_from(self, objects: usize) -> Self
    where
        K: Serialize,
    {
        self.packing(PackOptions::new(objects))
    }

    pub(crate) fn packing(mut self, options: PackOptions<K>) -> Self {
        self.packing = Some(options);
        self
    }
}

/// What packs objects, and reports those that turn out not to fit the type.
pub(super) fn opener<K: DeserializeOwned>(
    options: PackOptions<K>,
    report: &Reporter,
) -> Arc<Opener<K>> {
    let (report, ration) = (report.clone(), Mutex::new(Ration::default()));
    let on_broken = move |error: &DecodeError| {
        report.skipped(&Error::Decode(error.clone()), &mut ration.lock());
    };
    Arc::new(Opener::new(options, decode::open::<K>, Box::new(on_broken)))
}
