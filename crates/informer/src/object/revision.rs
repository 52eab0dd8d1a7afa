//! [`ResourceVersion`]: the revision of one object, or of a whole list.

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

/// A Kubernetes resource version.
///
/// Two of them may be compared within one kind and one server: decimal numbers of any length, by
/// size ([KEP-5504](https://kep.k8s.io/5504)). Whatever else a server sends is kept and sent back
/// as it is, but compares with nothing except itself.
///
/// After the restore of a backup a server gives out the same revisions again, to other states. So one
/// that a reflector has handed on also has its epoch, which only this crate reads. In the public API a revision
/// is its text: two of the same text are equal.
#[doc(alias = "ResourceVersionComparator")]
#[doc(alias = "CompareResourceVersion")]
#[derive(Clone, Default)]
pub struct ResourceVersion(Repr);

/// The epoch is inside, where it takes no room.
#[derive(Clone, Default)]
enum Repr {
    #[default]
    Unset,
    Number(Epoch, u64),
    Text(Epoch, Arc<str>),
}

/// What shows of a revision.
#[derive(PartialEq, Eq, Hash)]
enum Shown<'a> {
    Unset,
    Number(u64),
    Text(&'a str),
}

impl ResourceVersion {
    /// No revision. In a request: the most recent state.
    pub const UNSET: Self = Self(Repr::Unset);
    /// Revision `"0"`. In a request: whatever the server's cache has, however old.
    pub const ZERO: Self = Self(Repr::Number(Epoch::FIRST, 0));

    /// The revision as a number, if it is one of at most 64 bits, as etcd's are.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(_, number) => Some(number),
            Repr::Unset | Repr::Text(..) => None,
        }
    }

    /// Whether there is no revision.
    pub fn is_unset(&self) -> bool {
        matches!(self.0, Repr::Unset)
    }

    /// Whether this is a positive decimal number, as every object's of a server is whose revisions have
    /// an order ([KEP-5504](https://kep.k8s.io/5504)).
    pub fn is_comparable(&self) -> bool {
        *self > Self::ZERO
    }

    /// Whether a server may give this text to an object or a list.
    pub(crate) fn is_fit(text: &str) -> bool {
        is_fit(text, REVISION_BYTES)
    }

    /// The revision of an object with this identity.
    pub(crate) fn of(identity: &Identity<'_>) -> Self {
        Self::from(&*identity.metadata.resource_version)
    }

    /// Whether this is `"0"`, which no live object has.
    pub fn is_zero(&self) -> bool {
        matches!(self.0, Repr::Number(_, 0))
    }

    /// The same revision, in this epoch. An unset revision has none.
    pub(crate) fn in_epoch(mut self, current: Epoch) -> Self {
        if let Repr::Number(epoch, _) | Repr::Text(epoch, _) = &mut self.0 {
            *epoch = current;
        }
        self
    }

    /// The epoch that it was received in.
    pub(crate) fn epoch(&self) -> Epoch {
        match self.0 {
            Repr::Unset => Epoch::FIRST,
            Repr::Number(epoch, _) | Repr::Text(epoch, _) => epoch,
        }
    }

    /// Whether this is below `reached` in the same epoch: it says nothing about how far a source has
    /// come. In another epoch, revisions start over.
    pub(crate) fn is_behind(&self, reached: &Self) -> bool {
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

/// `None` where the two can't be compared: one is unset, or not a well-formed decimal number.
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
            // Whatever fits 64 bits is a number, so well-formed text is larger.
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
    fn every_text_is_sent_back_as_it_came() {
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
    fn numbers_of_any_length_compare_and_the_rest_does_not() {
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
    fn a_epoch_takes_no_room_and_shows_nowhere() {
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
