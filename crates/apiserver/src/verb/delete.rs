//! Handles DELETE of one object.
//!
//! The deletion of a namespace or of a `CustomResourceDefinition` only marks the object. The caller continues
//! the deletion with [`Emptying`](super::namespace::Emptying) or
//! [`Definitions`](super::definition::Definitions).

use super::delete_object::{DeleteOptions, Deleted, delete_object};
use super::write::{How, Subject};
use super::{definition, namespace};
use crate::shared::Shared;
use crate::status::ApiError;

/// Deletes one object, or starts the deletion of a namespace or `CustomResourceDefinition`.
pub(crate) fn delete(
    shared: &Shared,
    subject: Subject<'_>,
    options: &DeleteOptions,
    how: How<'_>,
) -> Result<Deleted, ApiError> {
    let namespaces = shared.builtin.namespaces.as_ref();
    if namespaces.is_some_and(|it| it.collection == subject.resource.collection) {
        return namespace::delete(shared, subject, options, how);
    }
    let definitions = shared.builtin.definitions.as_ref();
    if definitions.is_some_and(|it| it.collection == subject.resource.collection) {
        return definition::delete(shared, subject, options, how);
    }
    let (entry, _) = subject.newest(shared)?;
    entry.check_readable(subject.resource)?;
    delete_object(shared, subject, options, how)
}
