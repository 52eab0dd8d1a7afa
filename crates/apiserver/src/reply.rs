//! Defines [`Reply`], the response to a request before the conversion to an HTTP response.
//!
//! This module does not build error responses.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};

use crate::body::Body;
use crate::go_json::to_text;
use crate::negotiate::Encoding;
use crate::protobuf;
use crate::status::ApiError;
use crate::typed::Ordered;
use crate::yaml::{self, TooLong};

/// Response to a successful request.
pub(crate) struct Reply {
    pub(crate) code: StatusCode,
    pub(crate) body: Body,
    pub(crate) revision: Option<u64>,
    /// Empty for a response without a body.
    pub(crate) content_type: &'static str,
    /// For a document that clients keep.
    pub(crate) keep: Option<Keep>,
}

/// How clients keep a document.
pub(crate) struct Keep {
    /// The hash of the document, for the header `ETag`.
    pub(crate) hash: String,
    /// Whether the URL contains the hash, so that its document never changes.
    pub(crate) is_final: bool,
}

impl Reply {
    pub(crate) fn new(code: StatusCode, body: Body, revision: Option<u64>) -> Reply {
        Reply {
            code,
            body,
            revision,
            content_type: "application/json",
            keep: None,
        }
    }

    pub(crate) fn protobuf(code: StatusCode, body: Body, revision: Option<u64>) -> Reply {
        Reply {
            content_type: protobuf::CONTENT_TYPE,
            ..Reply::new(code, body, revision)
        }
    }

    pub(crate) fn yaml(code: StatusCode, body: Body, revision: Option<u64>) -> Reply {
        Reply {
            content_type: yaml::CONTENT_TYPE,
            ..Reply::new(code, body, revision)
        }
    }

    pub(crate) fn json(code: StatusCode, value: &impl Serialize) -> Reply {
        Reply::new(code, Body::full(to_text(value) + "\n"), None)
    }

    /// Returns a document in this encoding, or as JSON if the document has no protobuf encoding.
    ///
    /// # Errors
    ///
    /// Returns a 500 error if the document is too long in YAML.
    pub(crate) fn document(
        code: StatusCode,
        document: &Value,
        encoding: Encoding,
    ) -> Result<Reply, ApiError> {
        match encoding {
            Encoding::Yaml => {
                let text = yaml::to_text(document).map_err(|TooLong| too_long())?;
                return Ok(Reply::yaml(code, Body::full(text), None));
            }
            Encoding::Protobuf => {
                if let Some(document) = protobuf::document(document) {
                    return Ok(Reply::protobuf(code, Body::full(document), None));
                }
            }
            Encoding::Json => {}
        }
        Ok(Reply::json(code, &Ordered::document(document)))
    }

    /// Returns a `Status` object that reports success.
    pub(crate) fn success(code: StatusCode, details: Option<&Value>) -> Value {
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
        status
    }

    pub(crate) fn empty(code: StatusCode) -> Reply {
        Reply {
            content_type: "",
            ..Reply::new(code, Body::full(Bytes::new()), None)
        }
    }

    pub(crate) fn plain(code: StatusCode, text: impl Into<Bytes>) -> Reply {
        Reply {
            content_type: "text/plain; charset=utf-8",
            ..Reply::new(code, Body::full(text), None)
        }
    }
}

/// Returns the error for an object whose text in YAML would be too long.
pub(crate) fn too_long() -> ApiError {
    ApiError::unexplained("the object is too long in YAML; request JSON")
}
