//! The response to a request that was accepted, before it becomes HTTP.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use crate::body::Body;

/// The response to an accepted request: status code, body, revision, and media type.
pub(crate) struct Reply {
    pub(crate) code: StatusCode,
    pub(crate) body: Body,
    pub(crate) revision: Option<u64>,
    pub(crate) content_type: &'static str,
}

impl Reply {
    pub(crate) fn new(code: StatusCode, body: Body, revision: Option<u64>) -> Reply {
        Reply {
            code,
            body,
            revision,
            content_type: "application/json",
        }
    }

    pub(crate) fn json(code: StatusCode, value: &Value) -> Reply {
        Reply::new(code, Body::full(format!("{value}\n")), None)
    }

    /// Creates the `Status` response that Kubernetes sends if there is no object to return.
    pub(crate) fn success(code: StatusCode, details: Option<&Value>) -> Reply {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
        });
        match details {
            Some(details) => status["details"] = details.clone(),
            None => status["code"] = json!(code.as_u16()),
        }
        Reply::json(code, &status)
    }

    /// Creates a response with plain text.
    pub(crate) fn plain(code: StatusCode, text: impl Into<Bytes>) -> Reply {
        Reply {
            content_type: "text/plain; charset=utf-8",
            ..Reply::new(code, Body::full(text), None)
        }
    }
}
