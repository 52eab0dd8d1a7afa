//! [`Body`] is the stored content of one object. [`Form`] is the form in which a cache stores its objects:
//! decoded, lazy (as bytes until the first read) or packed (as compressed bytes).
//!
//! Code outside this module works with [`Object`] and does not depend on the form. [`Housekeeping`] does the
//! background work of a form, such as compression.

mod lazy;
#[cfg(feature = "packed")]
mod packed;
mod reading;

pub(crate) use self::reading::{UnreadCount, UnreadMoment};

use std::{collections::BTreeMap, marker::PhantomData, sync::Arc};

use derive_where::derive_where;
use futures_core::future::BoxFuture;
use kube_core::Resource;

#[cfg(feature = "packed")]
use self::packed::{PackOptions, PackedBody, PackedDecoder};
use self::{
    lazy::{LazyBody, LazyDecoder},
    reading::Reading,
};
use super::{DecodeError, Object, ObjectName, labels::Labels};
use crate::codec::{Encoded, Identity, Unfit};

pub(crate) type Decode<K> = fn(Encoded<'_>) -> Result<K, Unfit>;

/// A callback that receives the decode error of an object, once per object.
pub(crate) type OnBroken = Box<dyn Fn(&DecodeError) + Send + Sync>;

#[derive_where(Clone)]
pub(super) enum Body<K> {
    Live(Live<K>),
    #[cfg(feature = "packed")]
    Packed(PackedBody<K>),
    Lazy(Arc<LazyBody<K>>),
    Broken(Box<Broken>),
}

#[derive_where(Clone)]
pub(super) struct Live<K> {
    pub(super) object: Arc<K>,
    /// Number of heap bytes that the decoded object uses, as counted by the decoder.
    pub(super) heap_bytes: u32,
}

#[derive(Clone)]
pub(super) struct Broken {
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) error: DecodeError,
}

/// Size in bytes of the two reference counts of an `Arc`.
pub(super) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

impl<K> Body<K> {
    /// Returns the decoded object. If `is_kept` is true, a lazy body replaces the stored bytes with the
    /// decoded object.
    pub(super) fn open(&self, name: &ObjectName, is_kept: bool) -> Result<Arc<K>, DecodeError> {
        match self {
            Self::Live(live) => Ok(Arc::clone(&live.object)),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.open(name),
            Self::Lazy(lazy) => lazy.open(name, is_kept),
            Self::Broken(broken) => Err(broken.error.clone()),
        }
    }

    pub(super) fn live(&self) -> Option<&K> {
        match self {
            Self::Live(live) => Some(&live.object),
            _ => None,
        }
    }

    pub(super) fn broken(&self) -> Option<&DecodeError> {
        match self {
            Self::Broken(broken) => Some(&broken.error),
            _ => None,
        }
    }

    pub(super) fn is_decoded_each_time(&self) -> bool {
        !matches!(self, Self::Live(_) | Self::Lazy(_) | Self::Broken(_))
    }

    pub(super) fn was_just_decoded(&self) -> bool {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.was_just_decoded(),
            _ => false,
        }
    }

    pub(super) fn prefetched(&self, name: &ObjectName) -> Option<Arc<K>> {
        #[cfg(not(feature = "packed"))]
        let _ = name;
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.prefetched(name).ok(),
            _ => None,
        }
    }

    /// Returns the estimated size of the body in bytes, including a decoded object that it stores.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Live(live) => COUNTS_BYTES + size_of::<K>() + live.heap_bytes as usize,
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.size() + packed.uid().len(),
            Self::Lazy(lazy) => COUNTS_BYTES + lazy.size() + lazy.uid().len(),
            Self::Broken(broken) => size_of::<Broken>() + broken.uid.len(),
        }
    }

    pub(super) fn shared_size(&self) -> Option<usize> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => Some(packed.shared_size()),
            _ => None,
        }
    }

    pub(super) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.with_encoded(read),
            Self::Lazy(lazy) => lazy.with_encoded(read),
            Self::Live(_) | Self::Broken(_) => None,
        }
    }

    fn reading(&self) -> Option<(&Reading, &UnreadCount)> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => Some(packed.reading()),
            Self::Lazy(lazy) => Some(lazy.reading()),
            Self::Live(_) | Self::Broken(_) => None,
        }
    }

    /// Returns the uid, labels and decode error of the object if an earlier attempt to decode it failed.
    fn found_broken(&self) -> Option<Broken> {
        let (uid, labels, error) = match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => (packed.uid(), packed.labels(), packed.unfit()?),
            Self::Lazy(lazy) => (lazy.uid(), lazy.labels(), lazy.unfit()?),
            Self::Live(_) | Self::Broken(_) => return None,
        };
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Some(Broken {
            uid: uid.to_owned(),
            labels: labels.iter().map(own).collect(),
            error,
        })
    }
}

