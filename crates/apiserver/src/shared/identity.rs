//! Connects access control with the stored objects: RBAC objects, and the objects that tokens name.

use std::sync::Arc;

use http::request::Parts;

use super::{Shared, State};
use crate::access::User;
use crate::access::account_token::{Found, Referents};
use crate::access::rbac::{Rbac, RbacKind};
use crate::object::Object;
use crate::resource::{CollectionId, Registry, Resource};
use crate::route::Query;
use crate::status::ApiError;
use crate::storage::{Entry, Event};

/// The resources of the RBAC objects.
pub(super) struct RbacResources(Vec<(RbacKind, Arc<Resource>)>);

impl RbacResources {
    pub(super) fn of(registry: &Registry) -> RbacResources {
        let found = RbacKind::ALL.into_iter().filter_map(|kind| {
            let resource = registry.by_path("rbac.authorization.k8s.io", "v1", kind.plural())?;
            Some((kind, Arc::clone(resource)))
        });
        RbacResources(found.collect())
    }

    fn find(&self, collection: CollectionId) -> Option<&(RbacKind, Arc<Resource>)> {
        let mut all = self.0.iter();
        all.find(|(_, resource)| resource.collection == collection)
    }
}

impl Shared {
    /// Authenticates and authorizes a request, as [`Gate::admit`](crate::access::Gate::admit) does.
    pub(crate) fn admit(&self, parts: &Parts, query: &Query) -> (Arc<User>, Option<ApiError>) {
        self.with_referents(|referents| self.gate.admit(parts, query, referents))
    }

    /// Calls `read` with the objects that tokens name. Must not be called while the state is locked.
    pub(crate) fn with_referents<T>(&self, read: impl FnOnce(&Referents<'_>) -> T) -> T {
        let find = |plural: &str, namespace: &str, name: &str| self.found(plural, namespace, name);
        read(&Referents {
            clock: &self.settings.clock,
            find: &find,
        })
    }

    fn found(&self, plural: &str, namespace: &str, name: &str) -> Option<Found> {
        let registry = self.registry();
        let resource = registry.by_path("", "v1", plural)?;
        let key = resource.key(Some(namespace), name);
        let entry = self
            .lock()
            .storage
            .get(resource.collection, &key)
            .cloned()?;
        let object = Object::stored(entry.object(resource));
        Some(Found {
            uid: object.text("uid").to_owned(),
            deleted: object.deletion_time(),
        })
    }

    /// Makes a write of an RBAC object take effect.
    pub(super) fn follow_rbac(&self, collection: CollectionId, event: &Event) {
        if let Some(rbac) = self.gate.rbac()
            && let Some((kind, resource)) = self.rbac_resources.find(collection)
        {
            let object = event.new.as_ref().map(|entry| entry.object(resource));
            rbac.write().follow(*kind, event.key(), object.as_ref());
        }
    }

    /// Makes the stored RBAC objects take effect, and no others.
    pub(crate) fn follow_all_rbac(&self, state: &State) {
        let Some(rbac) = self.gate.rbac() else {
            return;
        };
        let mut all = Rbac::default();
        for (kind, resource) in &self.rbac_resources.0 {
            let stored = state.storage.below(resource.collection, "");
            let mut follow = |entry: &Arc<Entry>| {
                all.follow(*kind, &entry.key, Some(&entry.object(resource)));
            };
            stored.for_each(&mut follow);
        }
        *rbac.write() = all;
    }
}
