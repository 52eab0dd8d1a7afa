//! Handles POST on a collection: creates an object.
//!
//! Guarantees:
//! - the server sets `uid`, `creationTimestamp` and `generation`;
//! - the server generates a name if the object has `generateName` and no name;
//! - uids and generated names are reproducible: the same seed and the same calls result in the same values;
//! - of two requests that create the same object, at most one succeeds. The existence check and the write
//!   happen under one lock.

use std::sync::Arc;

use parking_lot::MutexGuard;
use serde_json::json;

use super::admission::admit;
use super::namespace_content;
use super::ownership::track_new;
use super::service_address;
use super::write::{How, Origin};
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::{Serving, Shared, State};
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::{Part, custom};

/// Maximum length in bytes of `generateName` in a generated name. A longer `generateName` is truncated before
/// the suffix is appended (`MaxGeneratedNameLength`).
const GENERATED_BASE_MAX: usize = 58;
/// Number of characters in the random suffix of a generated name.
const SUFFIX_LENGTH: usize = 5;
/// Characters of the suffix of a generated name, the same as in Kubernetes' `util/rand`.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Maximum number of names generated for one object (`maxNameGenerationCreateAttempts`).
const GENERATE_ATTEMPTS: usize = 8;

/// Creates an object and returns the stored object; `namespace` is the namespace in the URL.
pub(crate) fn create(
    shared: &Shared,
    resource: &Resource,
    namespace: Option<&str>,
    object: Object,
    how: How<'_>,
) -> Result<Arc<Entry>, ApiError> {
    let mut object = object;
    let namespace = settle_namespace(resource, namespace, &mut object, how)?;
    let place = namespace.as_deref();
    (resource.strategy.hooks.decode)(&mut object);
    track_new(shared, resource, &mut object, how);
    // Kubernetes reports a deleted definition and a missing namespace before invalid fields.
    let mut state = shared.lock();
    check_definition(shared, &state, resource, &object)?;
    check_namespace(shared, &state, (resource, place), &object, how)?;
    if how.origin == Origin::Request {
        admit(shared, &state, resource, &mut object)?;
    }
    if how.origin == Origin::Request || object.text("uid").is_empty() {
        object.set_meta("uid", Some(json!(state.new_uid())));
    }
    drop(state);
    how.check_rights(&object, None)?;
    let revision = object.text("resourceVersion").to_owned();
    prepare(shared, resource, &mut object, how);
    let generates = object.text("name").is_empty() && !object.text("generateName").is_empty();
    if !generates {
        complete_and_check(resource, &mut object, how)?;
    }
    check_revision(&revision, how)?;
    let locked = |object: &Object| {
        let state = shared.lock();
        check_definition(shared, &state, resource, object)?;
        // The namespace may have been deleted meanwhile.
        check_namespace(shared, &state, (resource, place), object, how)?;
        Ok(state)
    };
    let (mut state, key) = if generates {
        generate_name(locked, resource, place, &mut object, how)?
    } else {
        let state = locked(&object)?;
        let key = free_key(&state, resource, place, &object)?;
        (state, key)
    };
    let key: Arc<str> = key.into();
    if resource.is_services() {
        service_address::allocate(&mut state, resource, &mut object, how.origin)?;
    }
    resource.complete(&mut object);
    if how.dry_run {
        // Kubernetes returns the revision that the client has sent, and stores nothing.
        let revision = revision.parse().unwrap_or(0);
        return Ok(Arc::new(Entry::new(
            resource,
            key,
            object.members(),
            revision,
        )));
    }
    let revision = state.next_revision();
    let made = |object: &Object| Entry::new(resource, Arc::clone(&key), object.members(), revision);
    let mut entry = made(&object);
    if entry.is_too_large() && how.is_tracked() {
        object.set_meta("managedFields", None);
        entry = made(&object);
    }
    let entry = Arc::new(entry);
    shared.check_room(&state, None, &entry)?;
    shared.commit(&mut state, resource, &key, Some(Arc::clone(&entry)));
    if how.origin != Origin::Seed {
        namespace_content::complete(shared, &mut state, resource, &key);
    }
    Ok(entry)
}

