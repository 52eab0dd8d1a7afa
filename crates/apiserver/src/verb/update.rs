//! Changes a stored object: handles PUT, and stores the changes of PUT, PATCH and bindings.
//!
//! Guarantees:
//! - a change is computed from the newest state of the object. As in Kubernetes' `GuaranteedUpdate`, the
//!   change is computed again if another write comes first;
//! - the values that a request contains for the uid, the creation and deletion timestamps and the generation
//!   are never stored;
//! - if the kind has a `status` subresource, a client's PUT or PATCH changes either `status` or the other
//!   fields. A write of `status` can also change metadata, as in Kubernetes;
//! - a change without an effect produces no event and no revision;
//! - removing the last finalizer of an object that is being deleted removes the object, with one DELETED
//!   event.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admission::admit_update;
use super::ownership::track;
use super::service_address;
use super::write::{How, Origin, Step, Subject, Tracking, not_stored, replace_in};
use crate::metadata::Function;
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::{ApiError, FieldError};
use crate::storage::Entry;
use crate::strategy::{Part, StatusMetadata, custom};

/// Handles a PUT: replaces the stored object with `object`.
pub(crate) fn update(
    shared: &Shared,
    subject: Subject<'_>,
    object: &Object,
    how: How<'_>,
) -> Result<Arc<Entry>, ApiError> {
    check_path(subject, object)?;
    change(shared, subject, how, |old| {
        check_uid(subject, object.text("uid"), old.text("uid"), how)?;
        Ok(object.clone())
    })
}

/// Calls `compute` with the stored object, and stores the result. Retries after a concurrent write.
pub(crate) fn change(
    shared: &Shared,
    subject: Subject<'_>,
    how: How<'_>,
    compute: impl Fn(&Object) -> Result<Object, ApiError>,
) -> Result<Arc<Entry>, ApiError> {
    let resource = subject.resource;
    let mut how = how;
    loop {
        let (entry, mut old) = subject.newest(shared)?;
        entry.check_readable(resource)?;
        let mut sent = compute(&old)?;
        (resource.strategy.hooks.decode)(&mut sent);
        resource.complete(&mut sent);
        track(shared, resource, (&mut old, &mut sent), how);
        (resource.strategy.hooks.prepare)(&mut sent);
        check_path(subject, &sent)?;
        how.check_rights(&sent, Some(&old))?;
        check_revision(subject, &entry, &sent, how.part)?;
        if how.origin == Origin::Request && how.part == Part::Main {
            admit_update(resource, &old, &mut sent);
        }
        if let Some(set_times) = resource.strategy.hooks.set_times {
            let now = shared.settings.clock.now().to_string();
            set_times(&mut sent, &old, how.part, &now);
        }
        // No other service may get what this one is about to get.
        let gets_addresses = resource.is_services() && matches!(how.part, Part::Main | Part::All);
        let mut locked = gets_addresses.then(|| shared.lock());
        if let Some(state) = &mut locked {
            service_address::reallocate(state, resource, (&entry, &old), &mut sent, how.origin)?;
        }
        let (new, link) = merge(subject, &old, sent, how)?;
        resource.check_writable()?;
        let removes = old.is_deleting() && grace_is_over(&old) && is_released(resource, &new);
        if how.dry_run {
            return Ok(not_stored(resource, &entry, &new, link));
        }
        if new == old && !removes && is_stored(resource, &entry, &new) {
            return Ok(entry);
        }
        let step = if removes { Step::Remove } else { Step::Change };
        let state = locked.get_or_insert_with(|| shared.lock());
        let stored = match replace_in(shared, state, resource, (&entry, &new), step) {
            Ok(Some(stored)) => stored,
            Ok(None) => continue,
            // As in Kubernetes, an object that is too large with its owners is stored without them.
            Err(error) if error.code() == 413 && how.is_tracked() => {
                how.tracking = Tracking::Removed;
                continue;
            }
            Err(error) => return Err(error),
        };
        if removes {
            // As in Kubernetes, only the DELETED event has the revision of the removal.
            return Ok(not_stored(resource, &entry, &new, link));
        }
        return Ok(stored);
    }
}

/// Returns whether a write of the state `new`, which readers already see, changes nothing in the store.
///
/// Such a write stores the changes of the object's definition since the object was written, and what a conversion to
/// the stored version changes, as in Kubernetes.
fn is_stored(resource: &Resource, entry: &Entry, new: &Object) -> bool {
    let model = resource.model.as_deref();
    if model.is_none() && resource.conversion.is_none() {
        return true;
    }
    let is_viewed = resource.conversion.is_some() || entry.viewed(resource).is_some();
    !is_viewed || entry.is_same(&entry.changed(resource, new, entry.revision), model)
}

