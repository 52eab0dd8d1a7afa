//! [`LazyDecoder`] stores the objects of one informer as bytes, and decodes each object on the first read.
//!
//! Guarantees: the first [`Object::get`](super::super::Object::get) of an object replaces the object's bytes
//! with the decoded object or with the decode error. Concurrent readers of the object wait for that result.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    super::{
        DecodeError, ObjectName,
        labels::{LabelSet, LabelSets, Labels},
    },
    Decode, OnBroken,
    reading::{Reading, UnreadCount},
};
use crate::codec::{Codec, Encoded, Unfit};

pub(crate) struct LazyDecoder<K> {
    decode: Decode<K>,
    on_broken: OnBroken,
    labels: LabelSets,
    unread: Arc<UnreadCount>,
}

/// Content of one lazy object, shared by all handles to the object.
pub(in crate::object) struct LazyBody<K> {
    decoder: Arc<LazyDecoder<K>>,
    uid: Box<str>,
    labels: Arc<LabelSet>,
    read: Mutex<Read<K>>,
    reading: Reading,
}

enum Read<K> {
    Not(Codec, Box<[u8]>),
    Decoded(Arc<K>),
    Unfit(Box<DecodeError>),
}

impl<K> LazyDecoder<K> {
    pub(crate) fn new(decode: Decode<K>, on_broken: OnBroken) -> Self {
        Self {
            decode,
            on_broken,
            labels: LabelSets::default(),
            unread: Arc::default(),
        }
    }

    pub(crate) fn unread(&self) -> &Arc<UnreadCount> {
        &self.unread
    }

    pub(super) fn body<'l>(
        self: &Arc<Self>,
        uid: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        encoded: Encoded<'_>,
    ) -> Arc<LazyBody<K>> {
        Arc::new(LazyBody {
            decoder: Arc::clone(self),
            uid: Box::from(uid),
            labels: self.labels.shared(labels),
            read: Mutex::new(Read::Not(encoded.codec(), Box::from(encoded.bytes()))),
            reading: Reading::default(),
        })
    }
}

impl<K> LazyBody<K> {
    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        Labels::of_set(&self.labels)
    }

    pub(super) fn reading(&self) -> (&Reading, &UnreadCount) {
        (&self.reading, &self.decoder.unread)
    }

    pub(super) fn with_encoded<T>(&self, read: impl FnOnce(Encoded<'_>) -> T) -> Option<T> {
        match &*self.read.lock() {
            Read::Not(codec, bytes) => Some(read(codec.object(bytes))),
            Read::Decoded(_) | Read::Unfit(_) => None,
        }
    }

    pub(super) fn unfit(&self) -> Option<DecodeError> {
        match &*self.read.lock() {
            Read::Not(..) | Read::Decoded(_) => None,
            Read::Unfit(error) => Some(DecodeError::clone(error)),
        }
    }

    /// Returns the size of the body in bytes, without the heap memory of decoded fields.
    pub(super) fn size(&self) -> usize {
        let read = match &*self.read.lock() {
            Read::Not(_, bytes) => bytes.len(),
            Read::Decoded(_) => size_of::<K>(),
            Read::Unfit(_) => size_of::<DecodeError>(),
        };
        size_of::<Self>() + read
    }

    pub(super) fn open(&self, name: &ObjectName, is_kept: bool) -> Result<Arc<K>, DecodeError> {
        let mut read = self.read.lock();
        let encoded = match &*read {
            Read::Not(codec, bytes) => codec.object(bytes),
            Read::Decoded(object) => return Ok(Arc::clone(object)),
            Read::Unfit(error) => return Err(DecodeError::clone(error)),
        };
        match (self.decoder.decode)(encoded) {
            Ok(object) => {
                let object = Arc::new(object);
                if is_kept {
                    *read = Read::Decoded(Arc::clone(&object));
                }
                self.reading.end(&self.decoder.unread);
                Ok(object)
            }
            Err(Unfit { field, reason }) => {
                let error = DecodeError::new(Some(name.clone()), &field, &reason);
                *read = Read::Unfit(Box::new(error.clone()));
                // Unlock before the user's callback, which may read the object.
                drop(read);
                self.reading.end(&self.decoder.unread);
                (self.decoder.on_broken)(&error);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests;
