//! The errors of requests without credentials or permissions.

use super::ApiError;
use crate::kinds::Kind;
use crate::quote::Quoted;

impl ApiError {
    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> ApiError {
        let message = format!(
            "{} {} is forbidden: {why}",
            kind.group_resource(),
            Quoted(name)
        );
        ApiError::new(403, "Forbidden", message).about(kind, name)
    }

    pub(crate) fn unauthorized() -> ApiError {
        ApiError::new(401, "Unauthorized", "Unauthorized")
    }

    /// Returns the 403 error for a user without permission for the object `name` of a resource.
    ///
    /// `name` is empty for a request to the whole collection. Both names of the resource are empty for a path without
    /// one.
    pub(crate) fn denied((group, plural): (&str, &str), name: &str, why: &str) -> ApiError {
        let dot = if group.is_empty() { "" } else { "." };
        let subject = match (plural, name) {
            ("", _) => String::new(),
            (_, "") => format!("{plural}{dot}{group} is "),
            (_, name) => format!("{plural}{dot}{group} {} is ", Quoted(name)),
        };
        let message = format!("{subject}forbidden: {why}");
        ApiError::new(403, "Forbidden", message).about_resource(group, plural, name)
    }

    /// Sets the group, the resource and the name in the error's details.
    pub(crate) fn about_resource(mut self, group: &str, plural: &str, name: &str) -> ApiError {
        let details = self.0.details.get_or_insert_default();
        group.clone_into(&mut details.group);
        plural.clone_into(&mut details.kind);
        name.clone_into(&mut details.name);
        self
    }
}
