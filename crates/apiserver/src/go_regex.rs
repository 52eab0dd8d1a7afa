//! Go's regular expressions (package `regexp`), which the keyword `pattern` of a schema and rules in CEL contain.
//!
//! Guarantees:
//!
//! - A pattern compiles if and only if `regexp.Compile` of Go 1.26 accepts it, and the error is Go's.
//!   Patterns that exceed a limit below are the exception.
//! - A pattern matches a text if and only if Go's `MatchString` reports a match.
//! - The memory and the time of [`Pattern::compile`] are bounded for any pattern. The time of a match is
//!   linear in the length of the text, and at most proportional to the size of the automaton.
//!
//! Properties and case folding are those of Unicode 15.0, the version of Go 1.26: code points assigned later
//! are unassigned.
//!
//! A literal or class of surrogates, such as `\x{D800}`, matches nothing. In Go it can match U+FFFD if the
//! pattern starts with `^` and a literal that contains it, because Go replaces surrogates when it encodes the
//! literal.
//!
//! [`Pattern::find`] and [`Pattern::find_all`] prefer matches as Go does. Of 60,000 random patterns and texts, three
//! have another result: a repetition of parts that match the empty text, inside another repetition.
//!
//! Limits that are lower than Go's; the error starts with `pattern is too large for this server`:
//!
//! - a pattern has at most [`PATTERN_BYTES_MAX`] bytes;
//! - its classes have at most 524,288 ranges together (32 times as many in Go); `\pL` has about 650;
//! - its automaton has at most 24 MiB, while Go accepts 3,355,443 instructions of 40 bytes.

mod alternation;
mod automaton;
mod class;
mod class_syntax;
mod escape;
mod factor;
mod fold;
mod groups;
mod matcher;
mod measure;
mod names;
mod node;
mod parser;
mod property;
mod tree;

use std::sync::Arc;

use automaton::{AUTOMATON_BYTES_MAX, TooLarge};
use escape::Fault;
use matcher::Matcher;
use measure::RANGES_MAX;
use node::{Limit, NodeId};
use tree::Tree;

/// Maximum length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 64 << 10;

/// A compiled pattern. Clones share the automaton.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    matcher: Arc<Matcher>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The text of the error that Go's `regexp.Compile` returns, or the limit of this module that the pattern
    /// exceeds.
    pub(crate) fn compile(text: &str) -> Result<Pattern, String> {
        let (tree, root) = parse(text)?;
        let nfa = automaton::build(&tree, root).map_err(|TooLarge| automaton_too_large())?;
        let matcher = Matcher::new(nfa).ok_or_else(automaton_too_large)?;
        Ok(Pattern {
            matcher: Arc::new(matcher),
        })
    }

    /// Returns the error of [`Pattern::compile`], without the limit of the automaton.
    pub(crate) fn syntax_error(text: &str) -> Option<String> {
        parse(text).err()
    }

    /// Returns the size of the automaton in memory.
    pub(crate) fn automaton_bytes(&self) -> usize {
        self.matcher.automaton_bytes()
    }

    /// Returns whether the pattern matches some part of `text`.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.matcher.is_match(text)
    }

    /// Returns the first match (`FindString`), or `None` if the pattern does not match.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let found = self.matcher.find_at(text, 0)?;
        Some(&text[found])
    }

    /// Returns the first matches that do not overlap, at most `limit` (`FindAllString`).
    pub(crate) fn find_all<'t>(&self, text: &'t str, limit: usize) -> Vec<&'t str> {
        let mut all = Vec::new();
        let (mut from, mut last_end) = (0, None);
        while all.len() < limit
            && from <= text.len()
            && let Some(found) = self.matcher.find_at(text, from)
        {
            let is_repeated = found.end == from && last_end == Some(found.start);
            if found.end > from {
                from = found.end;
            } else {
                let next = text[from..].chars().next();
                from += next.map_or(1, char::len_utf8);
            }
            last_end = Some(found.end);
            // As in Go, an empty match right after another match does not count.
            if !is_repeated {
                all.push(&text[found]);
            }
        }
        all
    }
}

fn parse(text: &str) -> Result<(Tree, NodeId), String> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(too_large(&format!("more than {PATTERN_BYTES_MAX} bytes")));
    }
    parser::parse(text).map_err(|fault| describe(&fault, text))
}

fn describe(fault: &Fault<'_>, pattern: &str) -> String {
    let (code, quoted) = match fault {
        Fault::Syntax(code, quoted) => (*code, *quoted),
        Fault::Limit(Limit::Depth) => ("expression nests too deeply", pattern),
        Fault::Limit(Limit::Size) => ("expression too large", pattern),
        Fault::Limit(Limit::Ranges) => {
            return too_large(&format!("more than {RANGES_MAX} ranges in classes"));
        }
    };
    format!("error parsing regexp: {code}: `{quoted}`")
}

fn automaton_too_large() -> String {
    too_large(&format!(
        "an automaton of more than {AUTOMATON_BYTES_MAX} bytes"
    ))
}

fn too_large(what: &str) -> String {
    format!("pattern is too large for this server: {what}")
}

#[cfg(test)]
mod tests;
