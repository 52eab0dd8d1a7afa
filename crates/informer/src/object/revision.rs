//! [`ResourceVersion`] is the revision of one object or of a list. Kubernetes calls it the resource version.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use super::Epoch;
use crate::{
    codec::Identity,
    limits::{REVISION_BYTES, is_fit},
};

/// A Kubernetes resource version, which this crate calls a revision.
///
/// Two revisions of one kind on one server can be compared if both are decimal numbers, of any length
/// ([KEP-5504](https://kep.k8s.io/5504)). Any other text is stored and sent back unchanged, and is only equal
/// to itself.
///
/// A server that is restored from a backup uses the same revisions again for other states. A revision that a
/// reflector has delivered therefore also has an internal epoch, which changes with each restore. The public
/// API ignores the epoch: two revisions with the same text are equal.
#[doc(alias = "ResourceVersionComparator")]
#[doc(alias = "CompareResourceVersion")]
#[derive(Clone, Default)]
pub struct ResourceVersion(Repr);

/// A revision with its epoch, the period between two restores of the server from a backup.
#[derive(Clone, Default)]
enum Repr {
    #[default]
    Unset,
    Number(Epoch, u64),
    Text(Epoch, Arc<str>),
}

/// The revision without its internal [`Epoch`], for comparing, hashing and printing a [`ResourceVersion`].
#[derive(PartialEq, Eq, Hash)]
enum Shown<'a> {
    Unset,
    Number(u64),
    Text(&'a str),
}

impl ResourceVersion {
    /// The unset revision. A list request with the unset revision returns the most recent state.
    pub const UNSET: Self = Self(Repr::Unset);
    /// The revision `"0"`. A list request with this revision returns any state that the server has cached.
    ///
    /// The cached state may be old.
    pub const ZERO: Self = Self(Repr::Number(Epoch::FIRST, 0));

    /// Returns the revision as a number. Returns `None` if the revision is not a number that fits into 64
    /// bits. Revisions from etcd always fit.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(_, number) => Some(number),
            Repr::Unset | Repr::Text(..) => None,
        }
    }

    /// Returns whether this is the unset revision, [`ResourceVersion::UNSET`].
    pub fn is_unset(&self) -> bool {
        matches!(self.0, Repr::Unset)
    }

    /// Returns whether this revision is a positive decimal number, which [KEP-5504](https://kep.k8s.io/5504)
    /// requires for ordering revisions.
    pub fn is_comparable(&self) -> bool {
        *self > Self::ZERO
    }

    /// Returns whether the text has at most [`REVISION_BYTES`] bytes and no control characters.
    pub(crate) fn is_fit(text: &str) -> bool {
        is_fit(text, REVISION_BYTES)
    }

    pub(crate) fn of(identity: &Identity<'_>) -> Self {
        Self::from(&*identity.metadata.resource_version)
    }

    /// Returns whether this is the revision `"0"`, which no existing object has.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Number(_, 0))
    }

    /// Sets the epoch of this revision to `current`. Does not change an unset revision.
    ///
    /// A new epoch starts when a restore of the server from a backup is detected or suspected.
    pub(crate) fn in_epoch(mut self, current: Epoch) -> Self {
        if let Repr::Number(epoch, _) | Repr::Text(epoch, _) = &mut self.0 {
            *epoch = current;
        }
        self
    }

    /// Returns the epoch that was assigned to this revision, or [`Epoch::FIRST`] if none was.
    ///
    /// A new epoch starts when a restore of the server from a backup is detected or suspected.
    pub(crate) fn epoch(&self) -> Epoch {
        match self.0 {
            Repr::Unset => Epoch::FIRST,
            Repr::Number(epoch, _) | Repr::Text(epoch, _) => epoch,
        }
    }

    /// Returns whether this revision is lower than `reached`.
    ///
    /// Returns false if the revisions have different epochs, because a server that was restored from a backup
    /// may assign lower revisions.
    pub(crate) fn is_behind(&self, reached: &Self) -> bool {
        // A server may assign lower numbers after it was restored from a backup.
        self.epoch() == reached.epoch() && self < reached
    }

    fn shown(&self) -> Shown<'_> {
        match &self.0 {
            Repr::Unset => Shown::Unset,
            Repr::Number(_, number) => Shown::Number(*number),
            Repr::Text(_, text) => Shown::Text(text),
        }
    }
}

