//! Builds errors from an HTTP status code, for injected faults that specify only the code.
//!
//! Guarantees: the reason is the one that Kubernetes sends with the code. The reason is empty if this module
//! does not know the code.

use super::ApiError;

impl ApiError {
    pub(crate) fn of_code(code: u16) -> ApiError {
        let (reason, message) = match code {
            400 => ("BadRequest", "the server rejected our request"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden"),
            404 => (
                "NotFound",
                "the server could not find the requested resource",
            ),
            405 => (
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ),
            406 => (
                "NotAcceptable",
                "the server was unable to respond with a content type that the client supports",
            ),
            409 => ("Conflict", "the server reported a conflict"),
            410 => (
                "Expired",
                "The resourceVersion for the provided list is too old.",
            ),
            413 => ("RequestEntityTooLarge", "the request is too large"),
            415 => (
                "UnsupportedMediaType",
                "the body of the request was in an unknown format",
            ),
            422 => (
                "Invalid",
                "the server rejected our request due to an error in our request",
            ),
            429 => (
                "TooManyRequests",
                "Too many requests, please try again later.",
            ),
            500 => (
                "InternalError",
                "Internal error occurred: injected by a fault",
            ),
            503 => (
                "ServiceUnavailable",
                "the server is currently unable to handle the request",
            ),
            504 => (
                "Timeout",
                "the server was unable to return a response in the time allotted",
            ),
            _ => ("", "injected by a fault"),
        };
        ApiError::new(code, reason, message)
    }
}
