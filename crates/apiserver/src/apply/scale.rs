//! Converts the owners of an object to those of its `Scale`, and back (`ScaleHandler` in Kubernetes).
//!
//! The number of replicas is the only field that both have.

use serde_json::Value;

use super::managed::{Managed, Owned};
use super::set::Set;

/// Version of `Scale`.
const SCALE: &str = "autoscaling/v1";

/// The number of replicas in a `Scale`.
const REPLICAS: &[&str] = &["spec", "replicas"];

/// Where the objects of a kind have the number of replicas.
#[derive(Clone, Copy)]
pub(crate) struct Replicas<'a> {
    /// Returns the path of the number in objects of a version, or `None` for an unknown version.
    pub(crate) path_in: &'a dyn Fn(&str) -> Option<Vec<&'a str>>,
    /// The version of the request, such as `apps/v1`.
    pub(crate) api_version: &'a str,
}

impl Replicas<'_> {
    fn set_in(&self, api_version: &str) -> Option<Set> {
        let path = (self.path_in)(api_version)?;
        Some(Set::of(&[path.as_slice()]))
    }

    /// Sets the owners of the `Scale` of an object.
    ///
    /// # Errors
    ///
    /// Returns the message about invalid owners of the object.
    pub(crate) fn to_scale(self, object: &Value, scale: &mut Value) -> Result<(), String> {
        let managed = Managed::decode(object)?;
        let mut of_scale = Managed::default();
        for (manager, owned) in managed.owners {
            let replicas = self.set_in(&owned.api_version);
            if replicas.is_some_and(|replicas| !owned.set.intersection(&replicas).is_empty()) {
                let time = managed.times.get(&manager);
                of_scale
                    .times
                    .extend(time.map(|time| (manager.clone(), *time)));
                of_scale
                    .owners
                    .insert(manager, owned_by(REPLICAS, SCALE, owned.is_applied));
            }
        }
        of_scale.encode(scale);
        Ok(())
    }

    /// Sets the owners of an object after a write of its `Scale`, given the object before.
    ///
    /// # Errors
    ///
    /// Returns the message about invalid owners.
    pub(crate) fn to_object(
        self,
        before: &Value,
        scale: &Value,
        object: &mut Value,
    ) -> Result<(), String> {
        let mut managed = Managed::decode(before)?;
        let mut of_scale = Managed::decode(scale)?;
        let managers: Vec<String> = managed.owners.keys().cloned().collect();
        for manager in managers {
            let Some(owned) = managed.owners.get_mut(&manager) else {
                continue;
            };
            let Some(replicas) = self.set_in(&owned.api_version) else {
                managed.owners.remove(&manager);
                continue;
            };
            if !owned.set.intersection(&replicas).is_empty()
                && of_scale.owners.remove(&manager).is_none()
            {
                owned.set.subtract(&replicas);
                if owned.set.is_empty() {
                    managed.owners.remove(&manager);
                }
            }
        }
        let path = (self.path_in)(self.api_version).unwrap_or_default();
        // As in Kubernetes, an entry that is new has no time.
        let replicas = Set::of(&[REPLICAS]);
        for (manager, owned) in of_scale.owners {
            if owned.set.intersection(&replicas).is_empty() {
                continue;
            }
            let owned = owned_by(&path, self.api_version, owned.is_applied);
            managed.owners.insert(manager, owned);
        }
        managed.encode(object);
        Ok(())
    }
}

fn owned_by(path: &[&str], api_version: &str, is_applied: bool) -> Owned {
    Owned {
        set: Set::of(&[path]),
        api_version: api_version.to_owned(),
        is_applied,
    }
}
