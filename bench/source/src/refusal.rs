//! Defines the error responses of the benchmark's server: an HTTP status code and a `Status` object.
//!
//! Guarantees: the status codes and reasons are those of an API server.

use http::StatusCode;
use serde_json::json;

use crate::history::NoMoment;

/// An error response with which the benchmark's server rejects a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

// === impl Refusal ===

impl Refusal {
    /// Value of the member `status` in the `Status` object of every error response.
    pub(crate) const STATUS: &str = "Failure";

    pub(crate) fn new(
        code: StatusCode,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Refusal {
        Refusal {
            code,
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// Returns the `Status` object as JSON, with the members in the order of Go's encoder.
    pub(crate) fn json(&self) -> String {
        format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"{}","message":{},"reason":"{}","code":{}}}"#,
            Self::STATUS,
            json!(self.message),
            self.reason,
            self.code.as_u16(),
        )
    }
}

impl From<NoMoment> for Refusal {
    fn from(why: NoMoment) -> Refusal {
        match why {
            NoMoment::TooOld { oldest } => {
                let message = format!("too old resource version: the oldest is {oldest}");
                Refusal::new(StatusCode::GONE, "Expired", message)
            }
            NoMoment::TooNew { newest } => {
                let message = format!("Too large resource version: the newest is {newest}");
                Refusal::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
            }
        }
    }
}
