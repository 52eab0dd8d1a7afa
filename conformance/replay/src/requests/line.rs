//! [`Line`]: one request as both sides write it.

use std::{fmt, time::Duration};

/// The parameters that are compared, in the order in which they are written.
const PARAMETERS: [&str; 6] = [
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "sendInitialEvents",
    "allowWatchBookmarks",
];

/// Shorter than any pause is meant to be.
const AT_ONCE: Duration = Duration::from_millis(500);

/// What the first pause of a reflector is at least; each further one is twice as long. All are random
/// between once and twice of that, so the least is what can be compared.
const LEAST: Duration = Duration::from_millis(800);

/// A request, and what became of it.
#[derive(Debug)]
pub(super) struct Line {
    pause: Duration,
    watch: bool,
    /// What was asked, without the verb.
    asked: String,
    pub(super) outcome: Outcome,
    /// The faults that hit it; not compared, but counted.
    pub(super) faults: Vec<String>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was answered.
    Status(u16),
    /// A watch was opened, and ended behind what it told at once: `closed` or `broken`.
    Ended(&'static str),
    /// Nobody listened.
    Refused,
    /// The connection was reset before the answer.
    Reset,
}

impl Line {
    /// A request so long after whatever happened before; `token` is what the last page went on with.
    pub(super) fn new(path: &str, query: &str, pause: Duration, token: &str) -> Self {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let value = |name: &str| {
            let pair = pairs.iter().find(|(known, _)| known == name);
            pair.map_or("", |(_, value)| value)
        };
        let mut asked = String::new();
        if path != "/api/v1/configmaps" {
            asked += &format!(" {path}");
        }
        for name in PARAMETERS {
            let value = match (name, value(name)) {
                (_, "") => continue,
                ("continue", value) if value == token => "next",
                (_, value) => value,
            };
            asked += &format!(" {name}={value}");
        }
        for (name, value) in &pairs {
            // How long a watch may last is random.
            if name == "timeoutSeconds" {
                asked += " timeoutSeconds";
            } else if name != "watch" && !value.is_empty() && !PARAMETERS.contains(&&**name) {
                asked += &format!(" {name}={value}");
            }
        }
        Self {
            pause,
            watch: value("watch") == "true",
            asked,
            outcome: Outcome::Refused,
            faults: Vec::new(),
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
            while self.pause >= 2 * least {
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
            Self::Status(status) => write!(f, "{status}"),
            Self::Ended(how) => write!(f, "{how}"),
            Self::Refused => f.write_str("refused"),
            Self::Reset => f.write_str("reset"),
        }
    }
}
