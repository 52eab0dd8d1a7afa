//! Checks the syntax of the patterns in a schema.

use crate::go_regex::Pattern;

/// Returns why Go's `regexp.Compile` rejects a pattern, or `None` if it is valid.
pub(super) fn pattern_error(pattern: &str) -> Option<String> {
    Pattern::syntax_error(pattern)
}
