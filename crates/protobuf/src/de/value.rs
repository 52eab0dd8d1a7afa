//! [`Value`]: one JSON value of a message, as bytes and type.

use super::Context;
use crate::{
    error::Error,
    scalar,
    table::{Container, Field, Form, Message, Presence, Type},
    wire::{WireError, WireFields, WireValue},
};

/// One JSON value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'de> {
    Null,
    /// A text, as bytes that may not be UTF-8.
    Text(&'de [u8]),
    Integer(i64),
    /// Another value of a type that is not a message. `None` stands for the zero value.
    Scalar(Type, Option<WireValue<'de>>),
    Message(&'static Message, &'de [u8]),
    List(Run<'de>),
    Map(Run<'de>),
}

/// The values of a list, or the entries of a map: fields with the same number that follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<'de> {
    /// Type of each value.
    pub(super) value: Type,
    /// The fields.
    pub(super) bytes: &'de [u8],
    /// Number of fields.
    pub(super) count: usize,
}

impl<'de> Value<'de> {
    /// Returns a value of this type.
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

    /// Reads the value of a field, or all values of a list or a map.
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

    /// Returns the zero value of this type.
    pub(super) fn zero(context: &Context<'de>, value_type: Type) -> Self {
        match value_type {
            Type::Message(id) => Self::Message(context.messages.get(id), &[]),
            scalar => Self::Scalar(scalar, None),
        }
    }

    /// Returns what Go writes for a field that is not in the bytes.
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

    /// Returns whether Go omits the value in a field with `omitempty` or `omitzero`. Invalid values are not
    /// omitted, so that they are reported.
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

    /// Replaces a message whose JSON is that of one of its fields by this field.
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

/// Returns the value of the last field that is sent; if none is sent, the value that Go writes for the first
/// field if this value is not null.
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
