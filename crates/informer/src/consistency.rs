//! Compares one moment of a store with what its server had at the very revision of that moment, by
//! names, uids and revisions; pure.
//!
//! As both are of the same revision they are the same, or something was lost: what changes meanwhile is
//! in neither. Of the server's objects nothing is kept; a comparison holds one pointer for each.

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

/// One that is under way: of the objects that one source has brought.
pub(crate) struct Comparison<'a, K> {
    snapshot: &'a Snapshot<K>,
    source: SourceId,
    /// What the server has too, as it stands in the snapshot.
    seen: Vec<&'a ObjectName>,
    found: Found,
}

/// What a comparison has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) difference: Difference,
    /// The same for the same objects at the same revisions, whatever the order.
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

    /// Up to which revision the store has everything of the source.
    pub(crate) fn revision(&self) -> &ResourceVersion {
        &self.found.difference.revision
    }

    /// Takes an object of the server's, whole or its metadata alone.
    ///
    /// # Errors
    /// It has no readable name.
    pub(crate) fn see(&mut self, item: Encoded<'_>) -> Result<(), Error> {
        let nameless = || Error::new(Class::Protocol, "an item of the list has no readable name");
        let identity = item.identity().ok_or_else(nameless)?;
        let name = ObjectName::of(&identity).ok_or_else(nameless)?;
        if !name.is_fit() || !ResourceVersion::is_fit(&identity.metadata.resource_version) {
            // Left out by the informer too.
            return Ok(());
        }
        let revision = ResourceVersion::of(&identity);
        let difference = &mut self.found.difference;
        let count = match self.snapshot.entry(&name) {
            None => &mut difference.missing,
            // It moves from one source to another, and this one has not told yet that it left.
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

    /// What differs, if anything does. To be called when the server has told everything.
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