impl<K: Resource> Body<K> {
    pub(super) fn uid(&self) -> &str {
        match self {
            Self::Live(live) => live.object.meta().uid.as_deref().unwrap_or_default(),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.uid(),
            Self::Lazy(lazy) => lazy.uid(),
            Self::Broken(broken) => &broken.uid,
        }
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        match self {
            Self::Live(live) => Labels::of_map(live.object.meta().labels.as_ref()),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.labels(),
            Self::Lazy(lazy) => lazy.labels(),
            Self::Broken(broken) => Labels::of_map(Some(&broken.labels)),
        }
    }
}

/// Informer option that selects how the cache stores objects: decoded, lazy (as bytes until the first read)
/// or packed (as compressed bytes).
///
/// [`Form`] is the same selection, together with the cache's decoder.
#[derive_where(Clone, Copy, Default)]
pub(crate) enum FormOptions<K> {
    #[derive_where(default)]
    Decoded(PhantomData<fn() -> K>),
    Lazy,
    #[cfg(feature = "packed")]
    Packed(PackOptions<K>),
}

#[cfg(feature = "packed")]
impl<K: crate::pruning::Storable> FormOptions<K> {
    /// Selects the packed form. `objects` is the number of objects from which a compression dictionary is
    /// sampled; `None` selects the default.
    pub(crate) fn packed(objects: Option<usize>) -> Self {
        Self::Packed(objects.map_or_else(PackOptions::default, PackOptions::new))
    }
}

impl<K> FormOptions<K> {
    /// Returns `self` or `general`, whichever takes less memory: packed before lazy, and lazy before decoded.
    pub(crate) fn or(self, general: Self) -> Self {
        if self.rank() >= general.rank() {
            self
        } else {
            general
        }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Decoded(_) => 0,
            Self::Lazy => 1,
            #[cfg(feature = "packed")]
            Self::Packed(_) => 2,
        }
    }

    pub(crate) fn is_lazy(self) -> bool {
        matches!(self, Self::Lazy)
    }

    pub(crate) fn is_packed(self) -> bool {
        self.rank() == 2
    }
}

/// The form in which one cache stores objects, with the cache's decoder.
#[derive_where(Clone)]
pub(crate) enum Form<K> {
    Decoded,
    Lazy(Arc<LazyDecoder<K>>),
    #[cfg(feature = "packed")]
    Packed {
        decoder: Arc<PackedDecoder<K>>,
        /// Whether a received object is stored uncompressed until [`Housekeeping`] compresses it.
        ///
        /// If true, the object's event does not wait for compression.
        is_urgent: bool,
    },
}

impl<K> Form<K> {
    pub(crate) fn new(options: FormOptions<K>, decode: Decode<K>, on_broken: OnBroken) -> Self {
        match options {
            FormOptions::Decoded(_) => Self::Decoded,
            FormOptions::Lazy => Self::Lazy(Arc::new(LazyDecoder::new(decode, on_broken))),
            #[cfg(feature = "packed")]
            FormOptions::Packed(options) => Self::Packed {
                decoder: Arc::new(PackedDecoder::new(options, decode, on_broken)),
                is_urgent: false,
            },
        }
    }

    /// Configures the packed form to store received objects uncompressed at first. Other forms do not change.
    ///
    /// [`Housekeeping`] compresses the objects later, so that events do not wait for compression.
    pub(crate) fn urgent(self) -> Self {
        match self {
            Self::Decoded | Self::Lazy(_) => self,
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => Self::Packed {
                decoder,
                is_urgent: true,
            },
        }
    }

    /// Returns whether the cache decodes each object on receipt and stores it decoded.
    pub(crate) fn is_decoded(&self) -> bool {
        matches!(self, Self::Decoded)
    }

    /// Returns whether the cache stores the bytes of every object: `true` only for the packed form.
    ///
    /// If the informer has a transform, the lazy form stores decoded objects without bytes.
    pub(crate) fn always_keeps_bytes(&self) -> bool {
        !matches!(self, Self::Decoded | Self::Lazy(_))
    }

