//! Keeps the graph of owners and dependents in step with the accepted writes.
//!
//! Guarantees:
//! - a write of an object without owner references, which is not being deleted, costs one look for the earlier state,
//!   and nothing if no object of the server has owner references;
//! - after accepted writes are lost, the graph is built again from the objects that are left.

use std::sync::Arc;

use super::{Shared, State};
use crate::garbage::{Graph, Place, Seen};
use crate::resource::{Registry, Resource};
use crate::storage::Entry;
use crate::strategy::GarbageCollectionPolicy;

impl Shared {
    /// Returns what happens to the dependents of a deleted object of a resource by default.
    ///
    /// Without garbage collection, no kind orphans its dependents by default: nothing would remove the
    /// finalizer.
    pub(crate) fn garbage_policy(&self, resource: &Resource) -> GarbageCollectionPolicy {
        match resource.strategy.dependents {
            GarbageCollectionPolicy::OrphanDependents if !self.settings.collects_garbage() => {
                GarbageCollectionPolicy::DeleteDependents
            }
            policy => policy,
        }
    }
}

impl State {
    /// Records a write in the graph. Must be called before the write replaces the object's newest state.
    pub(super) fn follow_relations(
        &mut self,
        resource: &Resource,
        key: &Arc<str>,
        new: Option<&Entry>,
    ) {
        let Some(mut graph) = self.garbage.take() else {
            return;
        };
        if !graph.is_stale() && is_collected(resource) {
            self.follow(&mut graph, resource, key, new);
        }
        self.garbage = Some(graph);
    }

    fn follow(&self, graph: &mut Graph, resource: &Resource, key: &Arc<str>, new: Option<&Entry>) {
        let is_concerned = new.is_some_and(Entry::is_concerned);
        if graph.is_empty() && !is_concerned {
            return;
        }
        let old = self.newest(resource.collection, key);
        if let Some(new) = new {
            let may_appear = old.is_none() && graph.misses_owners();
            let was_concerned = old.is_some_and(|old| old.is_concerned());
            if is_concerned || was_concerned || may_appear {
                observe(graph, resource, new);
            }
        } else if let Some(seen) = old.and_then(|old| Seen::read(old.metadata())) {
            graph.remove(&seen.uid);
        }
    }

    /// Makes the next garbage collection build the graph again, because accepted writes are lost.
    pub(crate) fn expire_relations(&mut self) {
        if let Some(graph) = &mut self.garbage {
            graph.expire();
        }
    }

    /// Makes the next garbage collection try again what has failed, because other kinds are served now.
    pub(super) fn retry_relations(&mut self) {
        if let Some(graph) = &mut self.garbage {
            graph.retry_all();
        }
    }

    /// Builds the graph again from the newest objects.
    pub(crate) fn rebuild_relations(&mut self, registry: &Registry) {
        let Some(mut graph) = self.garbage.take() else {
            return;
        };
        graph.clear();
        for resource in registry.last_resources() {
            if is_collected(resource) {
                let entries = self.newest_below(resource.collection, "");
                let entries = entries.filter(|entry| entry.is_concerned());
                entries.for_each(|entry| observe(&mut graph, resource, entry));
            }
        }
        self.garbage = Some(graph);
    }
}

fn observe(graph: &mut Graph, resource: &Resource, entry: &Entry) {
    if let Some(seen) = Seen::read(entry.metadata()) {
        graph.observe(&Place::new(resource, &entry.key), &seen);
    }
}

/// Returns whether the objects of a resource can have owners and dependents. As in Kubernetes, events have
/// none.
fn is_collected(resource: &Resource) -> bool {
    resource.kind.custom || resource.kind.kind != "Event"
}
