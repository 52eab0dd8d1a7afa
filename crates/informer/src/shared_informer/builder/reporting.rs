//! What is kept of each object, and in which form.

use std::sync::Arc;

use kube_core::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::WeakUnboundedSender;

use super::Builder;
use crate::{
    controller::Command,
    decode::{self, Decoder},
    logs::Ration,
    object::{DecodeError, Lazy, Opener, PackOptions},
    pruning::{FieldPath, NotPrunable, Prunable, Pruned, Pruning, Storable},
    reflector::{Error, Reporter},
};

/// What is kept of each object, and in which form.
pub(super) struct Keeping<K> {
    pub(super) pruning: Pruning,
    packing: Option<PackOptions<K>>,
    is_lazy: bool,
}

impl<K> Default for Keeping<K> {
    fn default() -> Self {
        Self {
            pruning: Pruning::default(),
            packing: None,
            is_lazy: false,
        }
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Keeping<K> {
    /// The decoder, which does that. What turns out not to decode is reported, and to the informer's loop
    /// by a command.
    pub(super) fn of(
        self,
        decoder: Decoder<K>,
        report: &Reporter,
        commands: WeakUnboundedSender<Command<K>>,
    ) -> Decoder<K> {
        let decoder = decoder.pruning(self.pruning);
        let on_broken = reporting(report, commands);
        if let Some(options) = self.packing {
            let opener = Opener::new(options, decode::open::<K>, Box::new(on_broken));
            return decoder.packing(Some(Arc::new(opener)));
        }
        let lazy = || Arc::new(Lazy::new(decode::open::<K>, Box::new(on_broken)));
        decoder.lazily(self.is_lazy.then(lazy))
    }
}

impl<K> Builder<K>
where
    K: Resource + Send + Sync + 'static,
{
    /// Cuts these fields out of every object before it is decoded, so that they cost next to nothing; a
    /// [`transform`](Self::transform) that drops them costs what making them did. The last call counts.
    ///
    /// Of objects of a [`Pruned`] type any field can be cut, but for those that say which object it is, and
    /// labels; [`pruning`](crate::pruning) says what that asks of the type.
    ///
    /// # Errors
    /// One of those; and of any other type another field than `metadata.managedFields` or
    /// `metadata.annotations`, or one of the annotations: an object that lacks anything else would destroy
    /// it when it is written back.
    pub fn prune(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Result<Self, NotPrunable>
    where
        K: Prunable,
    {
        self.keeping.pruning.prune::<K>(fields)?;
        Ok(self)
    }

    pub(crate) fn pruning(mut self, pruning: Pruning) -> Self {
        self.keeping.pruning = pruning;
        self
    }

    /// Keeps the cache small: each object as the JSON that the server sent, compressed with a dictionary
    /// that is made once there are 256 of them, within a list 1,024; of pods it takes about a tenth of what they
    /// take decoded.
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
    /// An object that does not decode is noticed when it is first read, not when it arrives: `get` fails, and
    /// the failure is reported once (to the log and to [`Builder::on_error`]). From then on the object is
    /// broken as in any cache: counted in [`Status::broken`](crate::status::Status::broken), and left out of
    /// the snapshots that are taken afterwards. Handlers receive such a state like any other. The
    /// [guide](crate::guide#objects-that-cant-be-decoded) has a table of the differences.
    ///
    /// Making a dictionary takes some 20 ms of pods, once, and again when what is written no longer fits
    /// it (the last thousand states took half as much again as the first).
    pub fn packed(self) -> Self
    where
        K: Storable,
    {
        self.packing(PackOptions::default())
    }

    /// The same with dictionaries that are made once there are so many objects, at least 8: fewer than
    /// [`packed`](Self::packed) waits for, where there are not that many, or more, where those of many kinds
    /// of content come one kind after the other. Of all of them 64 make it, as far apart as they can be. Until
    /// there are so many, and in a list four times as many, all are kept as they came.
    pub fn packed_from(self, objects: usize) -> Self
    where
        K: Storable,
    {
        self.packing(PackOptions::new(objects))
    }

    /// Leaves objects as the bytes that the server sent until somebody reads them: an object is decoded the
    /// first time that [`Object::get`](crate::Object::get) is called, once for all who ask, and kept
    /// decoded from then on. So what nobody looks into costs no more than its bytes, and what is looked
    /// into costs as much as without; [`packed`](Self::packed) takes less memory, and more time for those
    /// who read the same object again and again.
    ///
    /// What needs no body is as with [`packed`](Self::packed), and so is an object that does not decode: it is
    /// reported once, when it is first read, and broken until its next state. A [`transform`](Self::transform), or an index by a function of the whole object, reads each
    /// state that comes, so with one every object is decoded at once. Of a packed cache objects are not
    /// decoded before they are read anyway, and this changes nothing there.
    pub fn lazy(self) -> Self {
        self.lazily(true)
    }

    pub(crate) fn lazily(mut self, is_lazy: bool) -> Self {
        self.keeping.is_lazy = is_lazy;
        self
    }

    pub(crate) fn packing(mut self, options: PackOptions<K>) -> Self {
        self.keeping.packing = Some(options);
        self
    }
}

impl<K> Builder<Pruned<K>>
where
    Pruned<K>: Resource + Send + Sync + 'static,
{
    /// Cuts everything out of every object before it is decoded but these fields, what says which object it
    /// is, and labels; [`pruning`](crate::pruning) says how that goes with [`prune`](Self::prune), and what
    /// it asks of the type. The last call counts.
    ///
    /// Only a [`Pruned`] type has this, for nobody is to write such an object back:
    ///
    /// ```compile_fail,E0599
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::shared_informer::Builder;
    /// fn names(pods: Builder<Pod>) -> Builder<Pod> {
    ///     pods.keep([])
    /// }
    /// ```
    pub fn keep(mut self, fields: impl IntoIterator<Item = FieldPath>) -> Self {
        self.keeping.pruning.keep(fields);
        self
    }
}

/// Reports an object that turned out not to decode when it was read.
fn reporting<K: Send + Sync + 'static>(
    report: &Reporter,
    // Not kept alive by objects, which the loop itself has.
    commands: WeakUnboundedSender<Command<K>>,
) -> impl Fn(&DecodeError) + Send + Sync + 'static {
    let (report, ration) = (report.clone(), Mutex::new(Ration::default()));
    move |error| {
        if let (Some(commands), Some(name)) = (commands.upgrade(), error.object_name()) {
            // An informer that has ended changes nothing any more.
            let _ = commands.send(Command::FoundBroken(name.clone()));
        }
        report.skipped(&Error::Decode(error.clone()), &mut ration.lock());
    }
}
