//! [`Labels`] gives access to the labels of one object. The object may be stored decoded or as bytes.
//!
//! Objects that are stored as bytes and have equal labels share one label set ([`LabelSets`]).

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    hash::BuildHasher,
    sync::{Arc, Weak},
};

use derive_where::derive_where;
use foldhash::fast::FixedState;
use parking_lot::Mutex;

/// The labels of one object, as a borrowed view.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a>(Repr<'a>);

#[derive(Clone, Copy, Debug)]
enum Repr<'a> {
    Map(Option<&'a BTreeMap<String, String>>),
    Set(&'a Joined),
}

/// A label set that objects with equal labels share, and one additional value for all these objects.
///
/// In a packed cache, the value is the base for the compression of these objects.
#[derive(Debug)]
pub(super) struct LabelSet<T = ()> {
    labels: Joined,
    #[cfg_attr(
        not(feature = "packed"),
        expect(dead_code, reason = "only packed caches have a value")
    )]
    value: T,
}

/// A set of labels, ordered by key, in one string to save allocations.
#[derive(Debug)]
struct Joined {
    text: Box<str>,
    /// Byte positions in `text` at which keys and values end, alternately.
    ends: Box<[u32]>,
}

impl Joined {
    fn of(labels: &[(&str, &str)]) -> Self {
        let texts = || labels.iter().flat_map(|(key, value)| [*key, *value]);
        let mut end = 0;
        let ends = texts().map(|text| {
            end += text.len();
            u32::try_from(end).unwrap_or(u32::MAX)
        });
        Self {
            ends: ends.collect(),
            text: texts().collect::<String>().into_boxed_str(),
        }
    }

    fn len(&self) -> usize {
        self.ends.len() / 2
    }

    /// Returns the key of label n for `number` 2n, and the value of label n for `number` 2n + 1.
    fn text(&self, number: usize) -> &str {
        let end = |number: usize| self.ends.get(number).map_or(0, |&end| end as usize);
        let from = number.checked_sub(1).map_or(0, end);
        self.text.get(from..end(number)).unwrap_or_default()
    }

    fn label(&self, number: usize) -> (&str, &str) {
        (self.text(2 * number), self.text(2 * number + 1))
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        (0..self.len()).map(|number| self.label(number))
    }

    fn get(&self, key: &str) -> Option<&str> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let (found, value) = self.label(middle);
            match found.cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(value),
                Ordering::Greater => high = middle,
            }
        }
        None
    }
}

impl<'a> Labels<'a> {
    pub(super) fn of_map(labels: Option<&'a BTreeMap<String, String>>) -> Self {
        Self(Repr::Map(labels))
    }

    pub(super) fn of_set<T>(set: &'a LabelSet<T>) -> Self {
        Self(Repr::Set(&set.labels))
    }

    /// Returns the value of the label with this key; `None` if the object does not have the label.
    pub fn get(&self, key: &str) -> Option<&'a str> {
        match self.0 {
            Repr::Map(labels) => labels?.get(key).map(String::as_str),
            Repr::Set(labels) => labels.get(key),
        }
    }

    /// Returns the keys and values of all labels, ordered by key.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let (map, set) = match self.0 {
            Repr::Map(labels) => (labels, None),
            Repr::Set(labels) => (None, Some(labels)),
        };
        let map = map.into_iter().flatten();
        let map = map.map(|(key, value)| (key.as_str(), value.as_str()));
        map.chain(set.into_iter().flat_map(Joined::iter))
    }
}

/// The label sets of a cache that stores objects as bytes, shared by objects with equal labels.
#[derive_where(Default)]
pub(super) struct LabelSets<T = ()>(Mutex<Sets<T>>);

#[derive_where(Default)]
struct Sets<T> {
    /// The shared label sets by hash. Of two sets with the same hash, only the first is shared.
    known: BTreeMap<u64, Weak<LabelSet<T>>>,
    /// Number of entries in `known` at which unused sets are removed.
    full_at: usize,
}

/// Unused label sets are removed only when [`Sets::known`] has at least this number of entries.
const SETS_MIN: usize = 1024;

impl<T> LabelSet<T> {
    #[cfg(feature = "packed")]
    pub(super) fn value(&self) -> &T {
        &self.value
    }
}

