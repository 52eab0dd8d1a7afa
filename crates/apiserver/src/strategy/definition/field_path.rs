//! Resolves the path of a field in a schema, such as `.spec.ports` or `.metadata['labels']`.
//!
//! Guarantees: the accepted paths and the messages are those of `ValidFieldPath` in Kubernetes. Where Kubernetes
//! stops with a panic, because a path continues below a field without a schema, the path refers to no field.

use super::schema::{OrBool, Schema};
use crate::schema::{Tokens, unquoted};

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