    /// Returns the counter of all objects of the cache that are not decoded yet. Returns `None` if the cache
    /// stores its objects decoded.
    pub(crate) fn unread(&self) -> Option<&Arc<UnreadCount>> {
        match self {
            Self::Decoded => None,
            Self::Lazy(lazy) => Some(lazy.unread()),
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => Some(decoder.unread()),
        }
    }

    /// Creates an [`Object`] that decodes `encoded` on demand. Returns `None` if the cache stores its objects
    /// decoded.
    pub(crate) fn keep(
        &self,
        name: ObjectName,
        identity: &Identity<'_>,
        encoded: Encoded<'_>,
        wire_bytes: usize,
    ) -> Option<Object<K>> {
        let (uid, labels) = (&identity.metadata.uid, identity.labels());
        let body = match self {
            Self::Decoded => return None,
            Self::Lazy(lazy) => Body::Lazy(lazy.body(uid, labels, encoded)),
            #[cfg(feature = "packed")]
            Self::Packed { decoder, is_urgent } => Body::Packed(if *is_urgent {
                decoder.pending_body(uid, labels, encoded)
            } else {
                decoder.body(uid, labels, encoded)
            }),
        };
        Some(Object::with_body(name, identity, wire_bytes, body))
    }

    /// Converts a decoded object to this form.
    ///
    /// The lazy form returns the object unchanged.
    pub(crate) fn convert(&self, object: Object<K>) -> Object<K> {
        match self {
            // The lazy form also stores a changed object decoded.
            Self::Decoded | Self::Lazy(_) => object,
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => decoder.convert(object),
        }
    }

    /// Creates the [`Housekeeping`] of one store. Returns `None` if the store is not packed, because only
    /// packed objects need background work.
    pub(crate) fn housekeeping(&self) -> Option<Box<dyn Housekeeping<K>>>
    where
        K: Send + Sync + 'static,
    {
        match self {
            Self::Decoded | Self::Lazy(_) => None,
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => Some(packed::housekeeping(decoder)),
        }
    }

    /// Creates a compression dictionary if one is due, and then compresses `objects` with the new dictionary.
    ///
    /// `objects` are loaded objects that are not in a store yet. `more_comes` is whether the caller will load
    /// more objects. Has an effect only in the packed form. Blocks the thread.
    pub(crate) fn keep_house(&self, objects: &[Vec<Object<K>>], more_comes: bool) {
        match self {
            Self::Decoded | Self::Lazy(_) => {}
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => packed::keep_house(decoder, objects, more_comes),
        }
        #[cfg(not(feature = "packed"))]
        let _ = (objects, more_comes);
    }
}

/// A function that returns the received objects of an incomplete list.
pub(crate) type StagedObjects<'a, K> = &'a (dyn Fn() -> Vec<Object<K>> + Sync);

/// A function that returns the object after the given name in the store's order; `None` requests the first
/// one.
pub(crate) type ObjectAfter<'a, K> = &'a dyn Fn(Option<&ObjectName>) -> Option<Object<K>>;

/// The background work, such as compression, for the objects of one store.
pub(crate) trait Housekeeping<K>: Send {
    /// Collects an added or updated object for later compression in a batch.
    ///
    /// The compression of a batch starts when the batch is large enough, at the latest at the next call of
    /// [`paused`](Self::paused).
    fn handed_on(&mut self, object: &Object<K>);

    /// Starts the compression of all objects that were passed to [`handed_on`](Self::handed_on), even if the
    /// batch is small.
    ///
    /// The reflector calls this method for each bookmark. Otherwise, a small batch would stay uncompressed
    /// until more objects are added.
    fn paused(&mut self);

    /// Creates a compression dictionary if enough objects have been sampled. If there is a new dictionary,
    /// compresses the objects of `staged` with it.
    ///
    /// `staged` returns the received objects of the list in progress, which are not in the store yet.
    /// `more_comes` is whether the server will send more objects of this list.
    fn decoded<'a>(
        &'a mut self,
        staged: StagedObjects<'a, K>,
        more_comes: bool,
    ) -> BoxFuture<'a, ()>;

    /// Returns whether [`step`](Self::step) still has objects of the store to compress.
    fn has_work(&self) -> bool;

    /// Compresses some objects of the store. One call takes about half a millisecond.
    fn step(&mut self, after: ObjectAfter<'_, K>);
}
