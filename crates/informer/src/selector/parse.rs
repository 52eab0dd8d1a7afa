//! Parses label selectors with the rules of Kubernetes' apimachinery library.
//!
//! For every text, the parser returns a selector, or an error that contains a position. The parser never
//! panics. The rules are those of
//! [`selector.go`](https://github.com/kubernetes/apimachinery/blob/master/pkg/labels/selector.go).

use std::collections::BTreeSet;
use std::str::FromStr;

use super::label::{InvalidLabel, check_key, check_value};
use super::{Operator, Requirement, Selector};

const OPERATORS: &str = "one of =, ==, !=, in, notin, >, <, ',' or the end";

/// Error for a text that is not a label selector. The error contains the position in the text and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid selector at byte {position}: {problem}")]
pub struct SelectorParseError {
    position: usize,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("found {found}, expected {expected}")]
    Unexpected {
        found: String,
        expected: &'static str,
    },
    #[error(transparent)]
    Invalid(InvalidLabel),
    #[error("{0:?} is not a 64-bit integer")]
    NotAnInteger(String),
}

/// A key, value, operator, comma or parenthesis in a selector, and its byte position.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    position: usize,
    /// The token's text, which is empty only at the end of the selector.
    text: &'a str,
}

struct Parser<'a> {
    text: &'a str,
    token: Token<'a>,
}

impl SelectorParseError {
    /// Returns the byte position of the error in the text. If the text ends too early, the position is the
    /// length of the text.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the reason why a key or a value in the selector is invalid; `None` for other errors.
    pub fn invalid_label(&self) -> Option<&InvalidLabel> {
        match &self.problem {
            Problem::Invalid(invalid) => Some(invalid),
            Problem::Unexpected { .. } | Problem::NotAnInteger(_) => None,
        }
    }
}

impl FromStr for Selector {
    type Err = SelectorParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser::new(text);
        let mut requirements = Vec::new();
        if parser.token.is_end() {
            return Ok(Selector::everything());
        }
        loop {
            requirements.push(parser.requirement()?);
            if parser.token.is_end() {
                return Ok(requirements.into_iter().collect());
            }
            parser.expect(",", "',' or the end")?;
        }
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            token: Token::at(text, 0),
        }
    }

    /// Returns the current token, and advances the parser to the next token.
    fn take(&mut self) -> Token<'a> {
        let next = Token::at(self.text, self.token.end());
        std::mem::replace(&mut self.token, next)
    }

    fn take_if(&mut self, symbol: &str) -> bool {
        let is_it = self.token.text == symbol;
        if is_it {
            self.take();
        }
        is_it
    }

    fn expect(&mut self, symbol: &str, expected: &'static str) -> Result<(), SelectorParseError> {
        if self.take_if(symbol) {
            Ok(())
        } else {
            Err(self.token.unexpected(expected))
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorParseError> {
        let negated = self.take_if("!");
        if !self.token.is_word() {
            let expected = if negated { "a key" } else { "a key or '!'" };
            return Err(self.token.unexpected(expected));
        }
        let key = self.take();
        key.check(check_key)?;
        let operator = if negated {
            Operator::DoesNotExist
        } else {
            self.operator()?
        };
        Ok(Requirement {
            key: key.text.to_owned(),
            operator,
        })
    }

    fn operator(&mut self) -> Result<Operator, SelectorParseError> {
        if self.token.is_end() || self.token.text == "," {
            return Ok(Operator::Exists);
        }
        let operator = self.token;
        match operator.text {
            "=" | "==" | "!=" | ">" | "<" | "in" | "notin" => self.take(),
            _ => return Err(operator.unexpected(OPERATORS)),
        };
        Ok(match operator.text {
            "in" => Operator::In(self.values()?),
            "notin" => Operator::NotIn(self.values()?),
            ">" => Operator::GreaterThan(self.integer()?),
            "<" => Operator::LessThan(self.integer()?),
            "!=" => Operator::NotEquals(self.value()?.to_owned()),
            _ => Operator::Equals(self.value()?.to_owned()),
        })
    }

    fn value(&mut self) -> Result<&'a str, SelectorParseError> {
        if self.token.is_end() || self.token.text == "," {
            return Ok("");
        }
        if !self.token.is_word() {
            return Err(self.token.unexpected("a value"));
        }
        let value = self.take();
        value.check(check_value)?;
        Ok(value.text)
    }

    fn integer(&mut self) -> Result<i64, SelectorParseError> {
        let token = self.token;
        let value = self.value()?;
        let not_an_integer = |_| token.error(Problem::NotAnInteger(value.to_owned()));
        value.parse().map_err(not_an_integer)
    }

    /// Parses values in parentheses. Values may be empty, as in `()`, `(,a)`, `(a,,b)` and `(a,,)`.
    ///
    /// Accepts two commas at the end, as Kubernetes 1.36 does. Kubernetes 1.32 rejects them.
    fn values(&mut self) -> Result<BTreeSet<String>, SelectorParseError> {
        self.expect("(", "'('")?;
        let mut values = BTreeSet::new();
        if self.take_if(")") {
            values.insert(String::new());
            return Ok(values);
        }
        loop {
            if self.token.is_word() {
                values.insert(self.value()?.to_owned());
                if self.take_if(")") {
                    return Ok(values);
                }
                if self.token.text != "," {
                    return Err(self.token.unexpected("',' or ')'"));
                }
            }
            let first = values.is_empty();
            self.expect(",", "a value or ','")?;
            let last = self.take_if(")");
            let doubled = self.token.text == ",";
            if first || last || doubled {
                values.insert(String::new());
            }
            if last {
                return Ok(values);
            }
        }
    }
}

impl<'a> Token<'a> {
    /// Returns the first token of `text` at or after byte `from`. The token is empty at the end of `text`.
    fn at(text: &'a str, from: usize) -> Self {
        let rest = &text[from..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        let rest = &rest[blank..];
        let len = match rest.as_bytes() {
            [b'=' | b'!', b'=', ..] => 2,
            [first, ..] if is_symbol(*first) => 1,
            _ => rest
                .bytes()
                .position(|byte| is_symbol(byte) || matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
                .unwrap_or(rest.len()),
        };
        Self {
            position: from + blank,
            text: &rest[..len],
        }
    }

    fn end(&self) -> usize {
        self.position + self.text.len()
    }

    fn is_end(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether the token can be a key or a value.
    ///
    /// Also true for the operators `in` and `notin`, because they are valid keys and values.
    fn is_word(&self) -> bool {
        self.text
            .bytes()
            .next()
            .is_some_and(|first| !is_symbol(first))
    }

    fn check(
        &self,
        rule: impl Fn(&str) -> Result<(), InvalidLabel>,
    ) -> Result<(), SelectorParseError> {
        rule(self.text).map_err(|invalid| self.error(Problem::Invalid(invalid)))
    }

    fn unexpected(&self, expected: &'static str) -> SelectorParseError {
        let found = if self.is_end() {
            "the end".to_owned()
        } else {
            format!("{:?}", self.text)
        };
        self.error(Problem::Unexpected { found, expected })
    }

    fn error(&self, problem: Problem) -> SelectorParseError {
        SelectorParseError {
            position: self.position,
            problem,
        }
    }
}

fn is_symbol(byte: u8) -> bool {
    matches!(byte, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<')
}
