//! [`Error`] describes why a request failed, with its [`Class`] and the [`Retry`] that follows.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    codec::{Codec, Encoded, SplitError},
    limits::{ERROR_BODY_BYTES, MESSAGE_BYTES, one_line},
};

/// The reason why a list or a watch failed.
///
/// `Display` prints the message of this error only; [`std::error::Error::source`] returns its cause. Neither
/// contains a body, a header or a credential.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    class: Class,
    message: String,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The classes of failures of a request that a reflector treats differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// The revision or the continue token is too old: HTTP 410, reason `Expired` or `Gone`.
    Expired,
    /// The server has not reached the requested revision.
    TooLargeResourceVersion,
    /// The server rejects requests because there are too many: HTTP 429.
    TooManyRequests,
    /// The server's address refuses connections.
    ConnectionRefused,
    /// The connection to the server broke, or could not be opened for another reason.
    Connection,
    /// The server or the network reported a time-out; also HTTP 504.
    Timeout,
    /// The server does not accept the credentials: HTTP 401.
    Unauthorized,
    /// The user lacks the permission: HTTP 403.
    Forbidden,
    /// The server does not know the kind: HTTP 404.
    NotFound,
    /// The request is invalid: any other 4xx.
    Invalid,
    /// The server failed with an internal error: HTTP 500 with the reason `InternalError`.
    Internal,
    /// The server, or a proxy before it, is unavailable: HTTP 502 or 503.
    Unavailable,
    /// The server failed with another error: any other 5xx.
    Server,
    /// The response violates the protocol: it is not JSON, has an unknown structure, is a redirect, or
    /// exceeds a [limit](crate::limits).
    Protocol,
    /// The server ended the watch immediately and without an event, which a healthy server does not do.
    #[doc(alias = "VeryShortWatchError")]
    VeryShortWatch,
    /// The server sent an event older than the cached object, or a response with an older revision than
    /// before: it was restored from a backup, or is another server. The reflector applies the next list
    /// whatever its revisions are, because the server reuses revisions for other states.
    WentBack,
    /// The server responded, but the store to which the reflector writes did not accept the data.
    Store,
}

impl Class {
    /// Returns the name of the class as a metric label, such as `too_many_requests`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::TooLargeResourceVersion => "too_large_resource_version",
            Self::TooManyRequests => "too_many_requests",
            Self::ConnectionRefused => "connection_refused",
            Self::Connection => "connection",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Invalid => "invalid",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::Server => "server",
            Self::Protocol => "protocol",
            Self::VeryShortWatch => "very_short_watch",
            Self::WentBack => "went_back",
            Self::Store => "store",
        }
    }
}

/// How a reflector continues after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The reflector opens the watch again from the same revision, after a pause.
    Resume,
    /// The reflector lists again. It does so without a pause if this is the first failure in a row.
    Relist,
    /// The reflector lists again after a pause.
    Backoff,
    /// A retry fails until permissions, the kind or the request change. A reflector still retries, because
    /// they may change; a program that waits for sync can stop waiting.
    GiveUp,
}

impl Error {
    /// Creates an error of this class, without a cause.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
            source: None,
        }
    }

    /// Sets the cause that [`std::error::Error::source`] returns.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the pause before a retry that the server requested with `Retry-After`.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Returns the class of this failure.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Returns the pause before a retry that the server requested, in whole seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns how a reflector continues when this error ends an open watch.
    ///
    /// A watch that could not be opened is retried from its revision after [`Class::TooManyRequests`],
    /// [`Class::ConnectionRefused`], [`Class::Connection`], [`Class::Unavailable`], [`Class::Timeout`] and
    /// [`Class::Unauthorized`], and with any `Retry-After`; after other errors a list follows.
    pub fn retry(&self) -> Retry {
        match self.class {
            Class::Expired | Class::TooLargeResourceVersion | Class::WentBack => Retry::Relist,
            Class::TooManyRequests
            | Class::ConnectionRefused
            | Class::Connection
            | Class::Timeout => Retry::Resume,
            Class::Internal
            | Class::Unavailable
            | Class::Server
            | Class::Protocol
            | Class::VeryShortWatch
            | Class::Store => Retry::Backoff,
            Class::Unauthorized | Class::Forbidden | Class::NotFound | Class::Invalid => {
                Retry::GiveUp
            }
        }
    }

    /// Whether the server was unreachable, or a proxy reports that (502, 503). Errors after the server is
    /// reachable again count as a new failure. A server that responds with 429 or an internal error was
    /// reachable.
    pub(crate) fn is_outage(&self) -> bool {
        matches!(
            self.class,
            Class::ConnectionRefused
                | Class::Connection
                | Class::Timeout
                | Class::Unavailable
                | Class::Server
        )
    }

    /// Creates the error from the `Status` of an error response or of an ERROR event.
    ///
    /// `code` is used if the body is not a `Status`, such as the plain text of flow control, or is longer than
    /// [`ERROR_BODY_BYTES`](crate::limits::ERROR_BODY_BYTES).
    pub fn from_status_body(code: u16, body: &[u8]) -> Self {
        Self::of_status(code, Codec::Json.object(body))
    }

    /// Creates the error from an ERROR event of a watch.
    pub(crate) fn of_event(status: Encoded<'_>) -> Self {
        Self::of_status(500, status)
    }

    fn of_status(code: u16, status: Encoded<'_>) -> Self {
        let is_short = status.bytes().len() <= ERROR_BODY_BYTES;
        let status = is_short.then(|| status.decode::<StatusBody>().ok());
        let status = status.flatten().unwrap_or_default();
        let code = status.code.filter(|code| *code != 0).unwrap_or(code);
        let class = status.class(code);
        let message = match status.message.as_deref() {
            None | Some("") => {
                format!("the server responded with status {code} and no readable message")
            }
            Some(message) => one_line(message, MESSAGE_BYTES),
        };
        let seconds = status.details.unwrap_or_default().retry_after_seconds;
        let seconds = seconds.filter(|seconds| *seconds > 0);
        Self::new(class, message).with_retry_after(seconds.map(Duration::from_secs))
    }
}

