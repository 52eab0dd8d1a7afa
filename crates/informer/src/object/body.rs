//! [`Body`]: what a handle has of its object, and [`Form`]: in which form a cache keeps its objects.
//!
//! No other stage knows which forms there are. The reflector gives each form a chance to keep its objects in
//! order ([`Housekeeping`]); what that does is the form's own.

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

/// How the bytes of an object become one.
pub(crate) type Decode<K> = fn(Encoded<'_>) -> Result<K, Unfit>;

/// Told of each object that did not decode when it was read.
pub(crate) type OnBroken = Box<dyn Fn(&DecodeError) + Send + Sync>;

/// What a handle has of its object. No other stage looks at which it is.
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
    /// What it takes beyond itself, as far as its decoding could tell. It stands here because a packed body
    /// is larger, so a handle does not grow by it.
    pub(super) heap_bytes: u32,
}

#[derive(Clone)]
pub(super) struct Broken {
    pub(super) uid: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) error: DecodeError,
}

/// The counts that an `Arc` has beside what it points to.
pub(super) const COUNTS_BYTES: usize = 2 * size_of::<usize>();

impl<K> Body<K> {
    /// The object. With `is_kept` a lazy body stays decoded.
    pub(super) fn open(&self, name: &ObjectName, is_kept: bool) -> Result<Arc<K>, DecodeError> {
        match self {
            Self::Live(live) => Ok(Arc::clone(&live.object)),
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.open(name),
            Self::Lazy(lazy) => lazy.open(name, is_kept),
            Self::Broken(broken) => Err(broken.error.clone()),
        }
    }

    /// The object by reference, if it is kept decoded and is good.
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

    /// Whether an object that is decoded each time was decoded, and few others since.
    pub(super) fn was_just_decoded(&self) -> bool {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.was_just_decoded(),
            _ => false,
        }
    }

    /// The object, if it is decoded each time, for a reader to come.
    pub(super) fn prefetched(&self, name: &ObjectName) -> Option<Arc<K>> {
        #[cfg(not(feature = "packed"))]
        let _ = name;
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.prefetched(name).ok(),
            _ => None,
        }
    }

    /// What it takes, in bytes, with the object if it is kept decoded.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Live(live) => COUNTS_BYTES + size_of::<K>() + live.heap_bytes as usize,
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.size() + packed.uid().len(),
            Self::Lazy(lazy) => COUNTS_BYTES + lazy.size() + lazy.uid().len(),
            Self::Broken(broken) => size_of::<Broken>() + broken.uid.len(),
        }
    }

    /// What it shares with all others of its cache, in bytes; `None` if it shares nothing.
    pub(super) fn shared_size(&self) -> Option<usize> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => Some(packed.shared_size()),
            _ => None,
        }
    }

    /// Reads its bytes, if it is kept as bytes and was not decoded in vain. Nothing is decoded.
    pub(super) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => packed.with_encoded(read),
            Self::Lazy(lazy) => lazy.with_encoded(read),
            Self::Live(_) | Self::Broken(_) => None,
        }
    }

    /// Whether it was decoded, and where that is counted; `None` if it never is on demand.
    fn reading(&self) -> Option<(&Reading, &UnreadCount)> {
        match self {
            #[cfg(feature = "packed")]
            Self::Packed(packed) => Some(packed.reading()),
            Self::Lazy(lazy) => Some(lazy.reading()),
            Self::Live(_) | Self::Broken(_) => None,
        }
    }

    /// The broken body in its place, if it was decoded in vain.
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

/// In which form users ask for objects to be kept.
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
    /// With dictionaries of so many objects; of as many as by default without a number.
    pub(crate) fn packed(objects: Option<usize>) -> Self {
        Self::Packed(objects.map_or_else(PackOptions::default, PackOptions::new))
    }
}

impl<K> FormOptions<K> {
    /// The one of the two that keeps objects smaller; this one, if both do alike. Packed objects are decoded
    /// when they are read anyway, so lazily is no other form for them.
    pub(crate) fn or(self, general: Self) -> Self {
        if self.rank() >= general.rank() {
            self
        } else {
            general
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Decoded(_) => 0,
            Self::Lazy => 1,
            #[cfg(feature = "packed")]
            Self::Packed(_) => 2,
        }
    }

    pub(crate) fn is_lazy(&self) -> bool {
        matches!(self, Self::Lazy)
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.rank() == 2
    }
}

/// The form in which a cache keeps its objects, with what they have in common.
#[derive_where(Clone)]
pub(crate) enum Form<K> {
    Decoded,
    Lazy(Arc<LazyDecoder<K>>),
    #[cfg(feature = "packed")]
    Packed {
        decoder: Arc<PackedDecoder<K>>,
        /// Whether what would delay an object is left to the [`Housekeeping`].
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

    /// The same for objects that something waits for: what would delay one is put off, for the
    /// [`Housekeeping`].
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

    /// Whether objects are decoded when they come, and kept so.
    pub(crate) fn is_decoded(&self) -> bool {
        matches!(self, Self::Decoded)
    }

    /// Whether it keeps bytes also of what was decoded and changed on the way.
    pub(crate) fn always_keeps_bytes(&self) -> bool {
        !matches!(self, Self::Decoded | Self::Lazy(_))
    }

    /// Counts the objects that have not been decoded, if they are decoded on demand.
    pub(crate) fn unread(&self) -> Option<&Arc<UnreadCount>> {
        match self {
            Self::Decoded => None,
            Self::Lazy(lazy) => Some(lazy.unread()),
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => Some(decoder.unread()),
        }
    }

    /// Keeps the bytes of an object, whose identity this is; `None` if this form keeps decoded objects.
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

    /// A decoded object in this form. Uid and labels are those that it has now.
    pub(crate) fn convert(&self, object: Object<K>) -> Object<K> {
        match self {
            Self::Decoded | Self::Lazy(_) => object,
            #[cfg(feature = "packed")]
            Self::Packed { decoder, .. } => decoder.convert(object),
        }
    }

    /// What keeps such objects in order while a reflector runs, if they need it.
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

    /// The same at once, for objects that are in no store yet. Takes its time: for threads that may block.
    pub(crate) fn keep_house(&self, objects: &[Vec<Object<K>>], more_comes: bool) {
        #[cfg(feature = "packed")]
        if let Self::Packed { decoder, .. } = self {
            packed::keep_house(decoder, objects, more_comes);
        }
        #[cfg(not(feature = "packed"))]
        let _ = (objects, more_comes);
    }
}

/// The objects of a list under way, which the store does not have yet.
pub(crate) type StagedObjects<'a, K> = &'a (dyn Fn() -> Vec<Object<K>> + Sync);

/// The first object of the store behind a name, or the very first.
pub(crate) type ObjectAfter<'a, K> = &'a dyn Fn(Option<&ObjectName>) -> Option<Object<K>>;

/// What keeps the objects of one store in their form, beside the reflector that feeds it.
pub(crate) trait Housekeeping<K>: Send {
    /// An object is about to be handed on.
    fn handed_on(&mut self, object: &Object<K>);

    /// All that came was handed on, and the server has nothing to add for now.
    fn paused(&mut self);

    /// Some bytes were decoded; `more_comes` says whether a list goes on.
    fn decoded<'a>(
        &'a mut self,
        staged: StagedObjects<'a, K>,
        more_comes: bool,
    ) -> BoxFuture<'a, ()>;

    /// Whether [`step`](Self::step) has something to do.
    fn has_work(&self) -> bool;

    /// Does some of it: half a millisecond's work.
    fn step(&mut self, after: ObjectAfter<'_, K>);
}
