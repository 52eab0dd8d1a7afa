//! The entry points: keeps `metadata.managedFields` of an object up to date with every write.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conflict::Conflicts;
use super::last_applied;
use super::managed::{self, Identifier, Managed, Owned};
use super::planted::{self, Bug};
use super::set::Set;
use super::updater::{Change, Force, UpdateError, Updater, Versions};
use super::validate::{Duplicates, validate};

/// Maximum number of managers that are no appliers. The oldest ones are merged.
const UPDATERS_MAX: usize = 10;

/// Manager of the fields of merged managers.
const ANCIENT: &str = "ancient-changes";

/// Manager of the fields of an object that had no managers before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Manager of a write whose client has no name.
const UNKNOWN: &str = "unknown";

/// Identifier of the manager of an update until its result is known.
const CURRENT: &str = "current-operation";

/// The fields of `metadata` and of the type that have no owner.
const UNOWNED: [&[&str]; 12] = [
    &["apiVersion"],
    &["kind"],
    &["metadata"],
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "creationTimestamp"],
    &["metadata", "selfLink"],
    &["metadata", "uid"],
    &["metadata", "clusterName"],
    &["metadata", "generation"],
    &["metadata", "managedFields"],
    &["metadata", "resourceVersion"],
];

/// Keeps the owners of the objects of one resource in one version.
#[derive(Clone, Copy)]
pub(crate) struct FieldManager<'a> {
    pub(crate) versions: &'a dyn Versions,
    /// Version of the request, such as `apps/v1`, which the objects have.
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    /// Name of the subresource that is written, or an empty text.
    pub(crate) subresource: &'a str,
    /// Fields that no write of this resource or subresource can change, such as `status`.
    pub(crate) ignored: &'a Set,
    /// The object without content, as Go has it in memory: for a custom kind, `apiVersion` and `kind`; for a built-in
    /// kind, also the fields that Go always writes.
    pub(crate) empty: &'a Value,
}

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'a> {
    /// Name of the manager: the query parameter `fieldManager`, or the start of the client's `User-Agent`.
    pub(crate) manager: &'a str,
    pub(crate) now: Timestamp,
}

/// Why an object can't be applied.
#[derive(Debug)]
pub(crate) enum ApplyError {
    /// The applied object is invalid: status 400.
    BadRequest(String),
    /// Other managers own the fields: status 409.
    Conflict(Conflicts),
    /// The object does not have the type of its kind: status 500, as in Kubernetes.
    Internal(String),
}

impl<'a> FieldManager<'a> {
    /// Returns the object to store of a create, update or patch.
    ///
    /// `live` is the stored object, or [`FieldManager::empty`] for a create. The owners are those in `new`, if it has
    /// valid ones, or else those in `live`. An object that has no owners gets none, except when it is created.
    ///
    /// As in Kubernetes, an object whose owners can't be computed is returned without `managedFields`.
    pub(crate) fn update(&self, live: &Value, mut new: Value, write: Write<'_>) -> Value {
        let managed = self.decode_live_or_new(live, &new);
        managed::remove_entries(&mut new);
        match self.owners_after_update(live, &new, managed, write) {
            Ok(managed) => managed.encode(&mut new),
            Err(_) => managed::remove_entries(&mut new),
        }
        new
    }

    /// Returns the object to store of an apply, without defaults.
    ///
    /// `live` is the stored object, or [`FieldManager::empty`] if there is none.
    ///
    /// # Errors
    ///
    /// Returns the error of the response. Without [`Force::Yes`], other managers can own the fields.
    pub(crate) fn apply(
        &self,
        live: &Value,
        applied: &Value,
        write: Write<'_>,
        force: Force,
    ) -> Result<Value, ApplyError> {
        let managed = Managed::decode(live);
        let managed = managed.map_err(|why| {
            ApplyError::Internal(format!("failed to decode managed fields: {why}"))
        })?;
        self.check_kind(applied)?;
        let mut bare = live.clone();
        managed::remove_entries(&mut bare);
        let live = &bare;
        let is_kubectl = write.manager == last_applied::KUBECTL;
        let result = match self.apply_to((live, applied), &managed, write, force) {
            Err(ApplyError::Conflict(conflicts)) if is_kubectl => {
                match last_applied::unchanged_fields(live, self.versions, self.api_version) {
                    Some(fields) => {
                        let conflicts = conflicts.without(&fields);
                        if !conflicts.by_manager.is_empty() {
                            return Err(ApplyError::Conflict(conflicts));
                        }
                        self.apply_to((live, applied), &managed, write, Force::Yes)
                    }
                    None => Err(ApplyError::Conflict(conflicts)),
                }
            }
            other => other,
        };
        let (mut object, managed) = result?;
        if is_kubectl {
            last_applied::update(&mut object, applied);
        }
        managed.encode(&mut object);
        Ok(object)
    }

