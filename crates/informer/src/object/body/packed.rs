//! [`PackedDecoder`]: what the packed objects of one informer have in common: how they are packed, and how
//! they become objects again.
//!
//! An object is decoded when it is read, and dropped when no reader has it any more. Readers of the same
//! state at nearly the same time get the same one: the last few are kept, and of some more it is known where
//! they are.

mod housekeeping;
mod packing;

pub(super) use self::housekeeping::{housekeeping, keep_house};

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use derive_where::derive_where;
use parking_lot::Mutex;

use self::packing::{Packed, Packing, SAMPLES};
use super::{
    super::{
        DecodeError, Inner, Object, ObjectName,
        labels::{LabelSet, LabelSets, Labels},
    },
    Body, Decode, OnBroken,
    reading::{Reading, UnreadCount},
};
use crate::{
    codec::{Codec, Encoded, Unfit},
    panics::confined,
    pruning::{Storable, Stored},
};

/// Of so many objects it is known where they are, if anybody has them. What is known of one that nobody
/// has any more holds as many bytes as the type has without what it points to: of a pod some 4 KB.
const RECENT_MAX: usize = 128;

/// So many are kept although nobody may have them, those that were decoded last: handlers and indices
/// take turns at one object.
const HOT: usize = 16;

/// Of fewer objects no dictionary can be made.
const OBJECTS_MIN: usize = 8;

/// Writes an object; `None` if the type can't be written.
type Encode<K> = fn(&K) -> Option<Vec<u8>>;

/// How objects are written that were changed after they were decoded.
const WRITTEN: Codec = Codec::Json;

/// How objects are packed, as users ask for it.
#[derive_where(Clone, Copy)]
pub(crate) struct PackOptions<K> {
    /// So many make a dictionary.
    pub(crate) objects: usize,
    encode: Encode<K>,
}

impl<K: Storable> PackOptions<K> {
    /// With dictionaries of so many objects.
    pub(crate) fn new(objects: usize) -> Self {
        Self {
            objects: objects.max(OBJECTS_MIN),
            encode: |object| confined(|| WRITTEN.encode(&Stored(object))).ok()?,
        }
    }
}

impl<K: Storable> Default for PackOptions<K> {
    fn default() -> Self {
        Self::new(SAMPLES)
    }
}

/// One per informer.
pub(crate) struct PackedDecoder<K> {
    packing: Packing,
    decode: Decode<K>,
    encode: Encode<K>,
    on_broken: OnBroken,
    labels: LabelSets,
    /// Gives each body a number of its own.
    bodies: AtomicU64,
    recent: Vec<Mutex<Recent<K>>>,
    hot: Mutex<Hot<K>>,
    unread: Arc<UnreadCount>,
}

/// Where the object of a body is, if anything has it.
struct Recent<K> {
    number: u64,
    object: Weak<K>,
}

struct Hot<K> {
    objects: Vec<Arc<K>>,
    next: usize,
}

/// The body of one object.
pub(in crate::object) struct PackedBody<K> {
    decoder: Arc<PackedDecoder<K>>,
    number: u64,
    uid: Box<str>,
    labels: LabelSet,
    kept: Mutex<Kept>,
    reading: Reading,
    /// Whether it is as it came, and to be packed later.
    pending: AtomicBool,
}

/// What is kept of a body.
#[derive(Clone)]
enum Kept {
    Bytes(Codec, Packed),
    /// It was decoded in vain: the bytes are of no use, and each read returns the same error.
    Unfit(DecodeError),
}

impl Kept {
    fn packed(&self) -> Option<&Packed> {
        match self {
            Self::Bytes(_, packed) => Some(packed),
            Self::Unfit(_) => None,
        }
    }

    fn packed_mut(&mut self) -> Option<&mut Packed> {
        match self {
            Self::Bytes(_, packed) => Some(packed),
            Self::Unfit(_) => None,
        }
    }
}

impl<K> Clone for PackedBody<K> {
    fn clone(&self) -> Self {
        Self {
            decoder: Arc::clone(&self.decoder),
            number: self.number,
            uid: self.uid.clone(),
            labels: Arc::clone(&self.labels),
            kept: Mutex::new(self.kept.lock().clone()),
            reading: self.reading.of_copy(),
            pending: AtomicBool::new(self.pending.load(Ordering::Relaxed)),
        }
    }
}

