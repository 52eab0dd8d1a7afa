//! What a request is refused with: a code, and the `Status` that says why.
//!
//! Guarantees: clients recognize the reasons of an API server.

use http::StatusCode;
use serde_json::json;

use crate::history::NoMoment;

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

// === impl Refusal ===

impl Refusal {
    /// The member `status` of every refusal.
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

    /// The `Status` object, with its members in Go's order.
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
