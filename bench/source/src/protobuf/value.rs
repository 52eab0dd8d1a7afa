//! Encodes two groups of values as protobuf: scalar values, and messages with a special JSON representation,
//! such as times and quantities.
//!
//! Guarantees: a time with a fraction of a second is an error, because a `metav1.Time` has no fraction. The
//! module does not encode a `metav1.MicroTime`.
//!
//! This module does not encode messages that are JSON objects. The parent module encodes them.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use super::table::{Field, Form, Messages, Type};
use super::{put_bytes, put_members, put_number};

/// Appends the scalar field `number` to `out`.
///
/// # Errors
/// Returns an error if `value` does not have the type `value_type`, or the type is not supported.
pub(super) fn put_scalar(
    number: u32,
    value_type: Type,
    value: &Value,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value_type {
        Type::Bool => put_number(out, number, value.as_bool().context("not a bool")?.into()),
        Type::Integer => {
            let integer = value.as_i64().context("not an integer")?;
            put_number(out, number, integer.cast_unsigned());
        }
        Type::Text => put_bytes(out, number, text(value)?.as_bytes()),
        Type::Bytes => put_bytes(out, number, &STANDARD.decode(text(value)?)?),
        Type::Double | Type::Message(_) => bail!("unsupported scalar type"),
    }
    Ok(())
}

/// Appends to `out` the bytes that Go writes for a field that is absent in JSON.
///
/// The field must not be a pointer in Go, because Go omits a pointer that is nil.
///
/// # Errors
/// Returns an error if the type of the field is not supported, such as a quantity.
pub(super) fn put_absent(messages: &Messages, field: &Field, out: &mut Vec<u8>) -> Result<()> {
    match field.value {
        Type::Bool | Type::Integer => put_number(out, field.number, 0),
        Type::Text => put_bytes(out, field.number, &[]),
        // A nil slice.
        Type::Bytes => {}
        Type::Double => bail!("unsupported scalar type"),
        Type::Message(name) => {
            let message = messages.get(name)?;
            let mut inner = Vec::new();
            match message.form {
                Form::Object => put_members(messages, message, &Value::Null, &mut inner)?,
                // In Go, a zero time is a message without fields.
                Form::Time | Form::List => {}
                _ => bail!("{name} must be present"),
            }
            put_bytes(out, field.number, &inner);
        }
    }
    Ok(())
}

/// Appends to `out` a message that has a special JSON representation, such as a time.
///
/// # Errors
/// Returns an error if `value` does not have the JSON representation `form`, or if `form` is not supported.
pub(super) fn put_special(form: Form, value: &Value, out: &mut Vec<u8>) -> Result<()> {
    match (form, value) {
        (Form::Json, value) => put_bytes(out, 1, value.to_string().as_bytes()),
        (Form::Quantity, value) => put_bytes(out, 1, text(value)?.as_bytes()),
        (Form::Time, value) => {
            let time: Timestamp = text(value)?.parse()?;
            if time.subsec_nanosecond() != 0 {
                bail!("{time}: times in Kubernetes have no fractions of a second");
            }
            put_number(out, 1, time.as_second().cast_unsigned());
            put_number(out, 2, 0);
        }
        (Form::IntOrString, Value::String(text)) => {
            put_number(out, 1, 1);
            put_number(out, 2, 0);
            put_bytes(out, 3, text.as_bytes());
        }
        (Form::IntOrString, value) => {
            let integer = value.as_i64().context("neither an integer nor a string")?;
            put_number(out, 1, 0);
            put_number(out, 2, integer.cast_unsigned());
            put_bytes(out, 3, &[]);
        }
        _ => bail!("unsupported form of a message"),
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().context("not a string")
}
