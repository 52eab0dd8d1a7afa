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

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::Value;

use crate::go_base64;
use crate::go_json;
use crate::object::json_type;

const VERSION: &str = "meta.k8s.io/v1";

/// Decodes as Go's `base64.RawURLEncoding`, which ignores the unused bits of the last character.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// The decoded content of a continue token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContinueToken {
    /// Revision of the state from which to read the next page; `None` is the current state.
    pub(crate) revision: Option<u64>,
    /// Minimum key of the next page. For a list of one namespace, the key has no prefix `namespace/`.
    pub(crate) start: String,
}

#[derive(Serialize)]
struct Wire {
    v: String,
    rv: i64,
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
        let json = DECODER.decode(text).map_err(|error| {
            format!(
                "continue key is not valid: {}",
                go_base64::message(text, &error)
            )
        })?;
        let wire = Wire::parse(&json).map_err(|why| format!("continue key is not valid: {why}"))?;
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

impl Wire {
    /// Parses the JSON of a token, or returns the error message of Go's decoder.
    fn parse(json: &[u8]) -> Result<Wire, String> {
        let parsed = serde_json::from_slice::<Value>(json).map_err(|error| {
            // Go accepts some texts that `serde_json` rejects, such as invalid UTF-8.
            go_json::syntax_error(json).unwrap_or_else(|| error.to_string())
        })?;
        if !parsed.is_object() && !parsed.is_null() {
            let found = json_type(&parsed);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type storage.continueToken"
            ));
        }
        let wrong = |member: &str, expected: &str| {
            let found = match &parsed[member] {
                Value::Number(number) if expected == "int64" => format!("number {number}"),
                other => json_type(other).to_owned(),
            };
            format!(
                "json: cannot unmarshal {found} into Go struct field continueToken.{member} of type {expected}"
            )
        };
        let text = |member: &str| match &parsed[member] {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            _ => Err(wrong(member, "string")),
        };
        let revision = match &parsed["rv"] {
            Value::Null => Some(0),
            other => other.as_i64(),
        };
        Ok(Wire {
            v: text("v")?,
            rv: revision.ok_or_else(|| wrong("rv", "int64"))?,
            start: text("start")?,
        })
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
        for (text, at) in [("§", 0), ("YWJjZA==", 6), ("YWJj=", 4), ("YWJjZ", 4)] {
            assert_eq!(
                ContinueToken::decode(text).unwrap_err(),
                format!("continue key is not valid: illegal base64 data at input byte {at}"),
                "{text}"
            );
        }
        for (json, why) in [
            ("x", "invalid character 'x' looking for beginning of value"),
            (
                "[]",
                "json: cannot unmarshal array into Go value of type storage.continueToken",
            ),
            (
                r#"{"rv":"1"}"#,
                "json: cannot unmarshal string into Go struct field continueToken.rv of type int64",
            ),
        ] {
            assert_eq!(cause(json), format!("continue key is not valid: {why}"));
        }
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
