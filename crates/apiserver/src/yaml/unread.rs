//! Defines the error of a YAML text that can't be read.
//!
//! A syntax error has the message of `go.yaml.in/yaml/v2` if it has the same error.

use std::fmt;

use serde_saphyr::granit_parser::{ErrorKind, ScanError};

/// The reason why a text can't be read.
#[derive(Debug, PartialEq)]
pub(crate) enum Unread {
    /// More than [`DEPTH_MAX`] levels.
    TooDeep,
    /// The message is Go's, with the differences that the documentation of the module lists.
    Malformed(String),
}

/// Returns the error with its line. As in Go, an error in the first line has no line.
pub(super) fn syntax_error(text: &str, error: &ScanError) -> Unread {
    let marker = error.marker();
    let (found_by, why) = match error.kind() {
        ErrorKind::RecursionLimitExceeded => return Unread::TooDeep,
        ErrorKind::UnknownAnchor => {
            let alias = marker.byte_offset().and_then(|at| text.get(at..));
            let alias = alias.unwrap_or_default().trim_start_matches('*');
            let end = alias
                .find(|letter: char| !letter.is_ascii_alphanumeric() && !"_-".contains(letter));
            let name = &alias[..end.unwrap_or(alias.len())];
            return malformed(format!("unknown anchor '{name}' referenced"));
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            let close = if *open == '{' { '}' } else { ']' };
            let line = text.lines().count();
            return malformed(format!(
                "line {line}: did not find expected ',' or '{close}'"
            ));
        }
        ErrorKind::ExpectedNodeContent
        | ErrorKind::MisplacedFlowCollectionEnd
        | ErrorKind::MismatchedFlowCollectionEnd { .. } => {
            (Pass::Parser, "did not find expected node content")
        }
        ErrorKind::ExpectedBlockMappingKey => (Pass::Parser, "did not find expected key"),
        ErrorKind::ExpectedBlockSequenceEntry => {
            (Pass::Parser, "did not find expected '-' indicator")
        }
        ErrorKind::ExpectedFlowMappingSeparator => {
            (Pass::Parser, "did not find expected ',' or '}'")
        }
        ErrorKind::ExpectedFlowSequenceSeparator => {
            (Pass::Parser, "did not find expected ',' or ']'")
        }
        ErrorKind::MappingValueNotAllowed => (
            Pass::Scanner,
            "mapping values are not allowed in this context",
        ),
        ErrorKind::UnexpectedCharacter { .. }
        | ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation => {
            (Pass::Scanner, "found character that cannot start any token")
        }
        ErrorKind::UnclosedQuotedScalar => (Pass::Scanner, "found unexpected end of stream"),
        ErrorKind::SimpleKeyExpected => (Pass::Scanner, "could not find expected ':'"),
        _ => (Pass::Scanner, ""),
    };
    let why = match why {
        "" => error.info(),
        why => why.to_owned(),
    };
    // The parser of Go reports the number of the line before.
    let line = match found_by {
        Pass::Scanner => marker.line(),
        Pass::Parser => marker.line().saturating_sub(1),
    };
    if marker.line() > 1 {
        malformed(format!("line {line}: {why}"))
    } else {
        malformed(why)
    }
}

/// The pass over the text that finds an error in Go.
enum Pass {
    Scanner,
    Parser,
}

fn malformed(why: impl fmt::Display) -> Unread {
    Unread::Malformed(format!("yaml: {why}"))
}
