//! Compares a snapshot of a store with the server's objects at the same revision ([`Comparison`]).
//!
//! Objects are compared by name, uid and revision. The snapshot and the server's list have the same revision,
//! so a difference means that the informer has lost changes. The module's [`Comparison`] sends no requests.
//! The task [`ConsistencyCheck`] sends them.

mod check;

pub(crate) use self::check::ConsistencyCheck;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::{
    codec::Encoded,
    indexer::Snapshot,
    object::{ObjectName, ResourceVersion, SourceId, UidHash},
    status::Difference,
    transport::{Class, Error},
};

/// Compares the objects of one source in a snapshot with the objects in the server's list.
///
/// A source is one list and its watch; an informer can have several sources. The caller passes each object
/// of the server's list to [`see`](Self::see), and then calls [`finish`](Self::finish).
pub(crate) struct Comparison<'a, K> {
    snapshot: &'a Snapshot<K>,
    source: SourceId,
    /// Names of the objects that are in the snapshot and in the server's list.
    seen: Vec<&'a ObjectName>,
    found: Found,
}

/// The differences that a comparison found between the snapshot and the server.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) difference: Difference,
    /// Hash of the names and revisions of all differing objects, independent of their order.
    pub(crate) fingerprint: u64,
}

impl<'a, K> Comparison<'a, K> {
    pub(crate) fn new(snapshot: &'a Snapshot<K>, source: SourceId, description: String) -> Self {
        let difference = Difference {
            description: Arc::from(description),
            revision: snapshot.source_revision(source),
            ..Difference::default()
        };
        Self {
            snapshot,
            source,
            seen: Vec::new(),
            found: Found {
                difference,
                fingerprint: 0,
            },
        }
    }

    /// Returns the revision up to which the snapshot contains all changes of the compared source.
    ///
    /// The caller must compare the snapshot with the server's list at this revision.
    pub(crate) fn revision(&self) -> &ResourceVersion {
        &self.found.difference.revision
    }

    /// Compares an object from the server's list with the snapshot.
    ///
    /// The encoded object can be complete or contain only metadata.
    ///
    /// # Errors
    /// Returns an error if the object has no readable name.
    pub(crate) fn see(&mut self, item: Encoded<'_>) -> Result<(), Error> {
        let nameless = || Error::new(Class::Protocol, "an item of the list has no readable name");
        let identity = item.identity().ok_or_else(nameless)?;
        let name = ObjectName::of(&identity).ok_or_else(nameless)?;
        if !name.is_fit() || !ResourceVersion::is_fit(&identity.metadata.resource_version) {
            // The informer skips such objects too.
            return Ok(());
        }
        let revision = ResourceVersion::of(&identity);
        let difference = &mut self.found.difference;
        let count = match self.snapshot.entry(&name) {
            None => &mut difference.missing,
            // The object moves between sources, and the watch of the other source has not sent its
            // deletion yet.
            Some((source, _)) if source != self.source => return Ok(()),
            Some((_, object)) => {
                self.seen.push(object.object_name());
                if !object
                    .uid_hash()
                    .may_be(UidHash::of(&identity.metadata.uid))
                {
                    &mut difference.replaced
                } else if *object.revision() != revision {
                    &mut difference.outdated
                } else {
                    return Ok(());
                }
            }
        };
        *count += 1;
        self.found.note(&name, &revision);
        Ok(())
    }

    /// Returns all differences that the comparison found, or `None` if there are none.
    pub(crate) fn finish(mut self) -> Option<Found> {
        let (snapshot, source) = (self.snapshot, self.source);
        let own = || {
            let entries = snapshot.entries();
            entries.filter(move |(brought_by, _)| *brought_by == source)
        };
        if own().count() != self.seen.len() {
            self.seen.sort_unstable();
            for (_, object) in own() {
                if self.seen.binary_search(&object.object_name()).is_err() {
                    self.found.difference.surplus += 1;
                    self.found.note(object.object_name(), object.revision());
                }
            }
        }
        (self.found.difference.objects() > 0).then_some(self.found)
    }
}

impl Found {
    fn note(&mut self, name: &ObjectName, revision: &ResourceVersion) {
        let mut hasher = DefaultHasher::new();
        (name, revision).hash(&mut hasher);
        self.fingerprint = self.fingerprint.wrapping_add(hasher.finish());
        let examples = &mut self.difference.examples;
        if examples.len() < Difference::NAMED {
            examples.push(name.clone());
        }
    }
}

#[cfg(test)]
mod tests;
