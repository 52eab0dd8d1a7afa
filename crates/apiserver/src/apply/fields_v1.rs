//! Reads and writes sets of paths as `fieldsV1` of `metadata.managedFields`.
//!
//! The names of the members are the texts that Kubernetes writes. The members of the returned object have the order
//! of their names, as in custom objects of Kubernetes; in objects of built-in kinds, Kubernetes writes the order of
//! the paths.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

use super::path::{PathElement, float};
use super::planted::{self, Bug};
use super::set::{Node, Set};
use crate::go_json::float_text;

/// Returns a set as the value of `fieldsV1`.
pub(super) fn to_value(set: &Set) -> Value {
    Value::Object(set.nodes().map(member).collect())
}

fn member((step, node): (&PathElement, &Node)) -> (String, Value) {
    let mut members = Map::new();
    if !node.below.is_empty() {
        if node.is_member {
            members.insert(".".to_owned(), Value::Object(Map::new()));
        }
        members.extend(node.below.nodes().map(member));
    }
    (step_text(step), Value::Object(members))
}

/// Reads the value of `fieldsV1`.
///
/// Steps of an unknown kind are ignored, with everything below them.
///
/// # Errors
///
/// Returns an error if a step can't be parsed, or a value is no object.
pub(super) fn from_value(fields: &Value) -> Result<Set, String> {
    read(fields).map(|node| node.below)
}

fn read(fields: &Value) -> Result<Node, String> {
    let members = match fields {
        Value::Null => return Ok(Node::leaf()),
        Value::Object(members) => members,
        _ => return Err("expect { or n, but found another value".to_owned()),
    };
    let mut node = Node::default();
    for (name, value) in members {
        if name == "." {
            node.is_member = true;
        } else if let Some(step) = parse_step(name)? {
            node.below.insert(step, read(value)?);
        }
    }
    node.is_member |= node.below.is_empty();
    Ok(node)
}

/// Parses a step, such as `f:name`. Returns `None` if its kind is unknown.
fn parse_step(text: &str) -> Result<Option<PathElement>, String> {
    if text.len() < 2 {
        return Err("key must be 2 characters long:".to_owned());
    }
    if text.as_bytes()[1] != b':' {
        return Err(format!("missing colon: {text}"));
    }
    let content = &text[2..];
    Ok(Some(match text.as_bytes()[0] {
        b'f' => PathElement::field(content),
        b'v' => PathElement::Value(parse_value(content)?.into()),
        b'k' => match parse_value(content)? {
            Value::Object(members) => {
                let members = members.into_iter();
                PathElement::key(members.map(|(name, value)| (name.into(), value)).collect())
            }
            _ => return Err(format!("no object: {text}")),
        },
        b'i' => match content.parse() {
            Ok(index) => PathElement::Index(index),
            Err(_) => return Err(format!("parsing \"{content}\": invalid syntax")),
        },
        _ => return Ok(None),
    }))
}

fn parse_value(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(with_floats(value))
}

/// Converts all numbers to floating-point numbers, as Kubernetes reads them here.
fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            Number::from_f64(float(&number)).map_or(Value::Null, Value::Number)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_floats).collect()),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(name, value)| (name, with_floats(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

/// Returns a step as the name of a member.
fn step_text(step: &PathElement) -> String {
    let mut text = String::new();
    match step {
        PathElement::Field(name) => {
            text.push_str("f:");
            text.push_str(name);
        }
        PathElement::Key(members) => {
            text.push_str("k:{");
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_text(&mut text, name, false);
                text.push(':');
                write_value(&mut text, value);
            }
            text.push('}');
        }
        PathElement::Value(value) => {
            text.push_str("v:");
            write_value(&mut text, value);
        }
        PathElement::Index(index) => {
            write!(text, "i:{index}").expect("writing to a String does not fail");
        }
        PathElement::Unidentified => {}
    }
    text
}

/// Writes a value as the package `jsoniter` does, which differs from `encoding/json` in rare characters and exponents.
fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => write!(out, "{integer}").expect("writing to a String does not fail"),
            None => out.push_str(&exponent_of_two_digits(float_text(float(number)))),
        },
        Value::String(text) => write_text(out, text, true),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(out, name, true);
                out.push(':');
                write_value(out, value);
            }
            out.push('}');
        }
    }
}

/// Returns a number with an exponent of at least two digits: `1e-07` instead of `1e-7`.
fn exponent_of_two_digits(text: String) -> String {
    match text.rsplit_once("e-") {
        Some((digits, exponent)) if exponent.len() == 1 => format!("{digits}e-0{exponent}"),
        _ => text,
    }
}

/// Writes a text in quotes. `is_html` tells whether characters with a meaning in HTML are escaped.
fn write_text(out: &mut String, text: &str, is_html: bool) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => escape(out, letter),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if is_html && !planted::has(Bug::Html) => {
                escape(out, letter);
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

fn escape(out: &mut String, letter: char) {
    write!(out, "\\u{:04x}", u32::from(letter)).expect("writing to a String does not fail");
}
