//! Regular expressions of rules.
//!
//! This module is the only place that knows which engine matches them.

use crate::go_regex;

/// A compiled regular expression.
#[derive(Debug)]
pub(super) struct Pattern(go_regex::Pattern);

impl Pattern {
    /// Compiles an expression, or returns Go's message.
    pub(super) fn compile(text: &str) -> Result<Pattern, String> {
        go_regex::Pattern::compile(text).map(Pattern)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the first match, or an empty text.
    pub(super) fn find<'t>(&self, text: &'t str) -> &'t str {
        self.0.find(text).unwrap_or_default()
    }

    /// Returns at most `limit` matches.
    pub(super) fn find_all<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        self.0.find_all(text, limit)
    }
}