    fn check_kind(&self, applied: &Value) -> Result<(), ApplyError> {
        let text = |name: &str| applied.get(name).and_then(Value::as_str);
        if text("apiVersion") == Some(self.api_version) && text("kind") == Some(self.kind) {
            return Ok(());
        }
        let kind = kind_text(applied);
        Err(ApplyError::BadRequest(format!(
            "invalid object type: {kind}"
        )))
    }

    /// Returns the owners that an update starts from.
    fn decode_live_or_new(&self, live: &Value, new: &Value) -> Managed {
        let of_live = || Managed::decode(live).unwrap_or_default();
        // A subresource can't change the owners directly.
        if !self.subresource.is_empty() {
            return of_live();
        }
        if is_reset(new) {
            return Managed::default();
        }
        match Managed::decode(new) {
            Ok(managed) if !managed.owners.is_empty() => managed,
            _ => of_live(),
        }
    }

    fn owners_after_update(
        &self,
        live: &Value,
        new: &Value,
        managed: Managed,
        write: Write<'_>,
    ) -> Result<Managed, String> {
        let is_stored = live
            .pointer("/metadata/uid")
            .and_then(Value::as_str)
            .is_some_and(|uid| !uid.is_empty());
        if managed.owners.is_empty() && is_stored {
            return Ok(managed);
        }
        let mut bare = live.clone();
        managed::remove_entries(&mut bare);
        self.tracked_update(&bare, new, managed, write)
    }

    /// Returns the owners after an update of an object whose owners are tracked.
    fn tracked_update(
        &self,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        write: Write<'_>,
    ) -> Result<Managed, String> {
        for (object, what) in [(new, "new"), (live, "live")] {
            self.check(object, Duplicates::Allowed).map_err(|why| {
                let of = object_text(object);
                format!("failed to convert {what} object ({of}) to smd typed: {why}")
            })?;
        }
        let change = Change {
            live,
            new,
            api_version: self.api_version,
            manager: CURRENT,
        };
        let owners = self.updater().update(change, &managed.owners);
        let mut owners = owners.map_err(|why| {
            let of = object_text(new);
            format!("failed to update ManagedFields ({of}): {why}")
        })?;
        strip(&mut owners, CURRENT);
        if let Some(mut current) = owners.remove(CURRENT) {
            let (name, subresource) = (name_of(write), self.subresource);
            let identifier = Identifier::of_update(name, self.api_version, subresource).text();
            if let Some(previous) = owners.remove(&identifier) {
                current.set.add(previous.set);
            }
            owners.insert(identifier.clone(), current);
            managed.times.insert(identifier, write.now);
        }
        managed.owners = owners;
        merge_oldest_updaters(&mut managed);
        Ok(managed)
    }

    /// Applies the second object to the first one, which has no `managedFields`. Returns the object, and its owners.
    fn apply_to(
        &self,
        (live, applied): (&Value, &Value),
        managed: &Managed,
        write: Write<'_>,
        force: Force,
    ) -> Result<(Value, Managed), ApplyError> {
        let mut managed = managed.clone();
        if managed.owners.is_empty() {
            let first = Write {
                manager: BEFORE_FIRST_APPLY,
                ..write
            };
            managed = self
                .tracked_update(self.empty, live, managed, first)
                .map_err(|why| {
                    let message = format!("failed to create manager for existing fields: {why}");
                    ApplyError::Internal(message)
                })?;
        }
        if managed::entries(applied).is_some_and(|entries| !entries.is_null()) {
            let message = "metadata.managedFields must be nil".to_owned();
            return Err(ApplyError::BadRequest(message));
        }
        for (object, duplicates, what) in [
            (applied, Duplicates::Rejected, "patch"),
            (live, Duplicates::Allowed, "live"),
        ] {
            self.check(object, duplicates).map_err(|why| {
                let of = object_text(object);
                ApplyError::Internal(format!(
                    "failed to create typed {what} object ({of}): {why}"
                ))
            })?;
        }
        let identifier = Identifier::of_apply(name_of(write), self.subresource).text();
        let change = Change {
            live,
            new: applied,
            api_version: self.api_version,
            manager: &identifier,
        };
        let (object, mut owners) = match self.updater().apply(change, &managed.owners, force) {
            Ok(result) => result,
            Err(UpdateError::Conflicts(conflicts)) => return Err(ApplyError::Conflict(conflicts)),
            Err(UpdateError::Other(why)) => return Err(ApplyError::Internal(why)),
        };
        strip(&mut owners, &identifier);
        managed.owners = owners;
        let object = match object {
            Some(object) => {
                managed.times.insert(identifier, write.now);
                object
            }
            None if planted::has(Bug::Times) => {
                managed.times.insert(identifier, write.now);
                live.clone()
            }
            None => live.clone(),
        };
        Ok((object, managed))
    }

