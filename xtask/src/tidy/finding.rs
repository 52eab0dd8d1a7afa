//! Defines [`Finding`], a rule violation with its file, its line and advice for the author.
//!
//! A finding is displayed as `path:line: rule: advice`.

use std::fmt;

/// A violation of a rule of `cargo xtask tidy`, ordered by path and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path of the file, relative to the workspace root, with `/` as separator.
    pub(super) path: String,
    /// Line of the violation, counted from 1.
    pub(super) line: usize,
    /// Short name of the rule, for example `dead-link`.
    pub(super) rule: &'static str,
    /// Description of the violation, and a way to correct it.
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
