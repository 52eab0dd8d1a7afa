//! A finding of a rule: the place, the rule, and what to change.

use std::fmt;

/// A violation of a rule. Findings are ordered by path, then line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The path from the workspace root, with `/`.
    pub(super) path: String,
    /// Counted from 1.
    pub(super) line: usize,
    /// The short name of the rule.
    pub(super) rule: &'static str,
    /// The problem and its correction.
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