/// Returns whether the object has no finalizers: neither in `metadata` nor, for a namespace, in `spec`.
fn is_released(resource: &Resource, object: &Object) -> bool {
    object.finalizers().is_empty() && !(resource.strategy.hooks.is_held)(object)
}

/// Returns whether the grace period of a deletion is 0 or not set.
fn grace_is_over(object: &Object) -> bool {
    object.number("deletionGracePeriodSeconds").unwrap_or(0) == 0
}

/// Checks that name and namespace in a request body match the URL. The body may omit the namespace.
pub(super) fn check_path(subject: Subject<'_>, sent: &Object) -> Result<(), ApiError> {
    subject.check_namespace(sent.text("namespace"))?;
    let name = sent.text("name");
    if name.is_empty() {
        let message = format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            subject.name
        );
        return Err(ApiError::bad_request(message));
    }
    if name != subject.name {
        let message = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            subject.name
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// Checks that the uid in a request body is empty or equal to `stored`.
pub(super) fn check_uid(
    subject: Subject<'_>,
    sent: &str,
    stored: &str,
    how: How<'_>,
) -> Result<(), ApiError> {
    if sent.is_empty() || sent == stored {
        return Ok(());
    }
    let kind = &subject.resource.kind;
    // A dry run does not reach etcd, which adds the prefix.
    let registry = if how.dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {registry}/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: {stored}",
        etcd_key(subject.resource),
        subject.key()
    );
    Err(ApiError::conflict(kind, subject.name, &why))
}

/// Returns the prefix of the resource's etcd keys without `/registry/`, for error messages.
fn etcd_key(resource: &Resource) -> String {
    let kind = &resource.kind;
    match resource.strategy.stored_at {
        None if kind.custom => format!("{}/{}", kind.group, kind.plural),
        path => path.unwrap_or(&kind.plural).to_owned(),
    }
}

fn check_revision(
    subject: Subject<'_>,
    entry: &Entry,
    sent: &Object,
    part: Part,
) -> Result<(), ApiError> {
    let kind = &subject.resource.kind;
    match sent.text("resourceVersion") {
        "" | "0" => {
            let by_server = matches!(part, Part::Binding | Part::All);
            if subject.resource.strategy.requires_revision && !by_server {
                let error = FieldError::invalid(
                    "metadata.resourceVersion",
                    0,
                    "must be specified for an update",
                );
                return Err(ApiError::invalid_resource(kind, subject.name, &[error]));
            }
            Ok(())
        }
        sent if parsed_revision(sent)? == entry.revision => Ok(()),
        _ => Err(ApiError::modified(kind, subject.name)),
    }
}

/// Parses the `resourceVersion` in a request body.
pub(super) fn parsed_revision(sent: &str) -> Result<u64, ApiError> {
    sent.parse().map_err(|_| {
        let cause = format!("strconv.ParseUint: parsing {sent:?}: invalid syntax");
        ApiError::unexplained(&cause)
    })
}

/// Returns the new state of the object: `old` with the fields of `sent` that this write may change.
///
/// Also returns the `selfLink` of the request. The server never stores this link, but [`not_stored`] adds it
/// to a response.
fn merge(
    subject: Subject<'_>,
    old: &Object,
    sent: Object,
    how: How<'_>,
) -> Result<(Object, Option<Value>), ApiError> {
    let resource = subject.resource;
    let mut new = match how.part {
        Part::Status => with_status(resource, old, &sent),
        Part::Main | Part::Finalize if resource.strategy.has_status => {
            let mut new = sent;
            new.set("status", old.get("status").cloned());
            new
        }
        _ => sent,
    };
    (resource.strategy.hooks.prepare_update)(&mut new, old, how.part);
    let link = new.meta("selfLink").cloned();
    keep_system_metadata(&mut new, old);
    if how.origin == Origin::Request || resource.strategy.checks_direct_writes {
        let mut rules = resource.strategy.metadata;
        // Kubernetes checks only the change of the metadata again if a part of the object is written.
        let is_part = matches!(how.part, Part::Finalize | Part::Status);
        if is_part && !rules.on_update.is_empty() {
            rules.on_update = &[Function::Update];
        }
        let errors = if new.get("metadata") == old.get("metadata") {
            Vec::new()
        } else {
            rules.check_update(old, &new)
        };
        check_update(subject, (old, &new), how, errors)?;
    }
    for member in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        new.set_meta(member, old.meta(member).cloned());
    }
    let may_count =
        resource.strategy.counts_generations && !matches!(how.part, Part::Status | Part::Binding);
    if may_count && changes_desire(resource, old, &new) {
        let next = old.number("generation").unwrap_or(0).wrapping_add(1);
        new.set_meta("generation", Some(json!(next)));
    }
    if how.part == Part::Main {
        how.warn(resource, &new, Some(old));
    }
    Ok((new, link))
}

