//! Reads the metadata of a stored object that matter for garbage collection.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::node::{Phase, Target};

/// Finalizer of an owner whose deletion waits for its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// Finalizer of an owner whose deletion waits until no dependent refers to it.
pub(super) const ORPHAN: &str = "orphan";

/// The metadata of one state of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) uid: Arc<str>,
    pub(crate) owners: Vec<Reference>,
    pub(super) phase: Phase,
    /// The finalizer of garbage collection that the object has, being deleted or not: the first one if both
    /// exist.
    pub(super) finalizer: Option<&'static str>,
}

/// An owner reference of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reference {
    pub(super) uid: Arc<str>,
    pub(super) target: Arc<Target>,
    /// The value of `blockOwnerDeletion`.
    pub(super) blocks: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(borrow)]
    finalizers: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    owner_references: Option<Vec<OwnerReference<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct OwnerReference<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    block_owner_deletion: Option<bool>,
}

impl Seen {
    /// Reads the JSON of an object's `metadata`. Returns `None` if a member has another type than in
    /// Kubernetes.
    pub(crate) fn read(metadata: &[u8]) -> Option<Seen> {
        let metadata: Metadata<'_> = serde_json::from_slice(metadata).ok()?;
        let owners = metadata.owner_references.into_iter().flatten();
        let mut known = Vec::new();
        for owner in owners {
            let reference = Reference {
                uid: (*owner.uid).into(),
                target: Arc::new(Target {
                    api_version: owner.api_version.into_owned(),
                    kind: owner.kind.into_owned(),
                    name: owner.name.into_owned(),
                }),
                blocks: owner.block_owner_deletion == Some(true),
            };
            known.push(reference);
        }
        let finalizers = metadata.finalizers.iter().flatten();
        let mut finalizers = finalizers.filter_map(|finalizer| match &**finalizer {
            FOREGROUND => Some(FOREGROUND),
            ORPHAN => Some(ORPHAN),
            _ => None,
        });
        let finalizer = finalizers.next();
        let orphans = finalizer == Some(ORPHAN) || finalizers.any(|other| other == ORPHAN);
        let phase = match (metadata.deletion_timestamp, finalizer) {
            (None, _) => Phase::Stays,
            (Some(_), None) => Phase::Ends,
            (Some(_), Some(_)) if orphans => Phase::OrphansDependents,
            (Some(_), Some(_)) => Phase::DeletesDependents,
        };
        Some(Seen {
            uid: (*metadata.uid).into(),
            owners: known,
            phase,
            finalizer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_depends_on_the_deletion_and_its_finalizers() {
        let phase = |text: &str| Seen::read(text.as_bytes()).unwrap().phase;
        assert_eq!(phase(r#"{"uid":"a"}"#), Phase::Stays);
        assert_eq!(phase(r#"{"finalizers":["orphan"]}"#), Phase::Stays);
        let deleted = |finalizers: &str| {
            phase(&format!(
                r#"{{"deletionTimestamp":"2027-01-15T08:00:00Z","finalizers":{finalizers}}}"#
            ))
        };
        assert_eq!(deleted("null"), Phase::Ends);
        assert_eq!(deleted(r#"["example.com/x"]"#), Phase::Ends);
        assert_eq!(
            deleted(r#"["example.com/x","foregroundDeletion"]"#),
            Phase::DeletesDependents
        );
        assert_eq!(
            deleted(r#"["foregroundDeletion","orphan"]"#),
            Phase::OrphansDependents
        );
    }

    #[test]
    fn metadata_of_another_form_is_not_read() {
        assert_eq!(Seen::read(br#"{"ownerReferences":7}"#), None);
        let seen = Seen::read(br#"{"ownerReferences":[{"uid":"\u0061"}]}"#).unwrap();
        assert_eq!(&*seen.owners[0].uid, "a");
    }
}
