//! Indexes the open watches of one resource, to find the watches that an event may concern.
//!
//! A watcher is one open watch. A watcher requires a value if its field selector contains `field=value` or if
//! its path contains a namespace. If a watcher requires several values, the index uses only the most
//! selective one: a name before other fields, and a namespace last.
//!
//! Guarantees:
//! - an event is compared only with watchers that require no value, or a value that the object has before or
//!   after the event;
//! - the index keeps no data of a removed watcher.

use std::collections::BTreeMap;

use super::{Filter, Watcher, WatcherId};
use crate::selector::field::Source;
use crate::storage::Event;

/// Watchers that the index finds by the same field value, such as `spec.nodeName=a`, or the same namespace.
///
/// The watchers that require neither a field value nor a namespace also form one group.
type Group = BTreeMap<WatcherId, Watcher>;

/// All open watchers of one resource. Each watcher is in exactly one [`Group`].
#[derive(Default)]
pub(super) struct Watchers {
    /// Maps the id of each watcher to the field value or namespace of the watcher's [`Group`].
    demands: BTreeMap<WatcherId, Demand>,
    /// Watchers that require no value.
    everything: Group,
    by_value: BTreeMap<Source, BTreeMap<Box<str>, Group>>,
}

/// The field value or namespace by which the index finds a watcher.
#[derive(Clone, Debug, PartialEq)]
enum Demand {
    Any,
    Value(Source, Box<str>),
}

// === impl Watchers ===

impl Watchers {
    pub(super) fn len(&self) -> usize {
        self.demands.len()
    }

    pub(super) fn any(&self, is_wanted: impl Fn(&Watcher) -> bool) -> bool {
        let by_value = self.by_value.values().flat_map(BTreeMap::values);
        let mut groups = std::iter::once(&self.everything).chain(by_value);
        groups.any(|group| group.values().any(&is_wanted))
    }

    pub(super) fn insert(&mut self, id: WatcherId, watcher: Watcher) {
        let demand = Demand::of(&watcher.filter);
        let group = match &demand {
            Demand::Any => &mut self.everything,
            Demand::Value(source, value) => {
                let by_value = self.by_value.entry(*source).or_default();
                by_value.entry(value.clone()).or_default()
            }
        };
        group.insert(id, watcher);
        self.demands.insert(id, demand);
    }

    pub(super) fn remove(&mut self, id: WatcherId) {
        let Some(demand) = self.demands.remove(&id) else {
            return;
        };
        let Demand::Value(source, value) = demand else {
            self.everything.remove(&id);
            return;
        };
        let Some(by_value) = self.by_value.get_mut(&source) else {
            return;
        };
        if let Some(group) = by_value.get_mut(&value) {
            group.remove(&id);
            if group.is_empty() {
                by_value.remove(&value);
            }
        }
        if by_value.is_empty() {
            self.by_value.remove(&source);
        }
    }

    /// Removes the watcher `id`, if it exists, unless `keep` returns true.
    pub(super) fn retain_one(&mut self, id: WatcherId, keep: impl FnOnce(&Watcher) -> bool) {
        if self.get(id).is_some_and(|watcher| !keep(watcher)) {
            self.remove(id);
        }
    }

    /// Calls `keep` for all watchers in order of creation. Removes a watcher if `keep` returns false.
    pub(super) fn retain(&mut self, keep: impl Fn(&Watcher) -> bool) {
        let ids: Vec<WatcherId> = self.demands.keys().copied().collect();
        for id in ids {
            self.retain_one(id, &keep);
        }
    }

    /// Calls `keep` for the watchers that `event` may concern. Removes a watcher if `keep` returns false.
    pub(super) fn retain_concerned(&mut self, event: &Event, keep: impl Fn(&Watcher) -> bool) {
        let mut gone = Vec::new();
        let mut ask = |group: &Group| {
            let answers = group.iter().filter(|(_, watcher)| !keep(watcher));
            gone.extend(answers.map(|(id, _)| *id));
        };
        ask(&self.everything);
        for (source, by_value) in &self.by_value {
            let old = event
                .old
                .as_deref()
                .map(|old| source.value_in(old.selectable()));
            let new = event
                .new
                .as_deref()
                .map(|new| source.value_in(new.selectable()));
            let other = old.filter(|old| new != Some(*old));
            for value in [new, other].into_iter().flatten() {
                by_value.get(value).into_iter().for_each(&mut ask);
            }
        }
        for id in gone {
            self.remove(id);
        }
    }

    fn get(&self, id: WatcherId) -> Option<&Watcher> {
        match self.demands.get(&id)? {
            Demand::Any => self.everything.get(&id),
            Demand::Value(source, value) => self.by_value.get(source)?.get(value)?.get(&id),
        }
    }
}

// === impl Demand ===

impl Demand {
    /// Returns the most selective value that the filter requires.
    fn of(filter: &Filter) -> Demand {
        let demands = filter.selection.fields.demands();
        // The index has the fields of objects as they are stored.
        let is_indexed = |source: &Source| filter.reader.is_none() || *source == Source::Name;
        let demands = demands.filter(|(source, _)| is_indexed(source));
        let namespace = filter.prefix.strip_suffix('/');
        let namespace = namespace.map(|namespace| (Source::Namespace, namespace));
        match demands.chain(namespace).min_by_key(|(source, _)| *source) {
            Some((source, value)) => Demand::Value(source, value.into()),
            None => Demand::Any,
        }
    }
}

#[cfg(test)]
mod tests;