/// Returns `old` with the status and the owners of `sent`, and with the metadata that [`StatusMetadata`] determines.
fn with_status(resource: &Resource, old: &Object, sent: &Object) -> Object {
    let mut new = old.clone();
    new.set("status", sent.get("status").cloned());
    if let StatusMetadata::Except(kept) = resource.strategy.status_metadata {
        new.set("metadata", sent.get("metadata").cloned());
        for member in kept {
            new.set_meta(member, old.meta(member).cloned());
        }
    }
    new.set_meta("managedFields", sent.meta("managedFields").cloned());
    new
}

/// Replaces the members of `metadata` that an update ignores by those of the stored object.
fn keep_system_metadata(new: &mut Object, old: &Object) {
    let ignored = [
        "namespace",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "selfLink",
    ];
    for member in ignored {
        new.set_meta(member, old.meta(member).cloned());
    }
    for member in ["uid", "deletionGracePeriodSeconds"] {
        if new.meta(member).is_none_or(|value| *value == "") {
            new.set_meta(member, old.meta(member).cloned());
        }
    }
    if old.is_deleting() || new.text("deletionTimestamp").is_empty() {
        new.set_meta("deletionTimestamp", old.meta("deletionTimestamp").cloned());
    }
}

/// Validates a client's change from `old` to `new`.
///
/// # Errors
///
/// Returns one error that lists `errors` and the errors of the validation, if there are any.
fn check_update(
    subject: Subject<'_>,
    (old, new): (&Object, &Object),
    how: How<'_>,
    mut errors: Vec<FieldError>,
) -> Result<(), ApiError> {
    let (resource, part) = (subject.resource, how.part);
    let hooks = &resource.strategy.hooks;
    let mut found = hooks.errors(Some(old), new, part);
    if !found.is_empty() && !resource.strategy.checks_direct_writes {
        // A direct call can store unknown fields, which the decoder removes from the new object.
        found = hooks.errors(Some(&resource.without_unknown(old)), new, part);
    }
    errors.extend(found);
    let (kind, model) = (&resource.kind, resource.model.as_deref());
    let mut warn = |text| {
        if let Some(warnings) = how.warnings {
            warnings.add(text);
        }
    };
    let found = custom::validate_update(kind, model, (old, new), part, &mut warn);
    errors.extend(found);
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid(&resource.kind, subject.name, &errors))
}

/// Returns whether a write changes the desired state, and thus the generation.
fn changes_desire(resource: &Resource, old: &Object, new: &Object) -> bool {
    let desired = |object: &Object| -> Vec<(String, Value)> {
        let observed = |member: &str| {
            member == "metadata" || (member == "status" && resource.strategy.has_status)
        };
        object
            .members()
            .iter()
            .filter(|(member, _)| !observed(member))
            .map(|(member, value)| (member.clone(), value.clone()))
            .collect()
    };
    let annotated =
        resource.strategy.counts_annotations && old.meta("annotations") != new.meta("annotations");
    annotated || desired(old) != desired(new)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::server::Server;

    #[test]
    fn a_reused_revision_does_not_identify_the_same_state() {
        let server = Server::builder().build();
        let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": data});
        server.create(map(json!({}))).unwrap();
        let before = server.revision();
        server.update(map(json!({"from": "before"}))).unwrap();
        let shared = server.shared();
        let registry = shared.registry();
        let resource = registry.by_path("", "v1", "configmaps").unwrap();
        let subject = Subject {
            resource,
            namespace: Some("default"),
            name: "a",
        };
        let calls = Cell::new(0);
        let changed = change(shared, subject, How::DIRECT, |old| {
            calls.set(calls.get() + 1);
            if calls.get() == 1 {
                shared.restore(&mut shared.lock(), before).unwrap();
                server.update(map(json!({"from": "after"}))).unwrap();
            }
            let mut new = old.clone();
            new.set_meta("labels", Some(json!({"x": "y"})));
            Ok(new)
        });
        let changed = Object::stored(changed.unwrap().object(resource));
        assert_eq!(changed.get("data"), Some(&json!({"from": "after"})));
        assert_eq!(calls.get(), 2);
    }
}
