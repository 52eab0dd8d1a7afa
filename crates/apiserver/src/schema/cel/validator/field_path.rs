//! The member `fieldPath` of rules.

use super::super::structural::Schema;
use crate::schema::field_path::{Tokens, unquoted};

/// Returns the normal form of a path such as `.spec['a.b']`, or `None` if it names no field of the schema.
pub(super) fn normalize(path: &str, schema: &Schema) -> Option<String> {
    let mut normal = String::new();
    let mut schema = schema;
    let mut tokens = Tokens(path);
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next()?.to_owned(),
            "[" => {
                let name = unquoted(tokens.next()?).ok()?;
                tokens.next().filter(|end| *end == "]")?;
                name
            }
            _ => return None,
        };
        if schema.properties.is_some() {
            if !normal.is_empty() {
                normal.push('.');
            }
            normal.push_str(&name);
            schema = schema.property(&name)?;
        } else {
            normal.push('[');
            normal.push_str(&name);
            normal.push(']');
            schema = schema.additional.as_ref()?;
        }
    }
    (!normal.is_empty()).then_some(normal)
}
