//! Splits a protobuf message into [`Value`]s, each of which corresponds to one JSON value.
//!
//! Guarantees: nested messages, list items and map entries are not read before a visitor requests them. The
//! module does not check whether strings are valid UTF-8.

use super::Context;
use crate::{
    error::Error,
    scalar,
    table::{Container, Field, Form, Message, Presence, Type},
    wire::{WireError, WireFields, WireValue},
};

/// A value in a protobuf message that corresponds to one JSON value. Nested values stay encoded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'de> {
    Null,
    /// A string, which may be invalid UTF-8.
    Text(&'de [u8]),
    Integer(i64),
    /// A boolean, a floating-point number or bytes. `None` is the zero value of the type.
    ///
    /// Integers and strings have their own variants, except in two cases: the zero value of a missing field,
    /// and a value with a wrong wire type. A wrong wire type is reported when a visitor requests the value.
    Scalar(Type, Option<WireValue<'de>>),
    Message(&'static Message, &'de [u8]),
    List(Run<'de>),
    Map(Run<'de>),
}

/// All items of a list or entries of a map: consecutive fields with the same number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'de> {
    /// Type of each item, or of the value of each entry.
    pub(super) value: Type,
    /// The fields with their tags.
    pub(super) bytes: &'de [u8],
    /// Number of fields.
    pub(super) count: usize,
}

impl<'de> Value<'de> {
    /// Converts a wire value to a `Value` of the type `value_type`.
    #[inline]
    pub(super) fn item(
        context: &Context<'de>,
        value_type: Type,
        value: WireValue<'de>,
    ) -> Result<Self, WireError> {
        Ok(match (value_type, value) {
            (Type::Text, WireValue::Bytes(bytes)) => Self::Text(bytes),
            (Type::Message(id), value) => Self::Message(context.messages.get(id), value.bytes()?),
            (Type::Int32, WireValue::Varint(number)) => Self::Integer(scalar::int32(number).into()),
            (Type::Int64, WireValue::Varint(number)) => Self::Integer(number.cast_signed()),
            (scalar, value) => Self::Scalar(scalar, Some(value)),
        })
    }

    /// Reads the value of `field`, which must be the next field. If it is a list or a map, reads all its
    /// items or entries.
    pub(super) fn read(
        context: &Context<'de>,
        field: &Field,
        fields: &mut WireFields<'de>,
    ) -> Result<Self, WireError> {
        let start = fields.clone();
        let Some(first) = fields.next().transpose()? else {
            return Ok(Self::missing(context, field));
        };
        if field.container == Container::One {
            return Self::item(context, field.value, first.1);
        }
        let mut count = 1;
        let mut behind = fields.clone();
        while let Some(Ok((number, _))) = behind.next()
            && number == field.number()
        {
            *fields = behind.clone();
            count += 1;
        }
        let run = Run {
            value: field.value,
            bytes: start.until(fields),
            count,
        };
        Ok(match field.container {
            Container::Map => Self::Map(run),
            _ => Self::List(run),
        })
    }

    /// Returns the zero value of `value_type`. The zero value of a message is the message without fields.
    pub(super) fn zero(context: &Context<'de>, value_type: Type) -> Self {
        match value_type {
            Type::Message(id) => Self::Message(context.messages.get(id), &[]),
            scalar => Self::Scalar(scalar, None),
        }
    }

    /// Returns the value that Go writes as JSON for an absent field.
    pub(super) fn missing(context: &Context<'de>, field: &Field) -> Self {
        let is_null = field.presence == Presence::Nullable
            // Go's nil slices and maps.
            || field.container != Container::One
            || field.value == Type::Bytes;
        if is_null {
            Self::Null
        } else {
            Self::zero(context, field.value)
        }
    }

    /// Returns whether Go omits this value with `omitempty` or `omitzero`.
    ///
    /// Returns false for an invalid value, so that its error is reported.
    #[inline]
    pub(super) fn is_omitted(&self) -> bool {
        match *self {
            Self::Integer(number) => number == 0,
            Self::Text(bytes) | Self::Scalar(Type::Bytes, Some(WireValue::Bytes(bytes))) => {
                bytes.is_empty()
            }
            Self::Scalar(Type::Bool, Some(WireValue::Varint(number))) => number == 0,
            Self::Scalar(Type::Double, Some(WireValue::Fixed64(bits))) => {
                f64::from_bits(bits) == 0.0
            }
            Self::Message(message, bytes) => match message.form {
                Form::Object | Form::List | Form::Either => false,
                special => scalar::is_null(special, bytes).unwrap_or(false),
            },
            _ => false,
        }
    }

    /// Returns whether the value is null as JSON.
    #[inline]
    pub(super) fn is_null(&self, context: &Context<'de>) -> Result<bool, Error> {
        match *self {
            Self::Null => Ok(true),
            Self::Message(message, bytes) => match message.form {
                Form::Object | Form::List => Ok(false),
                Form::Either => Ok(matches!(self.resolved(context)?, Self::Null)),
                special => Ok(scalar::is_null(special, bytes)?),
            },
            _ => Ok(false),
        }
    }

    /// Replaces a [`Form::List`] or [`Form::Either`] message with the value that represents it in JSON.
    #[inline]
    pub(super) fn resolved(self, context: &Context<'de>) -> Result<Self, Error> {
        match self {
            Self::Message(message, bytes) if matches!(message.form, Form::List | Form::Either) => {
                let field = only_field(message, bytes, context)?;
                Ok(field.unwrap_or(match message.form {
                    Form::List => Self::List(Run {
                        value: Type::Text,
                        bytes: &[],
                        count: 0,
                    }),
                    _ => Self::Null,
                }))
            }
            other => Ok(other),
        }
    }
}

/// Returns the value that represents a [`Form::List`] or [`Form::Either`] message in JSON.
///
/// This is the value of the last field in `bytes` that `message` defines. Without such a field, returns the
/// zero value of the message's first field, if this field is a single value that Go always writes. An example
/// is the boolean in `JSONSchemaPropsOrBool`. Otherwise, returns `None`.
///
/// # Errors
///
/// Returns an error if `bytes` is not valid protobuf, or if the known fields are not in the order of
/// `message.fields`.
fn only_field<'de>(
    message: &'static Message,
    bytes: &'de [u8],
    context: &Context<'de>,
) -> Result<Option<Value<'de>>, Error> {
    let mut fields = WireFields::new(bytes);
    let mut last = None;
    loop {
        let start = fields.clone();
        let Some((number, _)) = fields.next().transpose()? else {
            break;
        };
        let Some(at) = message.position(number) else {
            continue;
        };
        if last.is_some_and(|(last, _)| at <= last) {
            return Err(context.unordered().into());
        }
        fields = start;
        let value = Value::read(context, &message.fields[at], &mut fields)?;
        last = Some((at, value));
    }
    let first = message.fields.first();
    let first = first
        .filter(|field| field.presence == Presence::Always && field.container == Container::One);
    let value = last.map(|(_, value)| value);
    Ok(value.or_else(|| first.map(|field| Value::missing(context, field))))
}
