//! Lists the requirements that do not apply to every write of a definition.
//!
//! Guarantees: a new definition must meet all requirements, except [`Requirement::CaBundle`] and
//! [`Requirement::Immutable`]. The module `ratchet` determines those of an update.

use std::collections::BTreeSet;

/// A requirement that does not apply to every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Requirement {
    /// Each version has a schema.
    Schema,
    /// The type of a schema is one of OpenAPI.
    PropertyType,
    /// Each schema is structural.
    Structural,
    /// The items of a set are atomic.
    AtomicSet,
    /// Defaults have no unknown members.
    PrunedDefaults,
    /// The keys of a map list are required or have a default, and items and keys are not nullable.
    MapListKeys,
    /// The server knows one of the versions that a conversion webhook accepts.
    ReviewVersion,
    /// The CA bundle of a conversion webhook is valid.
    CaBundle,
    /// Scope and kind do not change.
    Immutable,
}

/// The requirements that do not apply to one write.
pub(super) struct Requirements<'a> {
    pub(super) lifted: BTreeSet<Requirement>,
    /// Names of the versions that may have too many selectable fields.
    ///
    /// An empty name stands for the fields that all versions have in common.
    pub(super) crowded: BTreeSet<&'a str>,
}

impl Requirements<'_> {
    pub(super) fn of_create() -> Self {
        Requirements {
            lifted: BTreeSet::from([Requirement::CaBundle, Requirement::Immutable]),
            crowded: BTreeSet::new(),
        }
    }

    pub(super) fn include(&self, requirement: Requirement) -> bool {
        !self.lifted.contains(&requirement)
    }

    /// Returns whether a version may have too many selectable fields.
    pub(super) fn may_crowd(&self, version: &str) -> bool {
        self.crowded.contains(version)
    }
}
