//! Encodes JSON objects of built-in kinds as protobuf.
//!
//! Guarantees:
//! - The bytes are those that Go's encoder writes for the same object, including empty fields.
//! - A JSON member that has no field in the protobuf message is an error.
//! - [`ordered_json`] writes the members of an object in the order in which Go writes them.
//!
//! The module `framing` writes the envelope (`runtime.Unknown`).

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use kube_informer_protobuf::{
    Container, Envelope, Field, Form, Message, MessageId, Messages, Type,
};
use serde_json::Value;

/// The magic number that Kubernetes writes at the start of each protobuf envelope.
pub(crate) const MAGIC: [u8; 4] = Envelope::MAGIC;

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

/// Objects whose JSON members Go does not write in the order of field numbers.
///
/// Each entry contains the name of the field with such an object, and the members that Go writes first.
const REORDERED: [(&str, &[&str]); 3] = [
    ("ownerReferences", &["apiVersion", "kind", "name", "uid"]),
    ("conditions", &["type", "observedGeneration"]),
    (
        "status",
        &[
            "observedGeneration",
            "phase",
            "conditions",
            "message",
            "reason",
            "nominatedNodeName",
            "hostIP",
            "hostIPs",
            "podIP",
            "podIPs",
            "startTime",
            "initContainerStatuses",
            "containerStatuses",
            "qosClass",
        ],
    ),
];

/// Encodes `object` as a protobuf message of `kind`, such as `v1/Pod` or `apps/v1/Deployment`.
///
/// Ignores the members `apiVersion` and `kind`, because they are part of the envelope.
///
/// # Errors
///
/// Returns an error if `kind` is not built-in, or if a member of `object` has no field or a value that does
/// not fit.
pub(crate) fn encode(kind: &str, object: &Value) -> Result<Vec<u8>> {
    kube_informer_protobuf::encode(message_of(kind)?, object)
        .with_context(|| format!("{kind} as protobuf"))
}

fn message_of(kind: &str) -> Result<MessageId> {
    let (api_version, name) = kind.rsplit_once('/').context("apiVersion/Kind")?;
    let message = Messages::v1_36().of_kind(api_version, name);
    message.with_context(|| format!("{kind} is not built-in"))
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
pub(crate) fn ordered_json(kind: &str, object: &Value) -> Result<String> {
    let mut out = String::new();
    write_members(
        "",
        Messages::v1_36().get(message_of(kind)?),
        object,
        &mut out,
    )?;
    out.push('}');
    Ok(out)
}

/// Returns the fields of a message in the order in which Go writes them to JSON.
///
/// `parent` is the name of the field that contains the message, or empty for a whole object. If [`REORDERED`]
/// contains this name, the fields in that entry come first. All other fields have the order of their numbers.
fn in_json(parent: &str, message: &'static Message) -> impl Iterator<Item = &'static Field> {
    let first = REORDERED.iter().find(|(name, _)| *name == parent);
    let first = first.map_or(&[][..], |(_, first)| first);
    let named = move |name: &&'static str| message.fields.iter().find(|field| field.name == *name);
    let others = message
        .fields
        .iter()
        .filter(|field| !first.contains(&field.name));
    first.iter().filter_map(named).chain(others)
}

fn write_members(
    parent: &str,
    message: &'static Message,
    value: &Value,
    out: &mut String,
) -> Result<()> {
    for field in in_json(parent, message) {
        if let (true, Type::Message(id)) = (field.is_inline(), field.value) {
            write_members(parent, Messages::v1_36().get(id), value, out)?;
        } else if let Some(member) = value.get(field.name) {
            if !(out.is_empty() || out.ends_with('{')) {
                out.push(',');
            }
            write!(out, "\"{}\":", field.name)?;
            write_container(field, member, out)?;
        }
    }
    Ok(())
}

fn write_container(field: &Field, value: &Value, out: &mut String) -> Result<()> {
    match (field.container, value) {
        (Container::List, Value::Array(items)) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write_value(field, item, out)?;
            }
            out.push(']');
        }
        // In all kinds of a corpus, values of maps are scalars in JSON. Maps are sorted by key, as in Go.
        (Container::Map, value) => write!(out, "{value}")?,
        (_, value) => write_value(field, value, out)?,
    }
    Ok(())
}

fn write_value(field: &Field, value: &Value, out: &mut String) -> Result<()> {
    if let Type::Message(id) = field.value {
        let message = Messages::v1_36().get(id);
        if message.form == Form::Object && value.is_object() {
            out.push('{');
            write_members(field.name, message, value, out)?;
            out.push('}');
            return Ok(());
        }
    }
    write!(out, "{value}")?;
    Ok(())
}

#[cfg(test)]
mod tests;
