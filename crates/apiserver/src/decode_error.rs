//! Defines the errors of request bodies that can't be decoded, with the messages of Kubernetes.
//!
//! Guarantees: the messages are those of `transformDecodeError` in Kubernetes' `endpoints/handlers/rest.go`.

use std::fmt::Write as _;

use crate::status::ApiError;

/// Number of bytes of an unrecognized body that the error message contains, as in Kubernetes.
const SUMMARY_BYTES_MAX: usize = 30;

/// The reason why a body can't be decoded to an object of the expected kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DecodeError {
    /// The body does not have a valid `apiVersion` and `kind`.
    Unrecognized { expected: String, why: String },
    /// The `apiVersion` and `kind` of the body can be read, but the body is malformed or of another kind than
    /// expected.
    Unfit {
        kind: String,
        version: String,
        expected: String,
        why: String,
    },
    /// An error that is reported as it is.
    Rejected(ApiError),
}

impl DecodeError {
    /// Returns the reason why the body can't be decoded, without the body's kind and version.
    pub(crate) fn why(&self) -> String {
        match self {
            DecodeError::Unrecognized { why, .. } | DecodeError::Unfit { why, .. } => why.clone(),
            DecodeError::Rejected(error) => error.to_string(),
        }
    }

    /// Returns the response to a request with this body.
    pub(crate) fn of_body(self, body: &[u8]) -> ApiError {
        match self {
            DecodeError::Unrecognized { expected, why } => {
                let why = format!("{why} ({})", summary(body));
                DecodeError::Unrecognized { expected, why }.into()
            }
            other => other.into(),
        }
    }
}

impl From<DecodeError> for ApiError {
    fn from(error: DecodeError) -> ApiError {
        match error {
            DecodeError::Unrecognized { expected, why } => ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {expected}): {why}"
            )),
            DecodeError::Unfit {
                kind,
                version,
                expected,
                why,
            } => ApiError::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {expected}: {why}"
            )),
            DecodeError::Rejected(error) => error,
        }
    }
}

/// Returns the start of an unrecognized body as readable text for an error message.
pub(crate) fn summary(body: &[u8]) -> String {
    let start = &body[..body.len().min(SUMMARY_BYTES_MAX)];
    let mut summary = String::new();
    match start {
        [] => summary.push_str("<empty>"),
        [b'{', ..] => summary.push_str(&String::from_utf8_lossy(start)),
        _ => {
            for byte in start {
                let _ = write!(summary, "{byte:02x}");
            }
        }
    }
    if body.len() > SUMMARY_BYTES_MAX {
        summary.push_str(" ...");
    }
    summary
}
