//! Parses label selectors and matches them against the labels of objects.
//!
//! Guarantees:
//! - set-based and equality-based requirements are parsed as by apimachinery's `labels.Parse`;
//! - an object without the label satisfies `!=` and `notin`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::Value;

use super::texts::Texts;
use crate::name_syntax;
use crate::quote::Quoted;

/// The labels of one object, as alternating keys and values, ordered by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Labels(Texts);

/// A parsed label selector; objects must satisfy all requirements.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

/// Reads the tokens of a label selector. `rest` is the unread text.
struct Reader<'a> {
    rest: &'a str,
}

#[derive(Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

/// Whitespace characters that separate words in a label selector.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// The operators and punctuation of label selectors; `==` precedes its prefix `=`, and `!=` precedes `!`.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

// === impl Labels ===

impl Labels {
    /// Returns the labels in an object's `metadata`, without labels whose values are not strings.
    pub(crate) fn of(metadata: &Value) -> Labels {
        let Some(Value::Object(labels)) = metadata.get("labels") else {
            return Labels::default();
        };
        let mut pairs: Vec<(&str, &str)> = labels
            .iter()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
            .collect();
        pairs.sort_unstable();
        Labels(pairs.into_iter().flat_map(<[&str; 2]>::from).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let (mut from, mut to) = (0, self.0.len() / 2);
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.0.get(2 * middle)?.cmp(key) {
                Ordering::Less => from = middle + 1,
                Ordering::Greater => to = middle,
                Ordering::Equal => return self.0.get(2 * middle + 1),
            }
        }
        None
    }
}

// === impl LabelSelector ===

