//! Encodes and decodes continue tokens.
//!
//! A token contains the start of the next page and the revision of the list.
//!
//! Guarantees:
//! - the format is that of Kubernetes: the JSON `{"v":"meta.k8s.io/v1","rv":…,"start":…}` in base64url
//!   without padding;
//! - a malformed token is rejected with Kubernetes' message.
//!
//! A token is not signed, so a client can construct one for any key and revision.

use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use base64::{DecodeError, Engine};
use serde::{Deserialize, Serialize};

const VERSION: &str = "meta.k8s.io/v1";

/// The decoded content of a continue token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContinueToken {
    /// Revision of the state from which to read the next page; `None` is the current state.
    pub(crate) revision: Option<u64>,
    /// Minimum key of the next page. For a list of one namespace, the key has no prefix `namespace/`.
    pub(crate) start: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
}

impl ContinueToken {
    pub(crate) fn encode(&self) -> String {
        let revision = self
            .revision
            .map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let wire = Wire {
            v: VERSION.to_owned(),
            rv: revision,
            start: self.start.clone(),
        };
        let json = serde_json::to_vec(&wire).expect("three plain members always serialize");
        BASE64_URL_SAFE_NO_PAD.encode(json)
    }

    /// Decodes a continue token.
    ///
    /// # Errors
    ///
    /// Returns Kubernetes' message without the prefix `invalid continue token: ` if the token is malformed.
    pub(crate) fn decode(text: &str) -> Result<ContinueToken, String> {
        let json = BASE64_URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| format!("continue key is not valid: {}", no_base64(&error)))?;
        let wire: Wire = serde_json::from_slice(&json)
            .map_err(|error| format!("continue key is not valid: {}", no_json(&json, &error)))?;
        if wire.v != VERSION {
            return Err(format!(
                "continue key is not valid: server does not recognize this encoded version {}",
                wire.v
            ));
        }
        if wire.rv == 0 || wire.rv < -1 {
            return Err(format!(
                "continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})"
            ));
        }
        if wire.start.is_empty() {
            return Err(format!(
                "continue key is not valid: encoded start key empty (version {VERSION})"
            ));
        }
        if wire.start.starts_with('/')
            || wire.start.split('/').any(|part| matches!(part, ".." | ""))
        {
            return Err(format!("continue key is not valid: {}", wire.start));
        }
        Ok(ContinueToken {
            revision: u64::try_from(wire.rv).ok(),
            start: wire.start,
        })
    }

    /// Returns a token for the same `start` in the current state.
    pub(crate) fn at_latest(&self) -> ContinueToken {
        ContinueToken {
            revision: None,
            start: self.start.clone(),
        }
    }
}

/// Returns the error message for invalid base64, in the wording of Go's decoder.
fn no_base64(error: &DecodeError) -> String {
    match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => {
            format!("illegal base64 data at input byte {at}")
        }
        // The position is the start of the incomplete group of four characters.
        DecodeError::InvalidLength(length) => {
            format!("illegal base64 data at input byte {}", length - length % 4)
        }
        DecodeError::InvalidPadding => error.to_string(),
    }
}

/// Returns the error message for invalid JSON.
///
/// The message is that of Go's decoder if the JSON ends early, or if it has a syntax error and does not
/// start with `{`. In all other cases, the message is that of `serde_json`.
fn no_json(json: &[u8], error: &serde_json::Error) -> String {
    match json.first() {
        _ if error.is_eof() => "unexpected end of JSON input".to_owned(),
        Some(byte) if error.is_syntax() && *byte != b'{' => {
            let first = match *byte {
                control if control.is_ascii_control() => format!("\\x{control:02x}"),
                plain => char::from(plain).to_string(),
            };
            format!("invalid character '{first}' looking for beginning of value")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_decodes_to_the_encoded_value() {
        let token = ContinueToken {
            revision: Some(7),
            start: "default/a\0".to_owned(),
        };
        assert_eq!(ContinueToken::decode(&token.encode()), Ok(token.clone()));
        assert_eq!(
            ContinueToken::decode(&token.at_latest().encode()),
            Ok(token.at_latest())
        );
    }

    #[test]
    fn an_invalid_token_is_rejected_with_its_cause() {
        let cause =
            |json: &str| ContinueToken::decode(&BASE64_URL_SAFE_NO_PAD.encode(json)).unwrap_err();
        let valid = |rv: &str, start: &str| {
            format!(r#"{{"v":"meta.k8s.io/v1","rv":{rv},"start":"{start}"}}"#)
        };
        assert!(
            ContinueToken::decode("§")
                .unwrap_err()
                .starts_with("continue key is not valid: ")
        );
        assert_eq!(
            cause(&valid("0", "a")),
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        );
        assert_eq!(
            cause(&valid("1", "")),
            "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)"
        );
        assert_eq!(
            cause(r#"{"v":"v0","rv":1,"start":"a"}"#),
            "continue key is not valid: server does not recognize this encoded version v0"
        );
        assert!(cause(&valid("1", "../secrets")).contains("../secrets"));
    }
}