impl<K> PackedDecoder<K> {
    pub(crate) fn new(options: PackOptions<K>, decode: Decode<K>, on_broken: OnBroken) -> Self {
        let recent = || {
            Mutex::new(Recent {
                number: 0,
                object: Weak::new(),
            })
        };
        Self {
            packing: Packing::new(options.objects),
            decode,
            encode: options.encode,
            on_broken,
            labels: LabelSets::default(),
            bodies: AtomicU64::new(1),
            recent: std::iter::repeat_with(recent).take(RECENT_MAX).collect(),
            hot: Mutex::new(Hot {
                objects: Vec::new(),
                next: 0,
            }),
            unread: Arc::default(),
        }
    }

    /// How many objects of its store have not been decoded.
    pub(crate) fn unread(&self) -> &Arc<UnreadCount> {
        &self.unread
    }

    fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The same state, packed, if it was kept decoded and can be written.
    pub(super) fn convert(self: &Arc<Self>, object: Object<K>) -> Object<K> {
        let Some(bytes) = object.inner.body.live().and_then(self.encode) else {
            return object;
        };
        let encoded = WRITTEN.object(&bytes);
        let Some(identity) = encoded.identity() else {
            return object;
        };
        let read = PackedBody {
            reading: Reading::done(),
            ..self.body(&identity.metadata.uid, identity.labels(), encoded)
        };
        let Inner {
            name,
            revision,
            wire_bytes,
            uid,
            ..
        } = &*object.inner;
        Object {
            inner: Arc::new(Inner {
                name: name.clone(),
                revision: revision.clone(),
                wire_bytes: *wire_bytes,
                uid: *uid,
                body: Body::Packed(read),
            }),
        }
    }

    pub(super) fn body<'l>(
        self: &Arc<Self>,
        uid: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        encoded: Encoded<'_>,
    ) -> PackedBody<K> {
        let packed = self.packing.pack(encoded.bytes());
        self.kept(uid, labels, Kept::Bytes(encoded.codec(), packed))
    }

    /// The same, to be packed later: packing takes as long as a handler waits for a lone event.
    pub(super) fn pending_body<'l>(
        self: &Arc<Self>,
        uid: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        encoded: Encoded<'_>,
    ) -> PackedBody<K> {
        let packed = Packed::as_it_is(encoded.bytes());
        PackedBody {
            pending: AtomicBool::new(true),
            ..self.kept(uid, labels, Kept::Bytes(encoded.codec(), packed))
        }
    }

    fn kept<'l>(
        self: &Arc<Self>,
        uid: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        kept: Kept,
    ) -> PackedBody<K> {
        PackedBody {
            decoder: Arc::clone(self),
            number: self.bodies.fetch_add(1, Ordering::Relaxed),
            uid: Box::from(uid),
            labels: self.labels.shared(labels),
            kept: Mutex::new(kept),
            reading: Reading::default(),
            pending: AtomicBool::new(false),
        }
    }

    fn recent(&self, number: u64) -> &Mutex<Recent<K>> {
        let at = usize::try_from(number % RECENT_MAX as u64).unwrap_or_default();
        &self.recent[at]
    }

    fn note(&self, number: u64, object: &Arc<K>) {
        let before = {
            let mut recent = self.recent(number).lock();
            recent.number = number;
            std::mem::replace(&mut recent.object, Arc::downgrade(object))
        };
        drop(before);
    }

    fn keep_hot(&self, object: &Arc<K>) {
        let mut hot = self.hot.lock();
        let at = hot.next;
        hot.next = (at + 1) % HOT;
        let before = hot.objects.get_mut(at);
        let before = before.map(|kept| std::mem::replace(kept, Arc::clone(object)));
        if before.is_none() {
            hot.objects.push(Arc::clone(object));
        }
        // It may be the last of it, and freeing an object takes a while.
        drop(hot);
        drop(before);
    }
}

