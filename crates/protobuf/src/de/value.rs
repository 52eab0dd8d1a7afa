//! [`ItemValue`]: visits one value: that of a field, an item of a list, or the value of a map's entry.

use serde::{
    de::{self, DeserializeSeed, SeqAccess, Visitor, value::MapAccessDeserializer},
    forward_to_deserialize_any,
};

use super::{
    Context,
    field::{FieldValue, ScalarValue},
    message::{Level, MessageAccess},
};
use crate::{
    error::Error,
    scalar::{self, Scalar},
    table::{Container, Form, Message, Presence, Type},
    wire::{WireFields, WireValue},
};

/// One value of a message.
#[derive(Clone, Copy)]
pub(super) struct ItemValue<'de, 'c> {
    pub(super) context: &'c Context,
    /// Nesting of the JSON value, from 1 for the outermost object.
    pub(super) depth: usize,
    pub(super) value_type: Type,
    /// The value in the bytes; `None` stands for a zero value.
    pub(super) value: Option<WireValue<'de>>,
}

/// How a value is visited.
enum Shape<'de> {
    Scalar(Scalar<'de>),
    Object(&'static Message, &'de [u8]),
    EmptyList,
    /// One field of a message, in place of the message.
    Field(&'static Message, usize, &'de [u8]),
}

impl<'de> ItemValue<'de, '_> {
    #[inline]
    fn shape(self) -> Result<Shape<'de>, Error> {
        let Type::Message(id) = self.value_type else {
            return Ok(Shape::Scalar(match self.value {
                Some(value) => Scalar::of(self.value_type, value)?,
                None => Scalar::zero(self.value_type),
            }));
        };
        let bytes = self.value.map_or(Ok(&[][..]), WireValue::bytes)?;
        let message = self.context.messages.get(id);
        Ok(match message.form {
            Form::Object => Shape::Object(message, bytes),
            Form::List | Form::Either => match present(self.context, message, bytes)? {
                Some(at) => Shape::Field(message, at, bytes),
                None if message.form == Form::List => Shape::EmptyList,
                None => Shape::Scalar(Scalar::Null),
            },
            special => Shape::Scalar(Scalar::special(special, bytes)?),
        })
    }

    /// Whether the value is null as JSON.
    #[inline]
    pub(super) fn is_null(&self) -> Result<bool, Error> {
        let Type::Message(id) = self.value_type else {
            return Ok(false);
        };
        let bytes = self.value.map_or(Ok(&[][..]), WireValue::bytes)?;
        let message = self.context.messages.get(id);
        match message.form {
            Form::Object | Form::List => Ok(false),
            Form::Either => Ok(present(self.context, message, bytes)?.is_none()),
            special => Ok(scalar::is_null(special, bytes)?),
        }
    }
}

impl<'de> de::Deserializer<'de> for ItemValue<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape()? {
            Shape::Scalar(scalar) => scalar.visit(visitor),
            Shape::Object(message, bytes) => visitor.visit_map(MessageAccess::new(
                self.context,
                message,
                bytes,
                self.depth,
            )?),
            Shape::Field(message, at, bytes) => {
                let mut level = Level::new(message, bytes);
                let field = &message.fields[at];
                let first = level.find(field.number())?;
                let value = FieldValue {
                    context: self.context,
                    depth: self.depth,
                    field,
                    first,
                    level: &mut level,
                };
                value.deserialize_any(visitor)
            }
            Shape::EmptyList => visitor.visit_seq(Nothing),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_null()? {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.shape()? {
            Shape::Scalar(scalar) => ScalarValue(scalar).deserialize_enum(name, variants, visitor),
            Shape::Object(message, bytes) => {
                let access = MessageAccess::new(self.context, message, bytes, self.depth)?;
                MapAccessDeserializer::new(access).deserialize_enum(name, variants, visitor)
            }
            Shape::Field(..) | Shape::EmptyList => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier
    }
}

/// Returns the position of the last field that is sent, or of the first field if Go writes a value for it that is not null.
/// Returns `None` if the value of the message is null.
///
/// These messages are rare, so the order of their fields is checked in a pass of its own.
fn present(
    context: &Context,
    message: &'static Message,
    bytes: &[u8],
) -> Result<Option<usize>, Error> {
    let mut last = None;
    let mut is_adjacent = true;
    for field in WireFields::new(bytes) {
        let (number, _) = field?;
        let Some(at) = message.position(number) else {
            is_adjacent = false;
            continue;
        };
        let is_next_item =
            last == Some(at) && is_adjacent && message.fields[at].container == Container::List;
        if last.is_some_and(|last| at <= last) && !is_next_item {
            return Err(context.unordered().into());
        }
        (last, is_adjacent) = (Some(at), true);
    }
    let first = message.fields.first();
    let first = first
        .filter(|field| field.presence == Presence::Always && field.container == Container::One);
    Ok(last.or(first.map(|_| 0)))
}

/// A list without items.
struct Nothing;

impl<'de> SeqAccess<'de> for Nothing {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        _: S,
    ) -> Result<Option<S::Value>, Error> {
        Ok(None)
    }
}
