//! Resolves the path of a field in a schema, such as `.spec.ports` or `.metadata['labels']`.
//!
//! Guarantees: the accepted paths and the messages are those of `ValidFieldPath` in Kubernetes. Where Kubernetes
//! stops with a panic, because a path continues below a field without a schema, the path refers to no field.

use super::schema::{OrBool, Schema};

/// Message about a field that a schema does not have.
const NO_FIELD: &str = "does not refer to a valid field";

/// Whether a path may contain names in brackets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Allowed,
    Forbidden,
}

/// A field of a schema.
pub(super) struct Field<'a> {
    /// The path in another notation, which is equal for equal paths.
    pub(super) path: String,
    /// The first step of the path.
    pub(super) root: String,
    /// The schema of the field, if it has one.
    pub(super) schema: Option<Schema<'a>>,
}

/// Returns the field at a path that is not empty, or why there is none.
pub(super) fn resolve<'a>(
    path: &str,
    schema: Option<Schema<'a>>,
    brackets: Brackets,
) -> Result<Field<'a>, String> {
    let mut tokens = Tokens(path);
    let mut field = Field {
        path: String::new(),
        root: String::new(),
        schema,
    };
    let ends = || "unexpected end of JSON path".to_owned();
    while let Some(token) = tokens.next() {
        match token {
            "[" if brackets == Brackets::Forbidden => {
                return Err("array notation is not allowed".to_owned());
            }
            "[" => {
                let name = unquoted(tokens.next().ok_or_else(ends)?)?;
                field.enter(&name)?;
                match tokens.next().ok_or_else(ends)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            "." => field.enter(tokens.next().ok_or_else(ends)?)?,
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(field)
}

impl Field<'_> {
    /// Continues with a property, or with a value if the field is a map.
    fn enter(&mut self, name: &str) -> Result<(), String> {
        let schema = self.schema.ok_or(NO_FIELD)?;
        let step = if schema.has_entries("properties") {
            self.schema = Some(schema.property(name).ok_or(NO_FIELD)?);
            if self.path.is_empty() {
                name.to_owned()
            } else {
                format!(".{name}")
            }
        } else {
            let values = schema.or_bool("additionalProperties").ok_or(NO_FIELD)?;
            self.schema = OrBool::schema(values);
            format!("[{name}]")
        };
        self.path.push_str(&step);
        if self.root.is_empty() {
            self.root = step;
        }
        Ok(())
    }
}

/// Splits a path into delimiters, names and quoted names.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.0.as_bytes();
        let first = *bytes.first()?;
        let is_delimiter = |byte: u8| matches!(byte, b'.' | b'[' | b']');
        let end = match first {
            b'\'' => {
                let closes = |at: &usize| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\';
                (1..bytes.len()).find(closes).map(|at| at + 1)
            }
            first if is_delimiter(first) => Some(1),
            _ => bytes.iter().position(|byte| is_delimiter(*byte)),
        };
        let (token, rest) = self.0.split_at(end.unwrap_or(bytes.len()));
        self.0 = rest;
        Some(token)
    }
}

/// Returns the name in single quotes.
fn unquoted(token: &str) -> Result<String, String> {
    let inner = token
        .strip_prefix('\'')
        .and_then(|inner| inner.strip_suffix('\''));
    let Some(inner) = inner else {
        return Err(format!("expected single quoted string but got {token}"));
    };
    let mut name = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        // A backslash at the end, or before a line break, stands for itself.
        let escaped = match letter {
            '\\' => letters.clone().next().filter(|next| *next != '\n'),
            _ => None,
        };
        let Some(escaped) = escaped else {
            name.push(letter);
            continue;
        };
        letters.next();
        name.push(match escaped {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' | '\\' => escaped,
            other => {
                return Err(format!(
                    "invalid string literal: invalid escape char \\{other}"
                ));
            }
        });
    }
    Ok(name)
}
