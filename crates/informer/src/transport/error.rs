//! [`Error`] describes why a list or a watch failed, with a [`Class`] and a message.
//!
//! Guarantees: a message from a server is shortened to one line of about 1 KiB. This module does not retry
//! requests and does not compute the backoff.

use std::time::Duration;

use serde::Deserialize;

use crate::{
    codec::{Codec, Encoded, SplitError},
    limits::{ERROR_BODY_BYTES, MESSAGE_BYTES, one_line},
};

/// The reason why a list or a watch failed.
///
/// `Display` prints only the message of this error. [`std::error::Error::source`] returns the cause. Neither
/// the message nor the cause contains a header, a credential or a whole response body.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    class: Class,
    message: String,
    retry_after: Option<Duration>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Class of a failed list or watch. The class determines how a reflector continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Class {
    /// The revision or the continue token is too old: HTTP 410, or the reason `Expired` or `Gone`.
    Expired,
    /// The server's newest data is older than the requested revision.
    TooLargeResourceVersion,
    /// The server rejects the request because it receives too many requests: HTTP 429.
    TooManyRequests,
    /// The host of the server refused the connection.
    ConnectionRefused,
    /// The connection to the server broke, or could not be opened for a reason other than a refusal.
    Connection,
    /// A connection, a request or a list took too long, or the server responded with HTTP 504.
    Timeout,
    /// The server rejected the credentials with HTTP 401, or the client has no valid credentials.
    Unauthorized,
    /// The user has no permission for the request: HTTP 403.
    Forbidden,
    /// The server does not serve the requested kind: HTTP 404.
    NotFound,
    /// The server rejected the request as invalid with a 4xx status that no other class covers, or the client
    /// could not build the request.
    Invalid,
    /// The server failed with an internal error: HTTP 500 with the reason `InternalError`.
    Internal,
    /// The server, or a proxy in front of the server, is unavailable: HTTP 502 or 503.
    Unavailable,
    /// The server failed with another error: a 5xx status that no other class covers.
    Server,
    /// The response violates the protocol, for example because it is not JSON, has an unknown structure, is a
    /// redirect, or exceeds a [limit](crate::limits).
    Protocol,
    /// The server ended the watch within a second, without an event. A healthy server does not end a watch
    /// this way.
    #[doc(alias = "VeryShortWatchError")]
    VeryShortWatch,
    /// The server sent an event older than the cached object, or a response with an older revision than an
    /// earlier response. The server was restored from a backup, or a different server responded.
    ///
    /// The reflector accepts the next list even if its revisions are older than the cached revisions.
    WentBack,
    /// The server responded, but the reflector's store rejected the data.
    Store,
}

impl Class {
    /// Returns the name of the class as the value of a metric label, such as `too_many_requests`.
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

/// Next request of a reflector after a failed watch, and whether the reflector waits before this request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The reflector waits, and then opens the watch again at the same revision.
    Resume,
    /// The reflector lists again.
    ///
    /// After [`Class::TooLargeResourceVersion`], it waits before it lists. After any other error, it lists
    /// without a pause in each of these cases, and waits otherwise:
    /// - No request of the reflector has failed before.
    /// - The previous failure was caused by a server that was down or unreachable.
    /// - The reflector had no failures for at least
    ///   [`reset_after`](crate::reflector::BackoffConfig::reset_after) before this error.
    Relist,
    /// The reflector waits, and then lists again.
    Backoff,
    /// The reflector waits, and then lists again. The list can't succeed before the credentials, the
    /// permissions, the served kinds or the request change. A program that waits for the informer to sync may
    /// therefore give up.
    GiveUp,
}

impl Error {
    /// Creates an error with the class `class` and the message `message`, without a source.
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            retry_after: None,
            source: None,
        }
    }

    /// Sets the source of the error, which [`std::error::Error::source`] returns.
    #[must_use]
    pub fn with_source(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Sets the minimum pause that the server requested before a retry, for example with the header
    /// `Retry-After`. `None` means that the server requested no pause.
    #[must_use]
    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.retry_after = retry_after;
        self
    }

    /// Returns the class of the failure.
    pub fn class(&self) -> Class {
        self.class
    }

    /// Returns the minimum pause that the server requested before a retry, or `None` if the server requested
    /// no pause.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the next request of a reflector after this error has ended an open watch.
    ///
    /// If a watch request fails before the watch is open, the reflector does not use this method. Instead, it
    /// applies the first of these rules that matches the error of the request:
    /// - [`Class::Expired`]: the next request is a list.
    /// - [`Class::TooManyRequests`], [`Class::ConnectionRefused`], [`Class::Connection`], or any error with a
    ///   [`retry_after`](Self::retry_after): the next request is the same watch.
    /// - [`Class::Unavailable`], [`Class::Timeout`] or [`Class::Unauthorized`]: the next request is the same
    ///   watch. If such errors continue for ten minutes, it is a list.
    /// - Any other error: the next request is a list.
    ///
    /// These rules do not apply if the response headers do not arrive in time: see
    /// [`TimeoutConfig::watch_headers`](crate::reflector::TimeoutConfig::watch_headers).
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

    /// Returns whether the error shows that the server is down or unreachable.
    ///
    /// A 5xx response counts as such an error. The exceptions are 500 `InternalError` and
    /// [`Class::TooLargeResourceVersion`], which only a running API server sends.
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

    /// Creates an error from the `Status` in the body of an error response or in an ERROR event.
    ///
    /// The class depends on the code, the reason, the message and the causes in the `Status`. `code` is the
    /// HTTP status code of the response, and replaces a missing code in the `Status`.
    ///
    /// In two cases, the class depends only on `code`: `body` is longer than
    /// [`ERROR_BODY_BYTES`](crate::limits::ERROR_BODY_BYTES), or is not a `Status`. For example, API priority
    /// and fairness responds with plain text.
    pub fn from_status_body(code: u16, body: &[u8]) -> Self {
        Self::of_status(code, Codec::of_bytes(body).object(body))
    }

    /// Creates an error from the `Status` in a watch's ERROR event.
    ///
    /// The code is 500 if the `Status` is unreadable, contains no code, or is longer than
    /// [`ERROR_BODY_BYTES`].
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
            // The words of client-go. kube-apiserver sends plain text for a kind that it does not serve.
            None | Some("") if code == 404 => {
                "the server could not find the requested resource".to_owned()
            }
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

/// The fields of a `metav1.Status` that the library reads.
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

/// Message of a server whose data is older than the requested revision.
///
/// Old servers report this failure only with this message.
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

    /// Returns whether the status reports "too large resource version": the server's data is older than the
    /// requested revision.
    ///
    /// `reason` is the reason of the status. Kubernetes before 1.17 reports this error in the message of the
    /// status. Kubernetes 1.17.0 to 1.18.5 reports it in the message of a cause, and later versions in the
    /// reason of a cause.
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
