//! Messages about the text of an expression, in the form of cel-go.

use std::fmt::Write as _;

/// Maximum length of a line that a message repeats, in bytes, as in cel-go.
const MAX_SNIPPET_BYTES: usize = 16_384;

/// Maximum count of messages for one expression, as in cel-go.
const MAX_ISSUES: usize = 100;

/// A place in an expression. Lines start at 1 and columns, in characters, at 0.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The place of messages about the whole expression.
pub(super) const NOWHERE: Location = Location { line: 0, column: 0 };

/// One message.
#[derive(Debug)]
pub(super) struct Issue {
    pub(super) location: Location,
    pub(super) message: String,
}

/// Returns the text of all messages, ordered by their places.
pub(super) fn display(source: &str, mut issues: Vec<Issue>) -> String {
    let count = issues.len();
    issues.truncate(MAX_ISSUES);
    issues.sort_by_key(|issue| issue.location);
    let shown = issues.iter().map(|issue| display_one(source, issue));
    let mut shown: Vec<String> = shown.collect();
    if count > MAX_ISSUES {
        shown.push(format!("{} more errors were truncated", count - MAX_ISSUES));
    }
    shown.join("\n")
}

fn display_one(source: &str, issue: &Issue) -> String {
    let Location { line, column } = issue.location;
    let message = &issue.message;
    if issue.location == NOWHERE {
        return format!("ERROR: <input>:-1:0: {message}");
    }
    let mut shown = format!("ERROR: <input>:{line}:{}: {message}", column + 1);
    let snippet = source.split('\n').nth(line.wrapping_sub(1));
    if let Some(snippet) = snippet.filter(|snippet| snippet.len() <= MAX_SNIPPET_BYTES) {
        let snippet = snippet.replace('\t', " ");
        let _ = write!(shown, "\n | {snippet}\n | ");
        // A wide character gets a wide mark below it.
        let mut letters = snippet.chars();
        for letter in letters.by_ref().take(column) {
            shown.push(if letter.is_ascii() { '.' } else { '\u{ff0e}' });
        }
        let is_wide = letters.next().is_some_and(|letter| !letter.is_ascii());
        shown.push(if is_wide { '\u{ff3e}' } else { '^' });
    }
    shown
}
