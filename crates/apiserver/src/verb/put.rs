//! Handles a client's PUT, which updates an object or creates it.
//!
//! Guarantees: a PUT for a name that does not exist creates the object only if the kind allows this
//! (`AllowCreateOnUpdate` in Kubernetes).
//!
//! The modules `update` and `create` compute the stored object. This module does not.

use std::sync::Arc;

use serde_json::Value;

use super::create::create;
use super::update::{check_uid, parsed_revision, update};
use super::write::{How, Subject};
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;

/// Updates or creates an object, and returns whether the object was created.
///
/// # Errors
///
/// Returns an error if the update or the creation fails, or if `may_create` fails. `may_create` is called
/// only before a creation.
pub(crate) fn put(
    shared: &Shared,
    subject: Subject<'_>,
    object: &Object,
    how: How,
    may_create: impl Fn() -> Result<(), ApiError>,
) -> Result<(Arc<Entry>, bool), ApiError> {
    let resource = subject.resource;
    loop {
        match update(shared, subject, object, how) {
            Err(error) if error.code() == 404 && resource.strategy.creates_on_update => {}
            updated => return updated.map(|entry| (entry, false)),
        }
        may_create()?;
        check_uid(subject, object.text("uid"), "", how)?;
        if !object.text("resourceVersion").is_empty() {
            parsed_revision(object.text("resourceVersion"))?;
        }
        let mut new = object.clone();
        if !how.dry_run {
            new.set_meta("resourceVersion", None);
        }
        match create(shared, resource, subject.namespace, new, how) {
            // Another client has created the object, so the loop updates it.
            Err(error) if error.reason() == "AlreadyExists" => {}
            made => {
                let made = made?;
                let link = object.meta("selfLink").filter(|_| how.dry_run);
                return Ok((with_link(resource, made, link), true));
            }
        }
    }
}

/// Returns `entry` with the link that Kubernetes returns from a PUT that creates an object as a dry run.
///
/// In Kubernetes, the storage removes the link. A dry run does not reach the storage. A POST removes the link
/// earlier.
fn with_link(resource: &Resource, entry: Arc<Entry>, link: Option<&Value>) -> Arc<Entry> {
    let Some(link) = link else {
        return entry;
    };
    let mut shown = Object::stored(entry.object(resource));
    shown.set_meta("selfLink", Some(link.clone()));
    entry.changed(resource, &shown, entry.revision)
}