impl<T: Default> LabelSets<T> {
    /// Returns the set of `labels`, which all objects with equal labels share.
    ///
    /// If a key occurs several times in `labels`, the set contains the last value. If different labels in use
    /// have the same hash, the returned set is not shared.
    pub(super) fn shared<'l>(
        &self,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
    ) -> Arc<LabelSet<T>> {
        let mut labels: Vec<_> = labels.collect();
        if !labels.is_sorted_by(|(a, _), (b, _)| a < b) {
            labels.reverse();
            labels.sort_by_key(|(key, _)| *key);
            labels.dedup_by(|(a, _), (b, _)| a == b);
        }
        let hash = hash(&labels);
        let mut sets = self.0.lock();
        let known = sets.known.get(&hash).and_then(Weak::upgrade);
        if let Some(known) = &known
            && known.labels.iter().eq(labels.iter().copied())
        {
            return Arc::clone(known);
        }
        let set = Arc::new(LabelSet {
            labels: Joined::of(&labels),
            value: T::default(),
        });
        if known.is_none() {
            sets.keep(hash, &set);
        }
        set
    }
}

fn hash(labels: &[(&str, &str)]) -> u64 {
    FixedState::default().hash_one(labels)
}

impl<T> Sets<T> {
    fn keep(&mut self, hash: u64, set: &Arc<LabelSet<T>>) {
        self.known.insert(hash, Arc::downgrade(set));
        if self.known.len() >= self.full_at.max(SETS_MIN) {
            self.known.retain(|_, set| set.strong_count() > 0);
            self.full_at = self.known.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(sets: &LabelSets, labels: &[(&'static str, &'static str)]) -> Arc<LabelSet> {
        sets.shared(labels.iter().copied())
    }

    #[test]
    fn equal_labels_share_one_set_that_equals_a_map() {
        let sets = LabelSets::<()>::default();
        let first = set(&sets, &[("b", "2"), ("a", "1")]);
        let again = set(&sets, &[("a", "1"), ("b", "2")]);
        assert!(Arc::ptr_eq(&first, &again));
        assert!(!Arc::ptr_eq(&first, &set(&sets, &[("a", "1")])));
        assert!(!Arc::ptr_eq(&first, &set(&sets, &[("a", "1"), ("b", "3")])));
        let labels = Labels::of_set(&first);
        assert_eq!(
            [labels.get("a"), labels.get("b"), labels.get("c")],
            [Some("1"), Some("2"), None]
        );
        assert!(labels.iter().eq([("a", "1"), ("b", "2")]));
        let map = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
        assert!(Labels::of_map(Some(&map)).iter().eq([("a", "1")]));
        assert_eq!(Labels::of_map(None).iter().count(), 0);
    }

    #[test]
    fn each_of_many_labels_is_found_by_its_key_only() {
        let keys = (0..9).map(|number| "x".repeat(number)).collect::<Vec<_>>();
        for len in 0..keys.len() {
            let labels = keys[..len]
                .iter()
                .map(|key| (&**key, &key[key.len() / 2..]));
            let set = LabelSets::<()>::default().shared(labels.clone());
            let set = Labels::of_set(&set);
            assert!(set.iter().eq(labels.clone()));
            assert!(
                labels
                    .clone()
                    .all(|(key, value)| set.get(key) == Some(value))
            );
            assert_eq!(set.get("y").or(set.get(&keys[len])), None);
        }
    }

    #[test]
    fn labels_with_equal_hashes_are_not_confused() {
        let sets = LabelSets::<()>::default();
        let labels = [("a", "1"), ("b", "2")];
        for others in [
            &[("a", "1")][..],
            &[("a", "1"), ("b", "22")],
            &[("a1", ""), ("b", "2")],
        ] {
            let other = LabelSets::<()>::default().shared(others.iter().copied());
            sets.0.lock().keep(hash(&labels), &other);
            assert!(Labels::of_set(&set(&sets, &labels)).iter().eq(labels));
        }
    }

    #[test]
    fn of_a_duplicate_key_the_last_value_counts() {
        let sets = LabelSets::<()>::default();
        let labels = set(&sets, &[("a", "1"), ("b", "2"), ("a", "3")]);
        assert!(Labels::of_set(&labels).iter().eq([("a", "3"), ("b", "2")]));
    }

    #[test]
    fn unused_label_sets_are_removed() {
        let sets = LabelSets::<()>::default();
        let kept = set(&sets, &[("kept", "")]);
        for number in 0..2 * SETS_MIN {
            sets.shared([("number", &*number.to_string())].into_iter());
        }
        assert!(sets.0.lock().known.len() < SETS_MIN);
        assert!(Arc::ptr_eq(&kept, &set(&sets, &[("kept", "")])));
    }
}