impl LabelSelector {
    pub(crate) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(labels))
    }

    /// Parses a label selector.
    ///
    /// # Errors
    ///
    /// Returns Kubernetes' error message if the selector is malformed.
    pub(crate) fn parse(text: &str) -> Result<LabelSelector, String> {
        let mut reader = Reader { rest: text };
        let mut requirements = Vec::new();
        if reader.peek() == Token::End {
            return Ok(LabelSelector { requirements });
        }
        if let Token::Symbol(symbol) = reader.peek()
            && symbol != "!"
        {
            return Err(format!(
                "found '{symbol}', expected: !, identifier, or 'end of string'"
            ));
        }
        loop {
            let requirement = reader.requirement();
            requirements
                .push(requirement.map_err(|why| format!("unable to parse requirement: {why}"))?);
            match reader.next() {
                Token::End => break,
                Token::Symbol(",") => match reader.peek() {
                    Token::Word(_) | Token::Symbol("!") => {}
                    other => {
                        return Err(format!(
                            "found '{}', expected: identifier after ','",
                            other.text()
                        ));
                    }
                },
                other => {
                    return Err(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
        Ok(LabelSelector { requirements })
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => {
                value.is_some_and(|value| values.iter().any(|one| one == value))
            }
            Operator::NotIn(values) => {
                value.is_none_or(|value| values.iter().all(|one| one != value))
            }
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    fn peek(&self) -> Token<'a> {
        Reader { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches(SPACES);
        if self.rest.is_empty() {
            return Token::End;
        }
        if let Some(symbol) = SYMBOLS
            .into_iter()
            .find(|symbol| self.rest.starts_with(symbol))
        {
            self.rest = &self.rest[symbol.len()..];
            return Token::Symbol(symbol);
        }
        let end = self
            .rest
            .find(|c: char| SPACES.contains(&c) || "=!(),<>".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word)
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let absent = self.peek() == Token::Symbol("!");
        if absent {
            self.next();
        }
        let key = match self.next() {
            Token::Word(word) => checked_key(word)?,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if absent {
            return Ok(Requirement {
                key,
                operator: Operator::DoesNotExist,
            });
        }
        let operator = match self.peek() {
            Token::End | Token::Symbol(",") => Operator::Exists,
            _ => self.operator(&key)?,
        };
        Ok(Requirement { key, operator })
    }

    fn operator(&mut self, key: &str) -> Result<Operator, String> {
        match self.next() {
            Token::Symbol("=" | "==") => Ok(Operator::In(vec![self.exact(key)?])),
            Token::Symbol("!=") => Ok(Operator::NotIn(vec![self.exact(key)?])),
            Token::Symbol(">") => Ok(Operator::GreaterThan(self.bound(key)?)),
            Token::Symbol("<") => Ok(Operator::LessThan(self.bound(key)?)),
            Token::Word("in") => Ok(Operator::In(self.set(key)?)),
            Token::Word("notin") => Ok(Operator::NotIn(self.set(key)?)),
            other => Err(format!(
                "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                other.text()
            )),
        }
    }

    /// Reads and validates the value after `=`, `==` or `!=`. A missing value is read as an empty string.
    fn exact(&mut self, key: &str) -> Result<String, String> {
        let value = self.word()?;
        check_values([value], key, Vec::new())?;
        Ok(value.to_owned())
    }

    /// Reads the next token as a value. If a comma or the end of the selector follows instead, returns an
    /// empty string.
    ///
    /// # Errors
    ///
    /// Returns Kubernetes' error message if the next token is a symbol other than a comma.
    fn word(&mut self) -> Result<&'a str, String> {
        match self.peek() {
            Token::End | Token::Symbol(",") => Ok(""),
            Token::Word(word) => {
                self.next();
                Ok(word)
            }
            other @ Token::Symbol(_) => {
                Err(format!("found '{}', expected: identifier", other.text()))
            }
        }
    }

    /// Reads the integer after `>` or `<`, which must have no sign.
    fn bound(&mut self, key: &str) -> Result<i64, String> {
        let word = self.word()?;
        let bound = word.parse().map_err(|_| {
            format!(
                "values[0]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                Quoted(word)
            )
        });
        let errors = bound.as_ref().err().into_iter().cloned().collect();
        check_values([word], key, errors)?;
        bound
    }

    fn set(&mut self, key: &str) -> Result<Vec<String>, String> {
        match self.next() {
            Token::Symbol("(") => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let values = self.values()?;
        check_values(values.iter().copied(), key, Vec::new())?;
        Ok(values.into_iter().map(str::to_owned).collect())
    }

    /// Reads the distinct values of a set, after its opening parenthesis.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, String> {
        if self.next_is(")") {
            return Ok(BTreeSet::from([""]));
        }
        if !matches!(self.peek(), Token::Word(_) | Token::Symbol(",")) {
            return Err(format!(
                "found '{}', expected: ',', ')' or identifier",
                self.peek().text()
            ));
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(word);
                    if self.next_is(")") {
                        return Ok(values);
                    }
                    let after = self.peek();
                    if after != Token::Symbol(",") {
                        return Err(format!("found '{}', expected: ',' or ')'", after.text()));
                    }
                }
                // A comma before any value, before `)` or before another comma adds an empty value.
                Token::Symbol(",") => {
                    let last = self.next_is(")");
                    if values.is_empty() || last || self.peek() == Token::Symbol(",") {
                        values.insert("");
                    }
                    if last {
                        return Ok(values);
                    }
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', or identifier",
                        other.text()
                    ));
                }
            }
        }
    }

    /// Returns whether the next token is `symbol`. If so, consumes the token.
    fn next_is(&mut self, symbol: &'static str) -> bool {
        let is_next = self.peek() == Token::Symbol(symbol);
        if is_next {
            self.next();
        }
        is_next
    }
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Symbol(symbol) => symbol,
            Token::End => "",
        }
    }
}

/// Returns `key` if it is a valid label key.
///
/// # Errors
///
/// Returns Kubernetes' error message if the key is invalid.
fn checked_key(key: &str) -> Result<String, String> {
    let faults = name_syntax::key_faults(key);
    if faults.is_empty() {
        return Ok(key.to_owned());
    }
    let why = faults.join("; ");
    Err(format!("<nil>: Invalid value: {}: {why}", Quoted(key)))
}

/// Checks the values of a requirement, in their order.
///
/// # Errors
///
/// Returns Kubernetes' error message with `errors` and the errors of the values, if there are any.
fn check_values<'a>(
    values: impl IntoIterator<Item = &'a str>,
    key: &str,
    mut errors: Vec<String>,
) -> Result<(), String> {
    for (at, value) in values.into_iter().enumerate() {
        let faults = name_syntax::value_faults(value);
        if !faults.is_empty() {
            let why = faults.join("; ");
            errors.push(format!(
                "values[{at}][{key}]: Invalid value: {}: {why}",
                Quoted(value)
            ));
        }
    }
    match errors.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}
