//! Tells in which version objects are stored, and rejects requests that need a conversion webhook, which this server
//! does not call.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Registry, Resource};
use crate::kinds::Kind;
use crate::schema::Model;
use crate::status::ApiError;

impl Resource {
    /// Returns whether objects are stored in the version of this resource.
    pub(crate) fn is_stored_version(&self) -> bool {
        let is_own = |model: &Arc<Model>| model.stored_version() == self.kind.version;
        self.conversion.is_none() && self.model.as_ref().is_none_or(is_own)
    }

    /// Checks that objects of this resource can be stored without a webhook that converts them.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if they are stored in another version and the definition has such a webhook.
    pub(crate) fn check_writable(&self) -> Result<(), ApiError> {
        let Some(model) = &self.model else {
            return Ok(());
        };
        self.check_conversion(&self.kind.version, model.stored_version())
    }

    /// Returns the 500 error that Kubernetes returns if the webhook can't be called, if the conversion needs it.
    pub(crate) fn check_conversion(&self, from: &str, to: &str) -> Result<(), ApiError> {
        let needs_webhook = |model: &Arc<Model>| model.needs_webhook();
        if from == to || !self.model.as_ref().is_some_and(needs_webhook) {
            return Ok(());
        }
        let Kind { group, kind, .. } = &*self.kind;
        let message = format!(
            "conversion webhook for {group}/{from}, Kind={kind} failed: the embedded server calls no webhook to convert the object to {group}/{to}"
        );
        Err(ApiError::new(500, "", message))
    }
}

impl Registry {
    /// Iterates over the namespaced resources that support `delete`.
    ///
    /// If several versions of a kind share a collection, only one is included: the one in which objects are stored, if
    /// it is served.
    pub(crate) fn namespaced(&self) -> impl Iterator<Item = &Arc<Resource>> {
        let mut seen = BTreeSet::new();
        let deletable = |resource: &&Arc<Resource>| {
            let is_own = resource.conversion.is_none();
            is_own && resource.is_namespaced() && resource.serves("delete")
        };
        let first = move |resource: &&Arc<Resource>| seen.insert(resource.collection);
        let stored = self.resources.iter().filter(|it| it.is_stored_version());
        stored
            .chain(&self.resources)
            .filter(deletable)
            .filter(first)
    }

    /// Gives each collection of custom objects the version in which they are stored, if it is served.
    ///
    /// The deletion of all objects uses it, so that it needs no conversion webhook.
    pub(super) fn prefer_stored_versions(&mut self) {
        for resource in self.resources.iter().filter(|it| it.model.is_some()) {
            if resource.is_stored_version() {
                let name = resource.kind.group_resource();
                self.collections.insert(name, Arc::clone(resource));
            }
        }
    }
}
