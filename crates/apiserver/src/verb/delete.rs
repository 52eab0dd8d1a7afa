//! Handles DELETE of one object.
//!
//! The deletion of a namespace only marks the namespace. The caller deletes the contents with
//! [`Emptying`](super::namespace::Emptying).

use super::delete_object::{DeleteOptions, Deleted, delete_object};
use super::namespace;
use super::write::{How, Subject};
use crate::shared::Shared;
use crate::status::ApiError;

/// Deletes one object, or starts the deletion of a namespace.
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
    delete_object(shared, subject, options, how)
}
