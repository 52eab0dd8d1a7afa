//! Handles DELETE of one object.
//!
//! Guarantees:
//! - the deletion of a namespace also deletes the objects in the namespace;
//! - a deletion that removes the last object of a terminating namespace continues the deletion of the
//!   namespace.

use super::delete_object::{DeleteOptions, Deleted, delete_object};
use super::namespace;
use super::write::{How, Subject};
use crate::shared::Shared;
use crate::status::ApiError;

/// Deletes one object, and continues the deletion of the object's namespace if one is in progress.
pub(crate) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How,
) -> Result<Deleted, ApiError> {
    let namespaces = shared.registry.namespaces.as_ref();
    if namespaces.is_some_and(|it| it.collection == subject.resource.collection) {
        return namespace::delete(shared, subject, options, how);
    }
    let deleted = delete_object(shared, subject, options, how)?;
    if let (Deleted::Removed(entry), false) = (&deleted, how.dry_run) {
        namespace::lost(shared, subject.resource, entry.namespace(), how);
    }
    Ok(deleted)
}
