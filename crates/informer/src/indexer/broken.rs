//! The entries of a store that have no usable state.

use super::store::Root;
use crate::object::ObjectName;

impl<K> Root<K> {
    /// How many entries have no usable state.
    pub(super) fn broken_count(&self) -> usize {
        self.broken.len()
    }

    /// Their names, in order.
    pub(super) fn broken_names(&self) -> impl Iterator<Item = &ObjectName> {
        self.broken.keys()
    }

    /// How many entries of a namespace have no usable state.
    pub(super) fn broken_in(&self, namespace: &str) -> usize {
        let first = ObjectName::new(Some(namespace), "");
        let within = |name: &ObjectName| name.namespace().unwrap_or_default() == namespace;
        let names = self.broken.range(first..);
        names.take_while(|(name, _)| within(name)).count()
    }

    /// Moves an object among the broken ones if its body was decoded in vain since it came; whether it was.
    /// Handlers have been told of it as of any other, and are not told again.
    pub(super) fn find_broken(&mut self, name: &ObjectName) -> bool {
        let entry = self.entries.get(name);
        let found = entry.and_then(|entry| Some((entry.source(), entry.object().found_broken()?)));
        // Otherwise it has another state by now, or is gone. Index functions are not called with broken objects.
        let moved = found.map(|(source, broken)| self.write(source, broken, &mut Vec::new()));
        moved.is_some()
    }
}
