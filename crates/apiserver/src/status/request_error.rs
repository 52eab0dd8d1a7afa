//! The errors of requests whose path, method or `Accept` header the server does not support.

use super::ApiError;
use crate::kinds::Kind;

impl ApiError {
    /// Returns the 405 error for a verb that objects of this kind do not support.
    pub(crate) fn not_supported(kind: &Kind, verb: &str) -> ApiError {
        let resource = kind.group_resource();
        let message = format!("{verb} is not supported on resources of kind {resource:?}");
        ApiError::new(405, "MethodNotAllowed", message).about(kind, "")
    }

    /// Returns the 404 error for a path that belongs to no resource.
    pub(crate) fn no_such_path() -> ApiError {
        let message = "the server could not find the requested resource";
        ApiError::new(404, "NotFound", message).about_nothing()
    }

    pub(crate) fn method_not_allowed() -> ApiError {
        let message = "the server does not allow this method on the requested resource";
        ApiError::new(405, "MethodNotAllowed", message).about_nothing()
    }

    /// Returns the 400 error for a body in another namespace than that of the path.
    pub(crate) fn other_namespace() -> ApiError {
        ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        )
    }

    /// Returns the 406 error for a request that accepts none of the `available` media types.
    pub(crate) fn not_acceptable(available: &str) -> ApiError {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {available}");
        ApiError::new(406, "NotAcceptable", message).about_nothing()
    }
}
