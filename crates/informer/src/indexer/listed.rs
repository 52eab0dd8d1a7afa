//! Finds duplicate names in a list, and stored objects that the list does not contain.
//!
//! This module does not change the store.

use crate::object::{Object, ObjectName};

#[expect(
    clippy::disallowed_types,
    reason = "pure look-up, its order is never seen"
)]
type Positions = std::collections::HashMap<ObjectName, usize>;

pub(super) enum Listed {
    /// The list is sorted by name and has no duplicates.
    InOrder,
    /// The list is unsorted or has duplicates. The value contains the position of each name.
    Hashed(Positions),
}

impl Listed {
    pub(super) fn of<K>(objects: &[Object<K>]) -> Self {
        if objects.is_sorted_by(|a, b| a.object_name() < b.object_name()) {
            Self::InOrder
        } else {
            Self::Hashed(Positions::with_capacity(objects.len()))
        }
    }

    pub(super) fn are_in_order(&self) -> bool {
        matches!(self, Self::InOrder)
    }

    /// Returns the position of `name` among the distinct names of the list, in the order of their first
    /// occurrence.
    ///
    /// Must be called once for each listed object, in the order of the list. `next` is the number of distinct
    /// names in the earlier calls. The result is `next` if `name` occurs for the first time.
    pub(super) fn position(&mut self, name: &ObjectName, next: usize) -> usize {
        match self {
            Self::InOrder => next,
            Self::Hashed(positions) => *positions.entry(name.clone()).or_insert(next),
        }
    }

    /// Returns the names in `known` that are not in `listed`. `known` must be sorted.
    pub(super) fn gone<'n, T>(
        &self,
        listed: &[(ObjectName, T)],
        known: impl Iterator<Item = &'n ObjectName>,
    ) -> Vec<ObjectName> {
        let mut remaining = listed.iter().map(|(name, _)| name).peekable();
        let mut is_listed = |name: &ObjectName| match self {
            Self::Hashed(positions) => positions.contains_key(name),
            Self::InOrder => {
                while remaining.next_if(|next| *next < name).is_some() {}
                remaining.peek() == Some(&name)
            }
        };
        known.filter(|name| !is_listed(name)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_core::ObjectMeta;
    use proptest::prelude::*;

    use super::*;

    fn object(name: &str) -> Object<ConfigMap> {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        };
        let object = ConfigMap {
            metadata,
            ..ConfigMap::default()
        };
        Object::new(object).unwrap()
    }

    proptest! {
        #[test]
        fn each_listed_name_has_one_position_and_missing_names_are_gone(
            mut names in prop::collection::vec("[a-f]{1,2}", 0..30),
            known in prop::collection::btree_set("[a-f]{1,2}", 0..30),
            in_order in any::<bool>(),
        ) {
            if in_order {
                names.sort();
                names.dedup();
            }
            let objects: Vec<_> = names.iter().map(|name| object(name)).collect();
            let mut positions = Listed::of(&objects);
            prop_assert!(!in_order || positions.are_in_order());
            let mut listed = Vec::new();
            for object in &objects {
                let name = object.object_name();
                let position = positions.position(name, listed.len());
                if position == listed.len() {
                    listed.push((name.clone(), ()));
                }
                prop_assert_eq!(&listed[position].0, name);
            }
            let unique: BTreeSet<_> = names.iter().collect();
            prop_assert_eq!(listed.len(), unique.len());
            let known: Vec<_> = known.iter().map(|name| ObjectName::cluster(name)).collect();
            let gone = positions.gone(&listed, known.iter());
            let expected = known.iter().filter(|name| !unique.contains(&name.as_str().to_owned()));
            prop_assert!(gone.iter().eq(expected));
        }
    }
}