fn settle_namespace(
    resource: &Resource,
    namespace: Option<&str>,
    object: &mut Object,
    how: How<'_>,
) -> Result<Option<String>, ApiError> {
    if !resource.is_namespaced() {
        object.set_meta("namespace", None);
        return Ok(None);
    }
    let sent = object.text("namespace");
    let namespace = match (namespace, sent, how.origin) {
        (Some(namespace), "", _) => namespace.to_owned(),
        (Some(namespace), sent, _) if sent == namespace => namespace.to_owned(),
        (None, "", Origin::Direct | Origin::Seed) => "default".to_owned(),
        (None, sent, Origin::Direct | Origin::Seed) => sent.to_owned(),
        (Some(_), ..) => {
            return Err(ApiError::other_namespace());
        }
        (None, _, Origin::Request) => {
            return Err(ApiError::method_not_allowed());
        }
    };
    object.set_meta("namespace", Some(json!(namespace)));
    Ok(Some(namespace))
}

/// Sets the server-managed members of a new object, and removes members that clients may not set.
fn prepare(shared: &Shared, resource: &Resource, object: &mut Object, how: How<'_>) {
    if how.origin == Origin::Request {
        object.set_meta("creationTimestamp", None);
        if !resource.strategy.keeps_client_status {
            object.set("status", None);
        }
    }
    (resource.strategy.hooks.prepare)(object);
    let now = shared.settings.clock.now().to_string();
    resource.strategy.start_status(object, &now);
    object.set_meta("resourceVersion", None);
    if object.meta("creationTimestamp").is_none() {
        object.set_meta("creationTimestamp", Some(json!(now)));
    }
    object.set_meta("selfLink", None);
    let given = object.number("generation").filter(|number| *number != 0);
    let generation = match given {
        Some(given) if how.origin != Origin::Request => Some(given),
        _ if resource.strategy.counts_generations => Some(1),
        given => given,
    };
    object.set_meta("generation", generation.map(|number| json!(number)));
}

