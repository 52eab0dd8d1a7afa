//! [`ResourceVersion`]: the revision of one object, or of a whole list.

use std::{cmp::Ordering, fmt, sync::Arc};

/// A Kubernetes resource version.
///
/// Two of them may be compared within one kind and one server: decimal numbers of any length, by
/// size ([KEP-5504](https://kep.k8s.io/5504)). Whatever else a server sends is kept and sent back
/// as it is, but compares with nothing except itself.
#[doc(alias = "ResourceVersionComparator")]
#[doc(alias = "CompareResourceVersion")]
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct ResourceVersion(Repr);

#[derive(Clone, Default, PartialEq, Eq, Hash)]
enum Repr {
    #[default]
    Unset,
    Number(u64),
    Text(Arc<str>),
}

impl ResourceVersion {
    /// No revision. In a request: the most recent state.
    pub const UNSET: Self = Self(Repr::Unset);
    /// Revision `"0"`. In a request: whatever the server's cache has, however old.
    pub const ZERO: Self = Self(Repr::Number(0));

    /// The revision as a number, if it is one of at most 64 bits, as etcd's are.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Number(number) => Some(number),
            Repr::Unset | Repr::Text(_) => None,
        }
    }

    /// Whether there is no revision.
    pub fn is_unset(&self) -> bool {
        self.0 == Repr::Unset
    }

    /// Whether this is a positive decimal number, as every object's of a server is whose revisions have
    /// an order ([KEP-5504](https://kep.k8s.io/5504)).
    pub fn is_comparable(&self) -> bool {
        *self > Self::ZERO
    }

    /// Whether this is `"0"`, which no live object has.
    pub fn is_zero(&self) -> bool {
        self.0 == Repr::Number(0)
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
        match (&self.0, &other.0) {
            (Repr::Unset, Repr::Unset) => Some(Ordering::Equal),
            (Repr::Unset, _) | (_, Repr::Unset) => None,
            (Repr::Number(a), Repr::Number(b)) => Some(a.cmp(b)),
            (Repr::Text(a), Repr::Text(b)) if a == b => Some(Ordering::Equal),
            (Repr::Text(a), Repr::Text(b)) => Some(digits(a)?.cmp(&digits(b)?)),
            // Whatever fits 64 bits is a Number, so well-formed Text is larger.
            (Repr::Text(a), Repr::Number(_)) => digits(a).map(|_| Ordering::Greater),
            (Repr::Number(_), Repr::Text(b)) => digits(b).map(|_| Ordering::Less),
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
            Ok(number) if canonical => Self(Repr::Number(number)),
            _ => Self(Repr::Text(Arc::from(text))),
        }
    }
}

impl From<u64> for ResourceVersion {
    fn from(number: u64) -> Self {
        Self(Repr::Number(number))
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Unset => Ok(()),
            Repr::Number(number) => number.fmt(f),
            Repr::Text(text) => f.pad(text),
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
}
