//! Formats a list or watch request as text: the pause before the request, the request, and its result.
//!
//! The texts of the library's requests are compared with the texts of client-go's requests. Random parts,
//! such as the exact length of a pause, are left out.

use std::{
    fmt::{self, Write as _},
    time::Duration,
};

/// Query parameters that are formatted first, in this order.
const PARAMETERS: [&str; 6] = [
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "sendInitialEvents",
    "allowWatchBookmarks",
];

/// The behaviors of a reflector that the coverage report counts.
///
/// Each entry contains the kind of a request, the result, and the name of the behavior. An empty result
/// stands for any result.
pub(super) const SEEN: &[(&str, &str, &str)] = &[
    ("list at 0", "", "a list at \"0\""),
    ("list at", "", "a list at a revision"),
    ("list", "", "a list at \"\""),
    ("page", "", "a page after the first"),
    ("stream at", "", "a streaming list at a revision"),
    ("stream", "", "a streaming list at \"\""),
    ("watch", "", "a watch"),
    ("probe", "", "a probe"),
    ("list at", "410", "a list: 410"),
    ("list", "410", "a list at \"\": 410"),
    ("list at", "429", "a list: 429"),
    ("list at", "429 for 20 s", "a list: 429 with Retry-After"),
    ("list at", "500", "a list: 500"),
    ("list at", "503", "a list: 503"),
    ("list at", "503 for 20 s", "a list: 503 with Retry-After"),
    ("list at", "403", "a list: 403"),
    ("list at", "504", "a list: 504, the revision is too large"),
    ("list at", "refused", "a list: the connection is refused"),
    ("list at", "reset", "a list: the connection is reset"),
    ("page", "410", "a page: 410, the continue token has expired"),
    ("stream at", "410", "a streaming list: 410"),
    ("stream", "410", "a streaming list at \"\": 410"),
    ("stream at", "422", "a streaming list: 422, not supported"),
    ("stream at", "429", "a streaming list: 429"),
    (
        "stream at",
        "429 for 20 s",
        "a streaming list: 429 with Retry-After",
    ),
    ("stream at", "500", "a streaming list: 500"),
    ("stream at", "503", "a streaming list: 503"),
    (
        "stream at",
        "503 for 20 s",
        "a streaming list: 503 with Retry-After",
    ),
    ("stream at", "403", "a streaming list: 403"),
    ("stream at", "401", "a streaming list: 401"),
    ("stream at", "502", "a streaming list: 502"),
    (
        "stream at",
        "504",
        "a streaming list: 504, the revision is too large",
    ),
    (
        "stream at",
        "refused",
        "a streaming list: the connection is refused",
    ),
    (
        "stream at",
        "reset",
        "a streaming list: the connection is reset",
    ),
    (
        "stream at",
        "closed",
        "a streaming list closes before its end",
    ),
    ("watch", "410", "a watch: 410"),
    ("watch", "429", "a watch: 429"),
    ("watch", "429 for 20 s", "a watch: 429 with Retry-After"),
    ("watch", "500", "a watch: 500"),
    ("watch", "503", "a watch: 503"),
    ("watch", "503 for 20 s", "a watch: 503 with Retry-After"),
    ("watch", "403", "a watch: 403"),
    ("watch", "401", "a watch: 401"),
    ("watch", "502", "a watch: 502"),
    ("watch", "504", "a watch: 504, the revision is too large"),
    ("probe", "refused", "a probe: the connection is refused"),
    ("watch", "reset", "a watch: the connection is reset"),
    ("watch", "closed", "a watch closes immediately"),
    ("watch", "expired", "a watch: 410 inside it"),
];

/// Maximum duration of a pause that the text of a request omits.
///
/// The backoff delays of a reflector are longer: at least [`LEAST`].
const AT_ONCE: Duration = Duration::from_millis(500);

/// Minimum of a reflector's first backoff delay. The minimum doubles with each further delay.
///
/// A delay is random between the minimum and twice the minimum, so only minimums are compared.
const LEAST: Duration = Duration::from_millis(800);

/// One list or watch request.
#[derive(Debug)]
pub(super) struct Line {
    pause: Duration,
    watch: bool,
    /// The path, unless it is `/api/v1/configmaps`, and the query parameters.
    asked: String,
    pub(super) outcome: Outcome,
}

/// Result of a list or watch request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Status code and `Retry-After` in seconds.
    Status(u16, Option<u64>),
    /// The watch was closed immediately, or the streaming list was closed before its final bookmark.
    Closed,
    /// The watch was opened, and closed after an error event with the code 410.
    Expired,
    /// The server sent the final bookmark of a streaming list, and then immediately ended the response.
    CompleteAndClosed,
    Refused,
    /// The connection was reset before the response.
    Reset,
}

