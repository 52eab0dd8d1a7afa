//! Finds the stored objects that a list can reuse instead of decoding unchanged list items again.
//!
//! [`KnownStates`] compares the name, uid and revision of a list item with the stored object. A list reuses
//! only objects that the same source (one list and watch of the informer) received earlier. This module does
//! not decode objects and does not change the store.

use std::sync::Arc;

use crate::{
    codec::Identity,
    object::{Epoch, Known, Object, ObjectName, ResourceVersion, SourceId, UidHash},
};
use derive_where::derive_where;

/// The stored objects of one source (one list and watch) that a new list can reuse.
#[derive_where(Clone)]
pub(crate) struct KnownStates<K> {
    pub(crate) states: Arc<dyn Known<K> + Send + Sync>,
    pub(crate) source: SourceId,
    /// Epoch of `source` when the list started. Only stored objects of the same epoch are reused.
    ///
    /// A source starts a new epoch when its server may have been restored from a backup. After a restoration,
    /// a revision can identify another state of the object than before.
    pub(crate) epoch: Epoch,
}

impl<K> KnownStates<K> {
    /// Returns the stored object with the name, uid and revision of the list item `identity`.
    ///
    /// Returns `None` if the stored object came from another source (list and watch). Also returns `None` if
    /// the server may have been restored from a backup after the stored object was received and before the
    /// list started. The returned object may be broken, which means that it failed to decode earlier.
    pub(super) fn unchanged(&self, identity: &Identity<'_>) -> Option<Object<K>> {
        let revision = ResourceVersion::of(identity);
        if revision.is_unset() {
            return None;
        }
        let (source, object) = self.states.known(&ObjectName::of(identity)?)?;
        let is_the_same = source == self.source
            && object.revision().epoch() == self.epoch
            && *object.revision() == revision
            && (object.uid_hash()).may_be(UidHash::of(&identity.metadata.uid));
        is_the_same.then_some(object)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// A fake store with one object. The object's source has the [`SourceId`] 3, an arbitrary number.
    struct One(Object<ConfigMap>);

    impl Known<ConfigMap> for One {
        fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<ConfigMap>)> {
            let is_it = self.0.object_name() == name;
            is_it.then(|| (SourceId::new(3), self.0.clone()))
        }

        fn for_each(&self, _: &mut dyn FnMut(SourceId, &ObjectName, &Object<ConfigMap>)) {}
    }

    fn json(name: &str, uid: &str, revision: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{revision}"}}}}"#
        )
    }

    #[test]
    fn a_state_is_known_by_name_uid_revision_source_and_epoch() {
        let object: ConfigMap = serde_json::from_str(&json("a", "u", "5")).unwrap();
        let object = Object::new(object).unwrap();
        let later = Epoch::FIRST.after_suspicion(Epoch::FIRST);
        let finds = |source, epoch, json: &str| {
            let known = KnownStates {
                states: Arc::new(One(object.clone())),
                source: SourceId::new(source),
                epoch,
            };
            let identity: Identity<'_> = serde_json::from_str(json).unwrap();
            let found = known.unchanged(&identity);
            found.is_some_and(|found| found.is_same(&object))
        };
        assert!(finds(3, Epoch::FIRST, &json("a", "u", "5")));
        for (what, found) in [
            ("another name", finds(3, Epoch::FIRST, &json("b", "u", "5"))),
            ("another uid", finds(3, Epoch::FIRST, &json("a", "v", "5"))),
            (
                "another revision",
                finds(3, Epoch::FIRST, &json("a", "u", "6")),
            ),
            ("no revision", finds(3, Epoch::FIRST, &json("a", "u", ""))),
            ("no name", finds(3, Epoch::FIRST, &json("", "u", "5"))),
            (
                "another source",
                finds(2, Epoch::FIRST, &json("a", "u", "5")),
            ),
            ("another epoch", finds(3, later, &json("a", "u", "5"))),
        ] {
            assert!(!found, "{what}");
        }
    }
}
