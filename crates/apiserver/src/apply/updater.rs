//! Determines who owns which field after a write, and which fields an apply removes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::atom::Type;
use super::compare::{Comparison, compare};
use super::conflict::Conflicts;
use super::field_set::fields_of;
use super::managed::{Owned, Owners};
use super::merge::merge;
use super::path::equal_values;
use super::planted::{self, Bug};
use super::reconcile::{reconciled, with_structs};
use super::remove::remove;
use super::set::Set;
use super::validate::{Duplicates, validate};

/// The versions of one kind.
pub(crate) trait Versions {
    /// Returns the type of the objects of a version, such as `apps/v1`, or `None` if the kind has no such version.
    fn type_of(&self, api_version: &str) -> Option<Type<'_>>;

    /// Converts an object to another version. Returns `None` if there is no such version, so that its owners are
    /// dropped.
    ///
    /// # Errors
    ///
    /// Returns the reason if the object can't be converted. For a custom kind, an unknown version is an error too.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String>;
}

/// Computes the owners of fields after a write.
#[derive(Clone, Copy)]
pub(super) struct Updater<'a> {
    pub(super) versions: &'a dyn Versions,
    /// Fields that no write of this resource can change, such as `status`.
    pub(super) ignored: &'a Set,
}

/// A write of a manager to an object.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub(super) live: &'a Value,
    /// The new object, or the applied one.
    pub(super) new: &'a Value,
    /// The version of both.
    pub(super) api_version: &'a str,
    /// Identifier of the manager.
    pub(super) manager: &'a str,
}

/// Why an apply fails.
#[derive(Debug)]
pub(super) enum UpdateError {
    Conflicts(Conflicts),
    Other(String),
}

/// An object in one version, with its type.
struct Versioned<'a> {
    object: Cow<'a, Value>,
    of_type: Type<'a>,
}

impl From<String> for UpdateError {
    fn from(why: String) -> UpdateError {
        UpdateError::Other(why)
    }
}

