//! Splits the text of a fault plan into tokens.
//!
//! A token is a word, a quoted text, or a punctuation character.
//!
//! Guarantees:
//! - every token records its byte offset in the plan;
//! - the list of tokens ends with a token of the kind [`Kind::End`].

use std::fmt;

use super::{Mistake, Parsed};
use crate::fault::matching::Word;

/// A token of a fault plan and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlanToken<'a> {
    pub(super) kind: Kind<'a>,
    /// Byte offset of the token's start in the plan.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    PlanToken(&'a str),
    /// The decoded content of a text in double quotes.
    Text(String),
    Colon,
    /// A semicolon or a newline, which ends a statement.
    Separator,
    End,
}

/// Splits the text of a fault plan into tokens, without white space and comments.
pub(super) fn tokens(text: &str) -> Parsed<Vec<PlanToken<'_>>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match first {
            '\n' | ';' => (Some(Kind::Separator), 1),
            ':' => (Some(Kind::Colon), 1),
            '#' => (None, rest.find('\n').unwrap_or(rest.len())),
            '"' => {
                let length = quoted(rest).ok_or_else(|| Mistake {
                    at,
                    message: "the text in quotes has no closing quote".to_owned(),
                })?;
                let text = serde_json::from_str(&rest[..length]).map_err(|_| Mistake {
                    at,
                    message: "the text in quotes is not a JSON string".to_owned(),
                })?;
                (Some(Kind::Text(text)), length)
            }
            first if Word::holds(first) => {
                let length = rest.find(|next| !Word::holds(next));
                let length = length.unwrap_or(rest.len());
                (Some(Kind::PlanToken(&rest[..length])), length)
            }
            first if first.is_whitespace() => (None, first.len_utf8()),
            _ => {
                let message = "a control character is valid only in quotes".to_owned();
                return Err(Mistake { at, message });
            }
        };
        tokens.extend(kind.map(|kind| PlanToken { kind, at }));
        at += length;
    }
    tokens.push(PlanToken {
        kind: Kind::End,
        at,
    });
    Ok(tokens)
}

/// Returns the length in bytes of the quoted text at the start of `rest`, including both quotes.
///
/// Returns `None` if the closing quote is missing.
fn quoted(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

impl<'a> PlanToken<'a> {
    /// Returns the text of a word token, or `None` for any other token.
    pub(super) fn word(&self) -> Option<&'a str> {
        match self.kind {
            Kind::PlanToken(word) => Some(word),
            _ => None,
        }
    }
}

impl fmt::Display for PlanToken<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::PlanToken(word) => write!(f, "`{word}`"),
            Kind::Text(_) => f.write_str("text in quotes"),
            Kind::Colon => f.write_str("`:`"),
            Kind::Separator => f.write_str("the end of the statement"),
            Kind::End => f.write_str("the end of the plan"),
        }
    }
}