/// Checks that the namespace of a new object is not being deleted.
///
/// If `enforce_namespaces` is set, also checks that the namespace exists. The initial objects of a server
/// ([`Origin::Seed`]) are exempt from this second check.
fn check_namespace(
    shared: &Shared,
    state: &State,
    (resource, namespace): (&Resource, Option<&str>),
    object: &Object,
    how: How<'_>,
) -> Result<(), ApiError> {
    let (Some(namespaces), Some(namespace)) = (&shared.builtin.namespaces, namespace) else {
        return Ok(());
    };
    match state.newest(namespaces.collection, namespace) {
        None if shared.settings.enforce_namespaces && how.origin != Origin::Seed => {
            Err(ApiError::not_found(&namespaces.kind, namespace))
        }
        Some(entry) if entry.is_in_phase(namespaces, "Terminating") => {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let error = ApiError::forbidden(&resource.kind, object.name_or_prefix(), &why);
            Err(error.caused_by(
                "NamespaceTerminating",
                &format!("namespace {namespace} is being terminated"),
                "metadata.namespace",
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that a custom kind is still served, and that its definition is not being deleted.
///
/// The definition may have been deleted after the request arrived.
fn check_definition(
    shared: &Shared,
    state: &State,
    resource: &Resource,
    object: &Object,
) -> Result<(), ApiError> {
    match shared.serving(state, resource) {
        Serving::Served => Ok(()),
        Serving::Gone => Err(ApiError::no_such_path()),
        Serving::Terminating => {
            let why = "create not allowed while custom resource definition is terminating";
            let (kind, name) = (&resource.kind, object.text("name"));
            Err(ApiError::forbidden(kind, name, why))
        }
    }
}

/// Checks that a client has not set a revision. As in Kubernetes, a revision that is not a number is ignored,
/// and a dry run skips the check.
fn check_revision(sent: &str, how: How<'_>) -> Result<(), ApiError> {
    let is_revision = sent.parse::<u64>().is_ok_and(|revision| revision != 0);
    if is_revision && how.origin == Origin::Request && !how.dry_run {
        let message = "resourceVersion should not be set on objects to be created";
        return Err(ApiError::unexplained(message));
    }
    Ok(())
}

/// Adds the members that depend on the name and the uid of a new object, and validates the object.
fn complete_and_check(
    resource: &Resource,
    object: &mut Object,
    how: How<'_>,
) -> Result<(), ApiError> {
    if let Some(complete) = resource.strategy.hooks.prepare_create {
        complete(object);
    }
    let mut errors = resource.strategy.metadata.check_new(object);
    if how.origin == Origin::Request || resource.strategy.checks_direct_writes {
        errors.extend(resource.strategy.hooks.errors(None, object, Part::Main));
        let model = resource.model.as_deref();
        errors.extend(custom::validate(&resource.kind, model, object));
    }
    if errors.is_empty() {
        how.warn(resource, object, None);
        return resource.check_writable();
    }
    Err(ApiError::invalid(
        &resource.kind,
        object.text("name"),
        &errors,
    ))
}

/// Returns the key of a new object that has a name.
///
/// # Errors
///
/// Returns a 409 error if the name is in use.
fn free_key(
    state: &State,
    resource: &Resource,
    namespace: Option<&str>,
    object: &Object,
) -> Result<String, ApiError> {
    let name = object.text("name");
    let key = resource.key(namespace, name);
    let Some(newest) = state.newest(resource.collection, &key) else {
        return Ok(key);
    };
    // A request that also has a prefix gets the error of generated names, although none is generated.
    let error = match object.text("generateName") {
        "" => ApiError::already_exists(&resource.kind, name),
        _ => ApiError::no_free_name(&resource.kind, name),
    };
    let is_deleting = Object::stored(newest.object(resource)).is_deleting();
    Err(if is_deleting {
        error.being_deleted()
    } else {
        error
    })
}

/// Generates the name of a new object from `generateName`, and validates the object with this name.
///
/// Returns the locked state and the key of the object. `locked` locks the state. The validation, which can take
/// long, does not hold the lock.
///
/// # Errors
///
/// Returns a 409 error if all generated names are in use.
fn generate_name<'a>(
    locked: impl Fn(&Object) -> Result<MutexGuard<'a, State>, ApiError>,
    resource: &Resource,
    namespace: Option<&str>,
    object: &mut Object,
    how: How<'_>,
) -> Result<(MutexGuard<'a, State>, String), ApiError> {
    let base = object.text("generateName").to_owned();
    let mut cut = base.len().min(GENERATED_BASE_MAX);
    while !base.is_char_boundary(cut) {
        cut -= 1;
    }
    let taken = |state: &State, key: &str| state.newest(resource.collection, key).is_some();
    // What depends on a name must not stay in an object with another name.
    let nameless = resource
        .strategy
        .hooks
        .prepare_create
        .map(|_| object.clone());
    let mut name = String::new();
    for _ in 0..GENERATE_ATTEMPTS {
        let mut state = locked(object)?;
        name = format!("{}{}", &base[..cut], suffix(&mut state.rng));
        let key = resource.key(namespace, &name);
        if taken(&state, &key) {
            continue;
        }
        drop(state);
        object.set_meta("name", Some(json!(name)));
        complete_and_check(resource, object, how)?;
        let state = locked(object)?;
        if !taken(&state, &key) {
            return Ok((state, key));
        }
        drop(state);
        object.set_meta("name", None);
        if let Some(nameless) = &nameless {
            object.clone_from(nameless);
        }
    }
    Err(ApiError::no_free_name(&resource.kind, &name))
}

fn suffix(rng: &mut fastrand::Rng) -> String {
    (0..SUFFIX_LENGTH)
        .map(|_| char::from(SUFFIX_ALPHABET[rng.usize(..SUFFIX_ALPHABET.len())]))
        .collect()
}