impl<'a> Updater<'a> {
    /// Returns an object in a version, or `None` if there is no such version.
    fn converted<'v>(
        &self,
        object: &'v Value,
        api_version: &str,
    ) -> Result<Option<Versioned<'v>>, String>
    where
        'a: 'v,
    {
        if !object.is_object() {
            // Nothing is left of an object whose type is atomic.
            return Err("failed to convert value to unstructured for type <nil>".to_owned());
        }
        let of_type = self.versions.type_of(api_version);
        if object.get("apiVersion").and_then(Value::as_str) == Some(api_version) {
            let object = Cow::Borrowed(object);
            return Ok(of_type.map(|of_type| Versioned { object, of_type }));
        }
        let converted = self.versions.convert(object, api_version)?;
        let (Some(converted), Some(of_type)) = (converted, of_type) else {
            return Ok(None);
        };
        validate(&converted, of_type, Duplicates::Rejected)?;
        let object = Cow::Owned(converted);
        Ok(Some(Versioned { object, of_type }))
    }

    /// Returns the type of the version of a change.
    fn type_of(&self, change: Change<'_>) -> Result<Type<'a>, String> {
        let of_type = self.versions.type_of(change.api_version);
        of_type.ok_or_else(|| format!("no corresponding type for {}", change.api_version))
    }

    /// Returns the owners after an update to `change.new`.
    pub(super) fn update(&self, change: Change<'_>, owners: &Owners) -> Result<Owners, String> {
        let owners = self.reconcile(change.live, owners)?;
        let (mut owners, compared) = match self.take(change, owners, Force::Yes) {
            Ok(taken) => taken,
            Err(UpdateError::Other(why)) => return Err(why),
            Err(UpdateError::Conflicts(conflicts)) => return Err(conflicts.message()),
        };
        let mut set = owners.remove(change.manager).unwrap_or_else(|| Owned {
            set: Set::default(),
            api_version: change.api_version.to_owned(),
            is_applied: false,
        });
        set.set.subtract(&compared.removed);
        set.set.add(compared.modified);
        set.set.add(compared.added);
        set.set.subtract_all(self.ignored);
        if !set.set.is_empty() {
            let owned = Owned {
                set: set.set,
                api_version: change.api_version.to_owned(),
                is_applied: false,
            };
            owners.insert(change.manager.to_owned(), owned);
        }
        Ok(owners)
    }

    /// Applies `change.new`. Returns the new object, or `None` if it equals the old one, and its owners.
    pub(super) fn apply(
        &self,
        change: Change<'_>,
        owners: &Owners,
        force: Force,
    ) -> Result<(Option<Value>, Owners), UpdateError> {
        let mut owners = self.reconcile(change.live, owners)?;
        let of_type = self.type_of(change)?;
        let merged = merge(change.live, change.new, of_type)
            .map_err(|why| format!("failed to merge config: {why}"))?;
        let mut set = fields_of(change.new, of_type);
        if !planted::has(Bug::IgnoredFields) {
            set.subtract_all(self.ignored);
        }
        let owned = Owned {
            set,
            api_version: change.api_version.to_owned(),
            is_applied: true,
        };
        let last = owners.insert(change.manager.to_owned(), owned);
        let object = self
            .prune(merged, &owners, change, last.as_ref())
            .map_err(|why| format!("failed to prune fields: {why}"))?;
        let change = Change {
            new: &object,
            ..change
        };
        let (owners, _) = self.take(change, owners, force)?;
        let is_same = equal_values(change.live, &object);
        Ok(((!is_same).then_some(object), owners))
    }

    /// Adapts the owners to changes of the types. Owners of unknown versions are dropped.
    fn reconcile(&self, live: &Value, owners: &Owners) -> Result<Owners, String> {
        let mut types: BTreeMap<&str, Option<Type<'a>>> = BTreeMap::new();
        let mut result = Owners::new();
        for (manager, owned) in owners {
            let version = owned.api_version.as_str();
            let of_type = if let Some(of_type) = types.get(version) {
                *of_type
            } else {
                let converted = self.converted(live, version)?;
                let of_type = converted.and_then(|_| self.versions.type_of(version));
                types.insert(version, of_type);
                of_type
            };
            if let Some(of_type) = of_type {
                let mut owned = owned.clone();
                if let Some(set) = reconciled(&owned.set, of_type)
                    && !planted::has(Bug::ChangedTypes)
                {
                    owned.set = set;
                }
                result.insert(manager.clone(), owned);
            }
        }
        Ok(result)
    }

    /// Takes the changed fields from their other owners. Returns the owners, and the difference of the objects.
    fn take(
        &self,
        change: Change<'_>,
        mut owners: Owners,
        force: Force,
    ) -> Result<(Owners, Comparison), UpdateError> {
        let failed = |why| format!("failed to compare objects: {why}");
        let mut own = compare(change.live, change.new, self.type_of(change)?).map_err(failed)?;
        own.ignore(self.ignored);
        let mut versions = BTreeMap::from([(change.api_version.to_owned(), Some(Taken::of(&own)))]);
        let mut conflicts = Conflicts::default();
        for (manager, owned) in &owners {
            if manager == change.manager {
                continue;
            }
            if !versions.contains_key(&owned.api_version) {
                let taken = self.taken_in(change, &owned.api_version)?;
                versions.insert(owned.api_version.clone(), taken);
            }
            if let Some(Some(taken)) = versions.get(&owned.api_version) {
                let set = owned.set.intersection(&taken.changed);
                if !set.is_empty() {
                    conflicts.by_manager.insert(manager.clone(), set);
                }
            }
        }
        if force == Force::No && !conflicts.by_manager.is_empty() {
            return Err(UpdateError::Conflicts(conflicts));
        }
        owners.retain(|manager, owned| {
            if manager != change.manager {
                let Some(Some(taken)) = versions.get(&owned.api_version) else {
                    return false;
                };
                if let Some(conflicts) = conflicts.by_manager.get(manager)
                    && !planted::has(Bug::TakenFields)
                {
                    owned.set.subtract(conflicts);
                }
                if !planted::has(Bug::RemovedFields) {
                    owned.set.subtract(&taken.removed);
                }
            }
            !owned.set.is_empty()
        });
        Ok((owners, own))
    }

    /// Returns what a change takes in another version, or `None` if there is no such version.
    fn taken_in(&self, change: Change<'_>, version: &str) -> Result<Option<Taken>, String> {
        let old = self.converted(change.live, version);
        let old = old.map_err(|why| format!("failed to convert old object: {why}"))?;
        let new = self.converted(change.new, version);
        let new = new.map_err(|why| format!("failed to convert new object: {why}"))?;
        let (Some(old), Some(new)) = (old, new) else {
            return Ok(None);
        };
        let mut compared = compare(&old.object, &new.object, old.of_type)
            .map_err(|why| format!("failed to compare objects: {why}"))?;
        compared.ignore(self.ignored);
        Ok(Some(Taken::of(&compared)))
    }

    /// Removes the fields that the manager has applied before and does not apply now, unless others own them.
    fn prune(
        &self,
        merged: Value,
        owners: &Owners,
        change: Change<'_>,
        last: Option<&Owned>,
    ) -> Result<Value, String> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else {
            return Ok(merged);
        };
        let failed =
            |why| format!("failed to convert merged object to last applied version: {why}");
        let Some(converted) = self.converted(&merged, &last.api_version).map_err(failed)? else {
            return Ok(merged);
        };
        let of_type = converted.of_type;
        let last_set = with_structs(&last.set, Some(of_type));
        let pruned = remove(&converted.object, &last_set, of_type);
        let pruned = self
            .with_owned_items(&converted.object, pruned, &last.api_version, owners)
            .map_err(|why| format!("failed add back owned items: {why}"))?;
        // Fields that remain although no manager owns them are removed only if this manager has applied them.
        let failed = |why| {
            format!(
                "failed add back dangling items: \
                 failed to convert pruned object to last applied version: {why}"
            )
        };
        let in_last = self.converted(&pruned, &last.api_version);
        let Some(in_last) = in_last.map_err(failed)? else {
            return Ok(merged);
        };
        let mut dangling = with_structs(&fields_of(&converted.object, of_type), Some(of_type));
        dangling.subtract(&with_structs(
            &fields_of(&in_last.object, of_type),
            Some(of_type),
        ));
        if !planted::has(Bug::DanglingItems) {
            dangling = dangling.intersection(&last_set);
        }
        let pruned = remove(&converted.object, &dangling, of_type);
        let pruned = self.converted(&pruned, change.api_version)?;
        Ok(pruned.map_or(merged.clone(), |pruned| pruned.object.into_owned()))
    }

    /// Adds the fields back that managers own, first those of the version of the pruned object.
    fn with_owned_items(
        &self,
        merged: &Value,
        mut pruned: Value,
        version: &str,
        owners: &Owners,
    ) -> Result<Value, String> {
        let mut by_version: BTreeMap<&str, Set> = BTreeMap::new();
        for owned in owners.values() {
            let set = by_version.entry(&owned.api_version).or_default();
            set.add(owned.set.clone());
        }
        let first = by_version.remove_entry(version);
        for (version, owned) in first.into_iter().chain(by_version) {
            let failed =
                |why| format!("failed to convert merged object at version {version}: {why}");
            let Some(merged) = self.converted(merged, version).map_err(failed)? else {
                continue;
            };
            let failed =
                |why| format!("failed to convert pruned object at version {version}: {why}");
            let Some(converted) = self.converted(&pruned, version).map_err(failed)? else {
                continue;
            };
            let of_type = merged.of_type;
            let fields = |object: &Value| with_structs(&fields_of(object, of_type), Some(of_type));
            let mut removed = fields(&merged.object);
            removed.subtract(&fields(&converted.object));
            if !planted::has(Bug::OwnedItems) {
                removed.subtract(&with_structs(&owned, Some(of_type)));
            }
            pruned = remove(&merged.object, &removed, of_type);
        }
        Ok(pruned)
    }
}

/// Whether an apply takes fields of other managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Force {
    Yes,
    No,
}

/// The fields that a change takes from their owners.
struct Taken {
    changed: Set,
    removed: Set,
}

impl Taken {
    fn of(compared: &Comparison) -> Taken {
        let mut changed = compared.modified.clone();
        changed.add(compared.added.clone());
        Taken {
            changed,
            removed: compared.removed.clone(),
        }
    }
}
