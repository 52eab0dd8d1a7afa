//! What is kept of a uid: enough to tell two objects of one name apart, in four bytes.

use std::hash::{DefaultHasher, Hasher};

use kube_core::Resource;

/// The mark of a uid: the same for the same one, and for two different ones once in some four
/// thousand million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UidHash(u32);

impl UidHash {
    /// The mark of this uid; of an empty one, that there is none.
    pub(crate) fn of(uid: &str) -> Self {
        if uid.is_empty() {
            return Self::default();
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(uid.as_bytes());
        let hash = hasher.finish();
        // Folded, as there is nothing to choose between its halves; zero is taken.
        let [high, low] = [hash >> 32, hash & 0xffff_ffff];
        Self(u32::try_from(high ^ low).unwrap_or(u32::MAX).max(1))
    }

    /// That of an object, as it is now.
    pub(crate) fn of_object<K: Resource>(object: &K) -> Self {
        Self::of(object.meta().uid.as_deref().unwrap_or_default())
    }

    /// Whether both can be of the same object; where there is no uid, nothing speaks against it.
    pub(crate) fn may_be(self, other: Self) -> bool {
        self == other || self == Self::default() || other == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_are_told_apart_and_none_is_like_any() {
        let [a, b] = ["a", "b"].map(UidHash::of);
        assert!(a.may_be(UidHash::of("a")) && !a.may_be(b));
        assert!(a.may_be(UidHash::of("")) && UidHash::default().may_be(b));
    }
}
