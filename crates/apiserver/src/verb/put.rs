//! Handles a client's PUT, which updates an object or creates it.
//!
//! Guarantees: a PUT for a name that does not exist creates the object only if the kind allows this
//! (`AllowCreateOnUpdate` in Kubernetes).
//!
//! The modules `update` and `create` compute the stored object. This module does not.

use std::sync::Arc;

use super::create::create;
use super::update::{check_uid, parsed_revision, update};
use super::write::{How, Subject, not_stored};
use crate::object::Object;
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
    how: How<'_>,
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
            Ok(made) if how.dry_run => {
                // A POST removes the link, and this creation does not.
                let link = object.meta("selfLink").cloned();
                let new = Object::stored(made.object(resource));
                return Ok((not_stored(resource, &made, &new, link), true));
            }
            made => return made.map(|entry| (entry, true)),
        }
    }
}
