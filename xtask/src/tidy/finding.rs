//! What a rule reports: one place, one rule, one thing to do.

use std::fmt;

/// One violation; ordered by path, then line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// From the workspace root, with `/`.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// The rule's short name.
    pub(super) rule: &'static str,
    /// What to do about it.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(
        path: &str,
        line: usize,
        rule: &'static str,
        advice: impl Into<String>,
    ) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            rule,
            advice: advice.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}",
            self.path, self.line, self.rule, self.advice
        )
    }
}
