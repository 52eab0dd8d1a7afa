//! [`PackedDecoder`] stores an informer's objects as compressed bytes, and decodes an object on read.
//!
//! Guarantees: a decoded object is freed when the last reader drops the object. Only the [`HOT`] most
//! recently decoded objects stay in memory longer. The decoder also holds weak references to at most
//! [`RECENT_MAX`] recently decoded objects. A read of such an object returns the decoded object if it is
//! still alive.

mod housekeeping;
mod packing;

pub(super) use self::housekeeping::{housekeeping, keep_house};

use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use derive_where::derive_where;
use parking_lot::Mutex;

use self::packing::{BaseOfLabels, Kin, Packed, Packing, SAMPLES};
use super::{
    super::{
        DecodeError, Inner, Object, ObjectName,
        labels::{LabelSet, LabelSets, Labels},
        uid::UidHash,
    },
    Body, Decode, OnBroken,
    reading::{Reading, UnreadCount},
};
use crate::{
    codec::{Codec, Encoded, Unfit},
    panics::confined,
    pruning::{Storable, Stored},
};

/// Maximum number of weak references to recently decoded objects that a decoder holds.
///
/// Each weak reference prevents the `Arc` allocation of a dropped object from being freed, about 4 KB for a
/// pod.
const RECENT_MAX: usize = 128;

/// Number of recently decoded objects that a decoder keeps alive, so that consecutive readers share them.
const HOT: usize = 16;

/// Minimum of [`PackOptions::objects`], the number of objects from which a dictionary is sampled.
const OBJECTS_MIN: usize = 8;

type Encode<K> = fn(&K) -> Option<Vec<u8>>;

/// Encoding of objects that the cache itself has serialized.
///
/// The cache serializes an object if the received bytes can't be stored, for example because a transform has
/// changed the object.
const WRITTEN: Codec = Codec::Json;

#[derive_where(Clone, Copy)]
pub(crate) struct PackOptions<K> {
    /// Number of objects that the cache must receive before it creates a compression dictionary. Fewer
    /// objects are sufficient if they are large.
    pub(crate) objects: usize,
    encode: Encode<K>,
}

impl<K: Storable> PackOptions<K> {
    /// `objects` below [`OBJECTS_MIN`] counts as [`OBJECTS_MIN`].
    pub(crate) fn new(objects: usize) -> Self {
        Self {
            objects: objects.max(OBJECTS_MIN),
            encode: |object| confined(|| Codec::encode(&Stored(object))).ok()?,
        }
    }
}

impl<K: Storable> Default for PackOptions<K> {
    fn default() -> Self {
        Self::new(SAMPLES)
    }
}

pub(crate) struct PackedDecoder<K> {
    packing: Packing,
    decode: Decode<K>,
    encode: Encode<K>,
    on_broken: OnBroken,
    labels: LabelSets<BaseOfLabels>,
    bodies: AtomicU64,
    recent: Vec<Mutex<Recent<K>>>,
    hot: Mutex<Hot<K>>,
    unread: Arc<UnreadCount>,
}

/// A weak reference to a decoded object. `number` identifies the [`PackedBody`] from which the object was
/// decoded.
struct Recent<K> {
    number: u64,
    object: Weak<K>,
}

struct Hot<K> {
    objects: Vec<Arc<K>>,
    next: usize,
}

/// The stored bytes of one object. A read decodes them, unless the decoded object is still alive.
pub(in crate::object) struct PackedBody<K> {
    decoder: Arc<PackedDecoder<K>>,
    number: u64,
    uid: Box<str>,
    labels: Arc<LabelSet<BaseOfLabels>>,
    codec: Codec,
    kept: Mutex<Kept>,
    reading: Reading,
    /// Whether the bytes are uncompressed, and the cache's background task must still compress them.
    pending: AtomicBool,
}

#[derive(Clone)]
enum Kept {
    Bytes(Packed),
    /// Decoding failed. The bytes were dropped, and each read returns this error.
    Unfit(DecodeError),
}

impl Kept {
    fn packed(&self) -> Option<&Packed> {
        match self {
            Self::Bytes(packed) => Some(packed),
            Self::Unfit(_) => None,
        }
    }

    fn packed_mut(&mut self) -> Option<&mut Packed> {
        match self {
            Self::Bytes(packed) => Some(packed),
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
            codec: self.codec,
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

    pub(crate) fn unread(&self) -> &Arc<UnreadCount> {
        &self.unread
    }

    fn packing(&self) -> &Packing {
        &self.packing
    }

    /// Converts a decoded object to a packed object, or returns `object` unchanged if that is impossible.
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
        let labels = self.labels.shared(labels);
        let kin = Kin {
            uid: UidHash::of(uid),
            base: labels.value(),
        };
        let packed = self.packing.pack(encoded.bytes(), kin);
        self.kept(uid, labels, encoded.codec(), packed)
    }

    /// Creates a body whose bytes stay uncompressed until background work compresses them.
    ///
    /// Immediate compression would double the time until the object's event is delivered.
    pub(super) fn pending_body<'l>(
        self: &Arc<Self>,
        uid: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        encoded: Encoded<'_>,
    ) -> PackedBody<K> {
        let packed = Packed::as_it_is(encoded.bytes());
        PackedBody {
            pending: AtomicBool::new(true),
            ..self.kept(uid, self.labels.shared(labels), encoded.codec(), packed)
        }
    }