impl<K> PackedBody<K> {
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        Labels::of_set(&self.labels)
    }

    /// What its bytes take.
    pub(super) fn size(&self) -> usize {
        self.kept.lock().packed().map_or(0, Packed::size)
    }

    pub(super) fn reading(&self) -> (&Reading, &UnreadCount) {
        (&self.reading, &self.decoder.unread)
    }

    /// Reads its bytes, unless it was decoded in vain.
    pub(super) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        match &*self.kept.lock() {
            Kept::Bytes(codec, packed) => packed.unpacked(|it| read(codec.object(it))).ok(),
            Kept::Unfit(_) => None,
        }
    }

    /// Why it does not decode, if it was decoded in vain.
    pub(super) fn unfit(&self) -> Option<DecodeError> {
        match &*self.kept.lock() {
            Kept::Bytes(..) => None,
            Kept::Unfit(error) => Some(error.clone()),
        }
    }

    /// Whether it was decoded, and not so many others since.
    pub(super) fn was_just_decoded(&self) -> bool {
        self.decoder.recent(self.number).lock().number == self.number
    }

    /// What all that are packed alike share, in bytes.
    pub(super) fn shared_size(&self) -> usize {
        self.decoder.packing.size()
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    /// Packs it, if that was put off.
    fn pack_now(&self) {
        if self.pending.swap(false, Ordering::Relaxed) {
            let mut kept = self.kept.lock();
            if let Some(packed) = kept.packed_mut()
                && let Some(raw) = packed.raw()
            {
                *packed = self.decoder.packing.pack(raw);
            }
        }
    }

    fn repack(&self) {
        if let Some(packed) = self.kept.lock().packed_mut() {
            self.decoder.packing.repack(packed);
        }
    }

    /// The object, decoded if nobody is known to have it.
    pub(super) fn open(&self, name: &ObjectName) -> Result<Arc<K>, DecodeError> {
        let (object, is_new) = self.find_or_decode(name)?;
        if is_new {
            self.decoder.keep_hot(&object);
        }
        Ok(object)
    }

    /// The same for a reader to come, while the result is held.
    pub(super) fn prefetched(&self, name: &ObjectName) -> Result<Arc<K>, DecodeError> {
        Ok(self.find_or_decode(name)?.0)
    }

    /// The object, if somebody is known to have it.
    fn found(&self) -> Option<Arc<K>> {
        let recent = self.decoder.recent(self.number).lock();
        let object = (recent.number == self.number).then(|| recent.object.upgrade());
        object.flatten()
    }

    /// With whether it was decoded.
    fn find_or_decode(&self, name: &ObjectName) -> Result<(Arc<K>, bool), DecodeError> {
        if let Some(object) = self.found() {
            return Ok((object, false));
        }
        let mut kept = self.kept.lock();
        // Somebody may just have decoded it.
        if let Some(object) = self.found() {
            return Ok((object, false));
        }
        let decoded = match &*kept {
            Kept::Bytes(codec, packed) => {
                packed.unpacked(|bytes| (self.decoder.decode)(codec.object(bytes)))
            }
            Kept::Unfit(error) => return Err(error.clone()),
        };
        let decoded = decoded.unwrap_or_else(|_| {
            Err(Unfit {
                field: ".".to_owned(),
                reason: "what was packed has changed in memory".to_owned(),
            })
        });
        match decoded {
            Ok(object) => {
                let object = Arc::new(object);
                self.decoder.note(self.number, &object);
                self.reading.end(&self.decoder.unread);
                Ok((object, true))
            }
            Err(Unfit { field, reason }) => {
                let error = DecodeError::new(Some(name.clone()), &field, &reason);
                *kept = Kept::Unfit(error.clone());
                // The user's own code runs next, and may read the object.
                drop(kept);
                self.reading.end(&self.decoder.unread);
                (self.decoder.on_broken)(&error);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
impl<K> Object<K> {
    /// How many bytes its packed body takes; `None` if it is kept in another form.
    pub(crate) fn packed_bytes(&self) -> Option<usize> {
        match &self.inner.body {
            Body::Packed(packed) => Some(packed.size()),
            Body::Live(_) | Body::Lazy(_) | Body::Broken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