impl Line {
    /// Creates the line for a request. `pause` is the time since the last request or test operation.
    ///
    /// `token` is the continue token of the last list response. The text of the line contains `next` instead
    /// of this token. The result is [`Outcome::Refused`] until the caller sets another result.
    pub(super) fn new(path: &str, query: &str, pause: Duration, token: &str) -> Self {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let value = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| known == name);
            pair.map_or("", |(_, value)| value)
        };
        let mut asked = String::new();
        if path != "/api/v1/configmaps" {
            let _ = write!(asked, " {path}");
        }
        for name in PARAMETERS {
            let value = match (name, value(name)) {
                (_, "") => continue,
                ("continue", value) if value == token => "next",
                (_, value) => value,
            };
            let _ = write!(asked, " {name}={value}");
        }
        for (name, value) in &pairs {
            // The duration of a watch is random.
            if name == "timeoutSeconds" {
                asked += " timeoutSeconds";
            } else if name != "watch" && !value.is_empty() && !PARAMETERS.contains(&&**name) {
                let _ = write!(asked, " {name}={value}");
            }
        }
        Self {
            pause,
            watch: value("watch") == "true",
            asked,
            outcome: Outcome::Refused,
        }
    }

    /// Returns the names of the behaviors in [`SEEN`] that this request and its result show.
    pub(super) fn seen(&self) -> impl Iterator<Item = &'static str> {
        let outcome = self.outcome.to_string();
        let kind = self.kind();
        let seen = SEEN.iter().filter(move |(of, wanted, _)| {
            *of == kind && (wanted.is_empty() || *wanted == outcome)
        });
        seen.map(|(_, _, name)| *name)
    }

    fn kind(&self) -> &'static str {
        let is = |part: &str| self.asked.contains(part);
        match self.watch {
            true if self.is_streaming_list() && is(" resourceVersion=") => "stream at",
            true if self.is_streaming_list() => "stream",
            true => "watch",
            false if is(" resourceVersionMatch=") => "probe",
            false if is(" continue=next") => "page",
            false if is(" resourceVersion=0") => "list at 0",
            false if is(" resourceVersion=") => "list at",
            false => "list",
        }
    }

    pub(super) fn is_list(&self) -> bool {
        !self.watch
    }

    pub(super) fn is_streaming_list(&self) -> bool {
        self.watch && self.asked.contains("sendInitialEvents=true")
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pause > AT_ONCE {
            let mut least = LEAST;
            // tokio's timers have a resolution of one millisecond, so the longest pause may be exactly twice
            // the minimum.
            while self.pause > 2 * least {
                least *= 2;
            }
            write!(f, "after {:.1} s ", least.as_secs_f64())?;
        }
        let verb = if self.watch { "watch" } else { "list" };
        write!(f, "{verb}{}: {}", self.asked, self.outcome)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status, None) => write!(f, "{status}"),
            Self::Status(status, Some(seconds)) => write!(f, "{status} for {seconds} s"),
            Self::Closed => f.write_str("closed"),
            Self::Expired => f.write_str("expired"),
            Self::CompleteAndClosed => f.write_str("complete and closed"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(query: &str, millis: u64) -> String {
        let pause = Duration::from_millis(millis);
        Line::new("/api/v1/configmaps", query, pause, "abc").to_string()
    }

    #[test]
    fn a_request_is_formatted_without_its_random_parts() {
        assert_eq!(
            written("limit=500&resourceVersion=0", 0),
            "list resourceVersion=0 limit=500: refused"
        );
        assert_eq!(
            written(
                "timeoutSeconds=431&watch=true&resourceVersion=7&allowWatchBookmarks=true",
                0
            ),
            "watch resourceVersion=7 allowWatchBookmarks=true timeoutSeconds: refused"
        );
        assert_eq!(written("continue=abc", 0), "list continue=next: refused");
        assert_eq!(written("continue=abd", 0), "list continue=abd: refused");
        assert_eq!(
            written("resourceVersion=&labelSelector=a", 0),
            "list labelSelector=a: refused"
        );
        let elsewhere = Line::new("/api/v1/pods", "", Duration::ZERO, "");
        assert_eq!(elsewhere.to_string(), "list /api/v1/pods: refused");
    }

    #[test]
    fn a_pause_is_formatted_as_the_delay_of_its_backoff() {
        for (millis, delay) in [(800, "0.8"), (1600, "0.8"), (1601, "1.6"), (31_000, "25.6")] {
            assert_eq!(
                written("", millis),
                format!("after {delay} s list: refused")
            );
        }
        assert_eq!(written("", 500), "list: refused");
    }

    #[test]
    fn the_kind_and_outcome_of_a_request_determine_its_behaviours() {
        let mut line = Line::new(
            "/api/v1/configmaps",
            "resourceVersion=5",
            Duration::ZERO,
            "",
        );
        line.outcome = Outcome::Status(429, Some(20));
        let seen: Vec<_> = line.seen().collect();
        assert_eq!(
            seen,
            ["a list at a revision", "a list: 429 with Retry-After"]
        );
    }
}