impl PartialEq for ResourceVersion {
    fn eq(&self, other: &Self) -> bool {
        self.shown() == other.shown()
    }
}

impl Eq for ResourceVersion {}

impl Hash for ResourceVersion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shown().hash(state);
    }
}

/// Orders two revisions by value if both are decimal numbers without leading zeros.
///
/// Any other two revisions are equal or incomparable. The comparison does not detect that the server was
/// restored from a backup between the two revisions.
impl PartialOrd for ResourceVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        fn digits(text: &str) -> Option<(usize, &str)> {
            let well_formed = !text.is_empty()
                && !text.starts_with('0')
                && text.bytes().all(|b| b.is_ascii_digit());
            well_formed.then_some((text.len(), text))
        }
        match (self.shown(), other.shown()) {
            (Shown::Unset, Shown::Unset) => Some(Ordering::Equal),
            (Shown::Unset, _) | (_, Shown::Unset) => None,
            (Shown::Number(a), Shown::Number(b)) => Some(a.cmp(&b)),
            (Shown::Text(a), Shown::Text(b)) if a == b => Some(Ordering::Equal),
            (Shown::Text(a), Shown::Text(b)) => Some(digits(a)?.cmp(&digits(b)?)),
            // A well-formed number is stored as text only if it exceeds 64 bits.
            (Shown::Text(a), Shown::Number(_)) => digits(a).map(|_| Ordering::Greater),
            (Shown::Number(_), Shown::Text(b)) => digits(b).map(|_| Ordering::Less),
        }
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        if text.is_empty() {
            return Self::UNSET;
        }
        let canonical = text == "0" || !text.starts_with(['0', '+']);
        match text.parse() {
            Ok(number) if canonical => Self(Repr::Number(Epoch::FIRST, number)),
            _ => Self(Repr::Text(Epoch::FIRST, Arc::from(text))),
        }
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(Epoch::FIRST, number))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shown() {
            Shown::Unset => Ok(()),
            Shown::Number(number) => number.fmt(f),
            Shown::Text(text) => f.pad(text),
        }
    }
}

impl fmt::Debug for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rv(text: &str) -> ResourceVersion {
        ResourceVersion::from(text)
    }

    #[test]
    fn every_revision_is_sent_back_unchanged() {
        for text in [
            "",
            "0",
            "1",
            "18446744073709551615",
            "18446744073709551616",
            "007",
            "+1",
            "x-1",
        ] {
            assert_eq!(rv(text).to_string(), text);
        }
    }

    #[test]
    fn numbers_of_any_length_are_comparable_and_other_texts_are_not() {
        assert!(rv("9") < rv("10"));
        assert!(rv("18446744073709551615") < rv("18446744073709551616"));
        assert!(rv("99999999999999999998") < rv("99999999999999999999"));
        assert!(rv("99999999999999999999") < rv("100000000000000000000"));
        for comparable in ["1", "99999999999999999999"] {
            assert!(rv(comparable).is_comparable(), "{comparable}");
        }
        for odd in ["", "x", "007", "0", "-1"] {
            assert!(!rv(odd).is_comparable(), "{odd:?}");
        }
        for odd in ["", "x", "007"] {
            assert_eq!(rv("1").partial_cmp(&rv(odd)), None, "{odd:?}");
            assert_eq!(rv(odd).partial_cmp(&rv(odd)), Some(Ordering::Equal));
        }
    }

    #[test]
    fn an_epoch_takes_no_memory_and_is_not_visible() {
        assert_eq!(size_of::<ResourceVersion>(), 3 * size_of::<usize>());
        let later = Epoch::FIRST.after_rollback(Epoch::FIRST);
        for text in ["", "0", "7", "99999999999999999999", "x"] {
            let heard = rv(text).in_epoch(later);
            let expected = if text.is_empty() { Epoch::FIRST } else { later };
            assert_eq!(heard.epoch(), expected, "{text}");
            assert_eq!(heard, rv(text));
            assert_eq!(heard.partial_cmp(&rv(text)), Some(Ordering::Equal));
            assert_eq!(heard.to_string(), text);
            let hash = |revision: &ResourceVersion| {
                let mut hasher = std::hash::DefaultHasher::new();
                revision.hash(&mut hasher);
                hasher.finish()
            };
            assert_eq!(hash(&heard), hash(&rv(text)));
            assert_eq!(heard.is_unset(), text.is_empty());
            assert_eq!(heard.is_zero(), text == "0");
        }
    }
}
