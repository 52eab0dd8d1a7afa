//! Encodes JSON objects of built-in kinds as protobuf.
//!
//! Guarantees:
//! - The bytes are those that Go's encoder writes for the same object, including empty fields.
//! - A JSON member that has no field in the protobuf message is an error.
//! - [`ordered_json`] writes the members of an object in the order in which Go writes them.
//!
//! This module writes no envelope (`runtime.Unknown`). The module `framing` writes the envelope.

mod table;
mod value;

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

pub(crate) use table::Messages;
use table::{Container, Field, Form, Message, Type};

/// The magic number that Kubernetes writes at the start of each protobuf envelope.
pub(crate) const MAGIC: [u8; 4] = *b"k8s\0";

/// Protobuf wire type of a value that follows its length.
const LENGTH_DELIMITED: u32 = 2;

/// Returns the length in bytes of `number` as a protobuf varint.
pub(crate) fn varint_len(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Returns the length in bytes of a field's tag, length prefix and value, if the value has `len` bytes.
///
/// The field number must be below 16.
pub(crate) fn field_len(len: usize) -> usize {
    1 + varint_len(len as u64) + len
}

/// Appends `number` to `out` as a protobuf varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Appends the tag of the field `number` and the length prefix of its value to `out`.
pub(crate) fn put_head(out: &mut Vec<u8>, number: u32, len: usize) {
    put_varint(out, u64::from(number << 3 | LENGTH_DELIMITED));
    put_varint(out, len as u64);
}

/// Appends the field `number` of type `bytes` or `string` to `out`.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_head(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

/// Appends the field `number` with a varint value to `out`.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number << 3));
    put_varint(out, value);
}

/// Encodes `object` as a protobuf message of `kind`, such as `v1/Pod` or `apps/v1/Deployment`.
///
/// # Errors
///
/// Returns an error if `kind` is not built-in or a member of `object` does not match its field.
pub(crate) fn encode(messages: &Messages, kind: &str, object: &Value) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.retain(|name, _| name != "apiVersion" && name != "kind");
    }
    let message = messages.of_kind(kind)?;
    put_message(messages, message, &object, &mut out)
        .with_context(|| format!("{kind} as protobuf"))?;
    Ok(out)
}

fn put_message(
    messages: &Messages,
    message: &Message,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<()> {
    match message.form {
        Form::Object => {
            check_members(messages, message, value)?;
            put_members(messages, message, value, out)
        }
        Form::List => match &message.fields[..] {
            [field] => put_field(messages, field, Some(value), out),
            _ => bail!("a list has one field"),
        },
        special => value::put_special(special, value, out),
    }
}

fn put_members(
    messages: &Messages,
    message: &Message,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<()> {
    for field in &message.fields {
        if let (true, Type::Message(id)) = (field.is_inline, field.value) {
            let mut inner = Vec::new();
            put_members(messages, messages.get(id)?, value, &mut inner)?;
            put_bytes(out, field.number, &inner);
        } else {
            let member = value.get(field.name).filter(|member| !member.is_null());
            put_field(messages, field, member, out).with_context(|| field.name.to_owned())?;
        }
    }
    Ok(())
}

fn put_field(
    messages: &Messages,
    field: &Field,
    value: Option<&Value>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match (field.container, value) {
        (Container::One, Some(value)) => put_value(messages, field.number, field.value, value, out),
        (Container::One, None) if field.is_pointer => Ok(()),
        (Container::One, None) => value::put_absent(messages, field, out),
        (_, None) => Ok(()),
        (Container::List, Some(items)) => {
            for item in items.as_array().context("not a list")? {
                put_value(messages, field.number, field.value, item, out)?;
            }
            Ok(())
        }
        (Container::Map, Some(entries)) => {
            for (key, value) in entries.as_object().context("not a map")? {
                let mut entry = Vec::new();
                put_bytes(&mut entry, 1, key.as_bytes());
                put_value(messages, 2, field.value, value, &mut entry)?;
                put_bytes(out, field.number, &entry);
            }
            Ok(())
        }
    }
}

fn put_value(
    messages: &Messages,
    number: u32,
    value_type: Type,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Type::Message(id) = value_type else {
        return value::put_scalar(number, value_type, value, out);
    };
    let mut inner = Vec::new();
    put_message(messages, messages.get(id)?, value, &mut inner)?;
    put_bytes(out, number, &inner);
    Ok(())
}

/// Checks that every member of the JSON object `value` is a field of `message`.
///
/// # Errors
///
/// Returns an error if a member has no field, or if `value` is not an object.
fn check_members(messages: &Messages, message: &Message, value: &Value) -> Result<()> {
    let members = value.as_object().context("not an object")?;
    for name in members.keys() {
        if !has_member(messages, message, name)? {
            bail!("there is no field for {name:?}");
        }
    }
    Ok(())
}

fn has_member(messages: &Messages, message: &Message, name: &str) -> Result<bool> {
    for field in &message.fields {
        let found = match field.value {
            Type::Message(id) if field.is_inline => has_member(messages, messages.get(id)?, name)?,
            _ => field.name == name,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the JSON of `object` in Go's member order.
///
/// The result lacks the first `{` and the members `apiVersion` and `kind`.
///
/// The format of the parameter `kind` is `apiVersion/Kind`.
///
/// # Errors
///
/// Returns an error if the kind is not built-in.
pub(crate) fn ordered_json(messages: &Messages, kind: &str, object: &Value) -> Result<String> {
    let mut out = String::new();
    let message = messages.of_kind(kind)?;
    write_members(messages, message, object, &mut out)?;
    out.push('}');
    Ok(out)
}

fn write_members(
    messages: &Messages,
    message: &Message,
    value: &Value,
    out: &mut String,
) -> Result<()> {
    for field in message.in_json() {
        if let (true, Type::Message(id)) = (field.is_inline, field.value) {
            write_members(messages, messages.get(id)?, value, out)?;
        } else if let Some(member) = value.get(field.name) {
            if !(out.is_empty() || out.ends_with('{')) {
                out.push(',');
            }
            write!(out, "\"{}\":", field.name)?;
            write_container(messages, field, member, out)?;
        }
    }
    Ok(())
}

fn write_container(
    messages: &Messages,
    field: &Field,
    value: &Value,
    out: &mut String,
) -> Result<()> {
    match (field.container, value) {
        (Container::List, Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write_value(messages, field.value, item, out)?;
            }
            out.push(']');
        }
        // In all kinds of a corpus, values of maps are scalars in JSON. Maps are sorted by key, as in Go.
        (Container::Map, value) => write!(out, "{value}")?,
        (_, value) => write_value(messages, field.value, value, out)?,
    }
    Ok(())
}

fn write_value(
    messages: &Messages,
    value_type: Type,
    value: &Value,
    out: &mut String,
) -> Result<()> {
    if let Type::Message(id) = value_type {
        let message = messages.get(id)?;
        if message.form == Form::Object && value.is_object() {
            out.push('{');
            write_members(messages, message, value, out)?;
            out.push('}');
            return Ok(());
        }
    }
    write!(out, "{value}")?;
    Ok(())
}

#[cfg(test)]
mod tests;
