//! [`UidHash`] is a four-byte hash of an object's uid, which distinguishes a recreated object from the
//! deleted object with the same name.

use std::hash::{DefaultHasher, Hasher};

use kube_core::Resource;

/// A four-byte hash of an object's uid; 0 if the uid is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UidHash(u32);

impl UidHash {
    pub(crate) fn of(uid: &str) -> Self {
        if uid.is_empty() {
            return Self::default();
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(uid.as_bytes());
        let hash = hasher.finish();
        // Folds both halves; 0 is reserved for no uid.
        let [high, low] = [hash >> 32, hash & 0xffff_ffff];
        Self(u32::try_from(high ^ low).unwrap_or(u32::MAX).max(1))
    }

    pub(crate) fn of_object<K: Resource>(object: &K) -> Self {
        Self::of(object.meta().uid.as_deref().unwrap_or_default())
    }

    /// Returns whether both values can be hashes of the same uid: they are equal, or one of the uids is
    /// unknown.
    pub(crate) fn may_be(self, other: Self) -> bool {
        self == other || self == Self::default() || other == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_distinguished_and_a_missing_uid_matches_any() {
        let [a, b] = ["a", "b"].map(UidHash::of);
        assert!(a.may_be(UidHash::of("a")) && !a.may_be(b));
        assert!(a.may_be(UidHash::of("")) && UidHash::default().may_be(b));
    }
}