    fn kept(
        self: &Arc<Self>,
        uid: &str,
        labels: Arc<LabelSet<BaseOfLabels>>,
        codec: Codec,
        packed: Packed,
    ) -> PackedBody<K> {
        PackedBody {
            decoder: Arc::clone(self),
            number: self.bodies.fetch_add(1, Ordering::Relaxed),
            uid: Box::from(uid),
            labels,
            codec,
            kept: Mutex::new(Kept::Bytes(packed)),
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
        // Unlock first: this may drop the last reference, and freeing an object takes a while.
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

    /// Returns the number of stored bytes, or 0 if decoding failed.
    pub(super) fn size(&self) -> usize {
        self.kept.lock().packed().map_or(0, Packed::size)
    }

    pub(super) fn reading(&self) -> (&Reading, &UnreadCount) {
        (&self.reading, &self.decoder.unread)
    }

    /// Calls `read` with the decompressed bytes.
    ///
    /// Returns `None` if the bytes are damaged, or were dropped after an earlier read failed to decode them.
    pub(super) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        match &*self.kept.lock() {
            Kept::Bytes(packed) => packed.unpacked(|it| read(self.codec.object(it))).ok(),
            Kept::Unfit(_) => None,
        }
    }

    pub(super) fn unfit(&self) -> Option<DecodeError> {
        match &*self.kept.lock() {
            Kept::Bytes(_) => None,
            Kept::Unfit(error) => Some(error.clone()),
        }
    }

    /// Returns whether the decoder still has a weak reference to the decoded object; see [`RECENT_MAX`].
    pub(super) fn was_just_decoded(&self) -> bool {
        self.decoder.recent(self.number).lock().number == self.number
    }

    pub(super) fn shared_size(&self) -> usize {
        self.decoder.packing.size()
    }

    fn kin(&self) -> Kin<'_> {
        Kin {
            uid: UidHash::of(&self.uid),
            base: self.labels.value(),
        }
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    fn pack_now(&self) {
        if self.pending.swap(false, Ordering::Relaxed) {
            let mut kept = self.kept.lock();
            if let Some(packed) = kept.packed_mut()
                && let Some(raw) = packed.raw()
            {
                *packed = self.decoder.packing.pack(raw, self.kin());
            }
        }
    }

    fn repack(&self) {
        if let Some(packed) = self.kept.lock().packed_mut() {
            self.decoder.packing.repack(packed, self.kin());
        }
    }

    /// Returns the decoded object.
    ///
    /// If this call decodes the object, the decoder keeps it alive until `open` has decoded [`HOT`] more
    /// objects.
    pub(super) fn open(&self, name: &ObjectName) -> Result<Arc<K>, DecodeError> {
        let (object, is_new) = self.find_or_decode(name)?;
        if is_new {
            self.decoder.keep_hot(&object);
        }
        Ok(object)
    }

    /// Returns the decoded object in advance of a call of [`open`](Self::open).
    ///
    /// The caller must hold the result until the reader calls `open`. Otherwise, `open` decodes the object
    /// again.
    pub(super) fn prefetched(&self, name: &ObjectName) -> Result<Arc<K>, DecodeError> {
        Ok(self.find_or_decode(name)?.0)
    }

    /// Returns the decoded object if it is still in memory.
    fn found(&self) -> Option<Arc<K>> {
        let recent = self.decoder.recent(self.number).lock();
        let object = (recent.number == self.number).then(|| recent.object.upgrade());
        object.flatten()
    }

    /// Returns the decoded object, and whether this call decoded it.
    fn find_or_decode(&self, name: &ObjectName) -> Result<(Arc<K>, bool), DecodeError> {
        if let Some(object) = self.found() {
            return Ok((object, false));
        }
        let mut kept = self.kept.lock();
        // Another thread may have decoded it in the meantime.
        if let Some(object) = self.found() {
            return Ok((object, false));
        }
        let decoded = match &*kept {
            Kept::Bytes(packed) => {
                packed.unpacked(|bytes| (self.decoder.decode)(self.codec.object(bytes)))
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
                // Unlock before the user's callback, which may read the object.
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
    pub(crate) fn packed_bytes(&self) -> Option<usize> {
        match &self.inner.body {
            Body::Packed(packed) => Some(packed.size()),
            Body::Live(_) | Body::Lazy(_) | Body::Broken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