    fn updater(&self) -> Updater<'a> {
        Updater {
            versions: self.versions,
            ignored: self.ignored,
        }
    }

    fn check(&self, object: &Value, duplicates: Duplicates) -> Result<(), String> {
        match self.versions.type_of(self.api_version) {
            Some(of_type) => validate(object, of_type, duplicates),
            None => Err(format!("no corresponding type for {}", kind_text(object))),
        }
    }
}

/// Restores the times of the owners if a write has changed nothing else.
///
/// The object then equals the stored one, so that the write has no effect.
pub(crate) fn keep_times(old: &Value, new: &mut Value) {
    let entries =
        |object: &Value| -> Option<Vec<Value>> { managed::entries(object)?.as_array().cloned() };
    let (Some(old_entries), Some(new_entries)) = (entries(old), entries(new)) else {
        return;
    };
    let without_time = |entry: &Value| {
        let mut entry = entry.clone();
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("time");
        }
        entry
    };
    let mut pairs = old_entries.iter().zip(&new_entries);
    let is_same = old_entries.len() == new_entries.len()
        && old_entries != new_entries
        && pairs.all(|(old, new)| without_time(old) == without_time(new));
    if !is_same {
        return;
    }
    set_entries(new, old_entries);
    if new != old {
        set_entries(new, new_entries);
    }
}

fn set_entries(object: &mut Value, entries: Vec<Value>) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

fn name_of(write: Write<'_>) -> &str {
    match write.manager {
        "" => UNKNOWN,
        manager => manager,
    }
}

/// Removes the fields that have no owner.
fn strip(owners: &mut super::managed::Owners, manager: &str) {
    if let Some(owned) = owners.get_mut(manager)
        && !planted::has(Bug::Metadata)
    {
        owned.set.subtract(&Set::of(&UNOWNED));
        if owned.set.is_empty() {
            owners.remove(manager);
        }
    }
}

/// Returns whether a request removes all owners: with an empty list, or with one empty entry.
fn is_reset(new: &Value) -> bool {
    match managed::entries(new)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        _ if planted::has(Bug::Reset) => false,
        Some([]) => true,
        Some([entry]) => *entry == json!({}),
        _ => false,
    }
}

/// Merges the fields of the oldest managers that are no appliers, per version, until there are few enough.
fn merge_oldest_updaters(managed: &mut Managed) {
    let mut updaters: Vec<(i64, String)> = Vec::new();
    for (manager, owned) in &managed.owners {
        if !owned.is_applied {
            let time = managed.times.get(manager).copied();
            updaters.push((managed::seconds(time), manager.clone()));
        }
    }
    let mut count = updaters.len();
    updaters.sort();
    let mut first_of: Vec<(String, String)> = Vec::new();
    for (_, manager) in updaters {
        if count <= UPDATERS_MAX + usize::from(planted::has(Bug::Updaters)) {
            return;
        }
        let Some(owned) = managed.owners.get(&manager) else {
            continue;
        };
        let version = owned.api_version.clone();
        let Some((_, first)) = first_of.iter().find(|(of, _)| *of == version) else {
            first_of.push((version, manager));
            continue;
        };
        let bucket = Identifier::of_update(ANCIENT, &version, "").text();
        if !managed.owners.contains_key(&bucket)
            && let Some(first) = managed.owners.remove(first)
        {
            managed.owners.insert(bucket.clone(), first);
        }
        let time = managed.times.get(&manager).copied();
        let Some(owned) = managed.owners.remove(&manager) else {
            continue;
        };
        count -= 1;
        let Owned { set, .. } = owned;
        let merged = managed.owners.get_mut(&bucket);
        if let Some(merged) = merged {
            merged.set.add(set);
        }
        match time {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
}

/// Returns the kind of an object as Go shows it, such as `apps/v1, Kind=Deployment`.
pub(crate) fn kind_text(object: &Value) -> String {
    let text = |name: &str| {
        let text = object.get(name).and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let (version, kind) = (text("apiVersion"), text("kind"));
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}

/// Returns the name and the kind of an object, as messages show it.
pub(crate) fn object_text(object: &Value) -> String {
    let text = |name: &str| {
        let metadata = object.get("metadata");
        let text = metadata
            .and_then(|metadata| metadata.get(name))
            .and_then(Value::as_str);
        text.unwrap_or_default()
    };
    let (namespace, name) = (text("namespace"), text("name"));
    format!("{namespace}/{name}; {}", kind_text(object))
}
