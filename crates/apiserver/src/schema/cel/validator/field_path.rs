//! The member `fieldPath` of rules.

use super::super::structural::Schema;

/// Returns the normal form of a path such as `.spec['a.b']`, or `None` if it names no field of the schema.
pub(super) fn normalize(path: &str, schema: &Schema) -> Option<String> {
    let mut normal = String::new();
    let mut schema = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('[') {
            Some(quoted) => {
                let (name, after) = quoted_name(quoted)?;
                (name, after.strip_prefix(']')?)
            }
            None => plain_name(rest.strip_prefix('.')?)?,
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
        rest = after;
    }
    (!normal.is_empty()).then_some(normal)
}

fn plain_name(text: &str) -> Option<(String, &str)> {
    let end = text.find(['.', '[', ']']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then(|| (name.to_owned(), rest))
}

/// Reads a name in single quotes with the escape sequences of Go.
fn quoted_name(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('\'')?;
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\'' => return Some((name, &text[place + 1..])),
            '\\' => name.push(match letters.next()?.1 {
                'a' => '\u{7}',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                same @ ('\'' | '\\') => same,
                _ => return None,
            }),
            other => name.push(other),
        }
    }
    None
}