impl From<SplitError> for Error {
    fn from(error: SplitError) -> Self {
        match error {
            SplitError::Malformed(what) => Self::new(Class::Protocol, what),
            SplitError::EndedEarly(what) => Self::new(Class::Connection, what),
        }
    }
}

/// The fields that the library reads from a `metav1.Status`. A null is the same as a missing field.
#[derive(Default, Deserialize)]
struct StatusBody {
    code: Option<u16>,
    reason: Option<String>,
    message: Option<String>,
    details: Option<StatusDetails>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusDetails {
    retry_after_seconds: Option<u64>,
    causes: Option<Vec<StatusCause>>,
}

#[derive(Deserialize)]
struct StatusCause {
    reason: Option<String>,
    message: Option<String>,
}

/// The message of a server that has not reached the requested revision. Servers before 1.19 send it without a
/// cause that has a reason; later servers send it as the message of the cause.
const TOO_LARGE: &str = "Too large resource version";

impl StatusBody {
    fn class(&self, code: u16) -> Class {
        let reason = self.reason.as_deref().unwrap_or_default();
        if code == 410 || matches!(reason, "Expired" | "Gone") {
            return Class::Expired;
        }
        if self.is_too_large(reason) {
            return Class::TooLargeResourceVersion;
        }
        match code {
            401 => Class::Unauthorized,
            403 => Class::Forbidden,
            404 => Class::NotFound,
            429 => Class::TooManyRequests,
            300..=399 => Class::Protocol,
            400..=499 => Class::Invalid,
            500 if reason == "InternalError" => Class::Internal,
            502 | 503 => Class::Unavailable,
            504 => Class::Timeout,
            _ => Class::Server,
        }
    }

    /// Whether the server has not reached the requested revision. Recognizes three formats, newest first: a
    /// cause with a reason; a cause with a message (1.17.0 to 1.18.5); only the status message (before 1.17).
    fn is_too_large(&self, reason: &str) -> bool {
        let causes = self
            .details
            .as_ref()
            .and_then(|details| details.causes.as_ref());
        let mut causes = causes.into_iter().flatten();
        let message = self.message.as_deref().unwrap_or_default();
        causes.any(|cause| {
            cause.reason.as_deref() == Some("ResourceVersionTooLarge")
                || reason == "Timeout" && cause.message.as_deref() == Some(TOO_LARGE)
        }) || reason == "Timeout" && message.contains(TOO_LARGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_maps_to_its_class() {
        let rows = [
            (410, r#"{"reason":"Expired"}"#, Class::Expired),
            (200, r#"{"code":410,"reason":"Gone"}"#, Class::Expired),
            (
                429,
                "Too many requests, please try again later.",
                Class::TooManyRequests,
            ),
            (
                504,
                r#"{"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
                Class::TooLargeResourceVersion,
            ),
            (
                504,
                r#"{"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]}}"#,
                Class::TooLargeResourceVersion,
            ),
            (
                504,
                r#"{"reason":"Timeout","message":"Too large resource version: 9, current: 3"}"#,
                Class::TooLargeResourceVersion,
            ),
            (
                504,
                r#"{"reason":"Timeout","details":null}"#,
                Class::Timeout,
            ),
            (403, "{}", Class::Forbidden),
            (
                200,
                r#"{"code":410,"reason":null,"message":null}"#,
                Class::Expired,
            ),
            (422, "{}", Class::Invalid),
            (500, "{}", Class::Server),
            (502, "<html>bad gateway</html>", Class::Unavailable),
            (
                503,
                r#"{"reason":"ServiceUnavailable"}"#,
                Class::Unavailable,
            ),
            (504, "upstream timed out", Class::Timeout),
            (
                200,
                r#"{"code":500,"reason":"InternalError"}"#,
                Class::Internal,
            ),
            (
                200,
                r#"{"code":500,"reason":"StoreReadError"}"#,
                Class::Server,
            ),
        ];
        for (code, body, class) in rows {
            assert_eq!(
                Error::from_status_body(code, body.as_bytes()).class(),
                class,
                "{body}"
            );
        }
    }

    #[test]
    fn a_status_beyond_the_limit_is_ignored() {
        let status = |padding: usize| {
            let causes = "{},".repeat(padding);
            format!(r#"{{"code":410,"details":{{"causes":[{causes}{{}}]}}}}"#)
        };
        let class = |body: &str| Error::from_status_body(500, body.as_bytes()).class();
        assert_eq!(class(&status(ERROR_BODY_BYTES / 4)), Class::Expired);
        assert_eq!(class(&status(ERROR_BODY_BYTES / 3)), Class::Server);
    }

    #[test]
    fn the_pause_requested_by_the_server_is_kept() {
        let body = br#"{"code":429,"details":{"retryAfterSeconds":7}}"#;
        let error = Error::from_status_body(429, body);
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn an_error_message_is_one_line() {
        let error = Error::from_status_body(500, br#"{"message":"a\n\u001b[31mb\r\tc"}"#);
        assert_eq!(error.to_string(), "a  [31mb  c");
    }

    #[test]
    fn a_long_message_is_truncated_at_a_character_boundary() {
        let body = serde_json::json!({ "message": "ä".repeat(4000) }).to_string();
        let error = Error::from_status_body(500, body.as_bytes());
        assert!(error.to_string().len() <= MESSAGE_BYTES + '…'.len_utf8());
    }
}
