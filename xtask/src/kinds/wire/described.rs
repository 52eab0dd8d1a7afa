//! Adds to the rows of messages what the OpenAPI documents say about their fields.
//!
//! The types of the OpenAPI documents follow from the types of the messages, so the table does not repeat them.
//! A field whose two types differ is an error, and so is a field that only one of the sources has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::{EITHER, Entry, Row, definition_name, message_name};
use crate::kinds::openapi::{Described, Document};

/// Adds the words of all definitions that `roots` refer to.
pub(super) fn add<'a>(
    messages: &mut BTreeMap<String, Entry>,
    document: &'a Document,
    roots: impl Iterator<Item = &'a str>,
) -> Result<()> {
    let mut words = Words::default();
    for name in document.reachable(roots)? {
        let definition = document.definition(name)?;
        let message = message_name(name);
        ensure!(messages.contains_key(&message), "{name} has no message");
        if definition.is_atomic() {
            words.atomic.insert(message.clone());
        }
        let rows = if definition.has_fields() {
            flat(messages, &message)?
        } else {
            BTreeMap::new()
        };
        let mut unknown: BTreeSet<&str> = rows.keys().copied().collect();
        for field in document.fields(definition) {
            let (field, described) = field.with_context(|| name.to_owned())?;
            let Some((owner, row)) = rows.get(field) else {
                ensure!(
                    ["apiVersion", "kind"].contains(&field),
                    "{name}.{field} is no field of the message"
                );
                continue;
            };
            unknown.remove(field);
            let own =
                row_words(messages, row, described).with_context(|| format!("{name}.{field}"))?;
            let key = ((*owner).to_owned(), row.cells[0].clone());
            if let Some(other) = words.of_fields.insert(key, own.clone()) {
                ensure!(
                    other == own,
                    "{name}.{field} is {own:?}, elsewhere {other:?}"
                );
            }
        }
        ensure!(unknown.is_empty(), "{name} does not have {unknown:?}");
    }
    words.write(messages);
    Ok(())
}

/// Words for the rows of messages, collected before the rows change.
#[derive(Default)]
struct Words {
    atomic: BTreeSet<String>,
    /// The words of each field, by the names of messages and the numbers of fields.
    of_fields: BTreeMap<(String, String), Vec<String>>,
}

impl Words {
    fn write(mut self, messages: &mut BTreeMap<String, Entry>) {
        for (name, entry) in messages {
            entry.is_atomic = self.atomic.contains(name);
            for row in &mut entry.rows {
                let key = (name.clone(), row.cells[0].clone());
                row.words
                    .extend(self.of_fields.remove(&key).into_iter().flatten());
            }
        }
    }
}

/// Returns the rows of a message and of the messages that are inlined in it, by name in JSON. Each row has the name of
/// its message. Rows that a later release adds are left out.
fn flat<'a>(
    messages: &'a BTreeMap<String, Entry>,
    name: &'a str,
) -> Result<BTreeMap<&'a str, (&'a str, &'a Row)>> {
    let entry = messages
        .get(name)
        .with_context(|| format!("no message {name}"))?;
    let mut rows = BTreeMap::new();
    for row in entry.rows.iter().filter(|row| !row.is_added) {
        let [_, json_name, value, presence] = &row.cells;
        if presence == "inline" {
            rows.extend(flat(messages, value)?);
        } else {
            rows.insert(json_name.as_str(), (name, row));
        }
    }
    Ok(rows)
}

fn row_words(
    messages: &BTreeMap<String, Entry>,
    row: &Row,
    described: Described,
) -> Result<Vec<String>> {
    let [_, _, value, presence] = &row.cells;
    let expected = openapi_type(messages, value)?;
    ensure!(
        described.value_type == expected,
        "the OpenAPI type is {}, and the type of the message {expected}",
        described.value_type
    );
    let zero = zero(value).filter(|_| presence == "always");
    let mut words = described.words;
    match described.default {
        default if default == zero => {}
        Some(default) if zero_of(&default).is_some() => words.push(format!("default={default}")),
        Some(_) => {}
        None => bail!("no default, and the type {value}"),
    }
    ensure!(
        words.iter().all(|word| !word.contains([' ', '\t'])),
        "a word with a space: {words:?}"
    );
    Ok(words)
}

/// Returns the type in the OpenAPI documents of a field with this type in the table of messages.
fn openapi_type(messages: &BTreeMap<String, Entry>, value: &str) -> Result<String> {
    for container in ["[]", "{}"] {
        if let Some(item) = value.strip_prefix(container) {
            return Ok(format!("{container}{}", openapi_type(messages, item)?));
        }
    }
    let scalar = match value {
        "bool" => "boolean",
        "bytes" => "string:byte",
        "double" => "number:double",
        "int32" => "integer:int32",
        "int64" => "integer:int64",
        "string" => "string",
        message => {
            let entry = messages
                .get(message)
                .with_context(|| format!("no {message}"))?;
            match entry.form {
                "intOrString" => "string:int-or-string",
                "microTime" | "time" => "string:date-time",
                "quantity" => "string",
                "list" => return openapi_type(messages, &entry.rows[0].cells[2]),
                "json" | "object" | EITHER => return Ok(definition_name(message)),
                form => bail!("unknown form {form}"),
            }
        }
    };
    Ok(scalar.to_owned())
}

/// Returns Go's zero value of a scalar type, or `None` for bytes and messages.
fn zero(value: &str) -> Option<Value> {
    Some(match value {
        "bool" => false.into(),
        "double" | "int32" | "int64" => 0.into(),
        "string" => "".into(),
        _ => return None,
    })
}

/// Returns the zero value of the type of a scalar.
fn zero_of(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => zero("bool"),
        Value::Number(_) => zero("int64"),
        Value::String(_) => zero("string"),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
