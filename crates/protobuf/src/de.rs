//! [`Deserializer`]: a serde deserializer over the bytes of a message.
//!
//! Guarantees:
//! - the visited value equals the JSON that Go writes for the same object, including omitted, null and zero
//!   fields;
//! - fields that are not in the table are skipped, as a server of that version does;
//! - the depth and the number of visited values are limited by [`Options`], also for small inputs;
//! - an error contains the field's path in JSON.

/// Forwards the methods that request one kind of value to methods of the deserializer.
///
/// A method that visits every kind of value is compiled for each visitor, and is too large to be inlined.
macro_rules! by_kind {
    () => {
        by_kind! { @scalar
            deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
            deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
            deserialize_byte_buf deserialize_identifier
        }
    };
    (@scalar $($name:ident)*) => {
        $(
            #[inline]
            fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
                self.scalar(visitor)
            }
        )*

        #[inline]
        fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.list(visitor)
        }

        #[inline]
        fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.object(visitor)
        }

        #[inline]
        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            _: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Error> {
            self.object(visitor)
        }

        #[inline]
        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            visitor: V,
        ) -> Result<V::Value, Error> {
            visitor.visit_newtype_struct(self)
        }
    };
}

mod level;
mod value;
mod field;
mod message;

use std::cell::Cell;

use serde::{
    de::{
        self, DeserializeSeed, Deserializer as _, SeqAccess, Visitor, value::MapAccessDeserializer,
    },
    forward_to_deserialize_any,
};

use crate::{
    error::{Error, Reason},
    order::sorted,
    scalar::{self, Scalar},
    table::{Container, Form, Message, MessageId, Messages, Presence},
    wire::WireFields,
};
use field::FieldValue;
use level::Level;
use message::MessageAccess;
use value::ScalarValue;

/// How a message is decoded, and the limits on what it may produce.
///
/// An empty message has two bytes and may result in a dozen members, so the length of the bytes alone limits
/// little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum nesting of JSON objects and lists, including the outermost. JSON that a message contains as
    /// bytes is counted on its own.
    pub depth: usize,
    /// Maximum number of JSON objects and lists.
    pub containers: usize,
    /// Maximum number of JSON values.
    pub values: usize,
    /// What is visited for a field that the message does not contain.
    pub missing: Missing,
}

/// What is visited for a field that a message does not contain, and that Go writes as JSON in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The zero value or null, as Go's types of this version write them.
    Zero,
    /// Nothing, as for a message of a version that does not have the field.
    Nothing,
}

/// Decodes a message.
///
/// # Errors
/// The bytes are not such a message, exceed the limits, or do not fit the type.
pub fn decode<T: de::DeserializeOwned>(
    message: MessageId,
    bytes: &[u8],
    options: Options,
) -> Result<T, Error> {
    decode_with(message, bytes, options, |deserializer| {
        T::deserialize(deserializer)
    })
}

/// Passes a deserializer of a message to a function, and returns what the function returns.
///
/// Kubernetes writes the fields of a message in the order of their numbers. If these bytes have another order,
/// the function is called a second time, with sorted bytes, and the result of the first call is dropped.
///
/// # Errors
/// The errors of the function, and those of bytes that are not a message.
pub fn decode_with<R>(
    message: MessageId,
    bytes: &[u8],
    options: Options,
    mut read: impl FnMut(Deserializer<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let context = Context::new(options);
    let result = read(Deserializer::new(&context, message, bytes, 1));
    let is_unordered = context.is_unordered.get();
    if result.is_ok() && !is_unordered {
        return result;
    }
    // Another error can be a consequence of the order too: a field that comes later seems to be missing.
    match sorted(context.messages, context.messages.get(message), bytes) {
        Ok(sorted) if is_unordered || sorted != bytes => {
            let context = Context::new(options);
            read(Deserializer::new(&context, message, &sorted, 1))
        }
        Err(reason) if is_unordered => Err(reason.into()),
        Ok(_) | Err(_) => result,
    }
}

/// State that all deserializers of one message share.
#[derive(Debug)]
struct Context {
    messages: &'static Messages,
    containers_left: Cell<usize>,
    values_left: Cell<usize>,
    options: Options,
    /// Whether a field appeared behind one with a greater number, or a second time.
    is_unordered: Cell<bool>,
}

impl Context {
    fn new(options: Options) -> Self {
        Self {
            messages: Messages::builtin(),
            containers_left: Cell::new(options.containers),
            values_left: Cell::new(options.values),
            options,
            is_unordered: Cell::new(false),
        }
    }

    /// Counts one JSON value.
    #[inline]
    fn count(&self) -> Result<(), Reason> {
        take_one(&self.values_left, self.options.values, "values")
    }

    /// Counts one JSON object or list.
    #[inline]
    fn count_container(&self) -> Result<(), Reason> {
        take_one(
            &self.containers_left,
            self.options.containers,
            "arrays and maps",
        )
    }

    fn unordered(&self) -> Reason {
        self.is_unordered.set(true);
        Reason::new("the fields are not in the order of their numbers")
    }
}

#[inline]
fn take_one(left: &Cell<usize>, max: usize, what: &str) -> Result<(), Reason> {
    match left.get().checked_sub(1) {
        Some(rest) => {
            left.set(rest);
            Ok(())
        }
        None => Err(Reason::new(format!("more than {max} {what}"))),
    }
}

/// A serde deserializer over the bytes of one message.
#[derive(Clone, Copy, Debug)]
pub struct Deserializer<'de, 'c> {
    context: &'c Context,
    message: &'static Message,
    bytes: &'de [u8],
    /// Nesting of the JSON value, from 1 for the outermost object.
    depth: usize,
    type_meta: Option<(&'de str, &'de str)>,
}

/// How a message is visited.
enum Shape<'de> {
    Object,
    /// The value of one field, at this position in the table.
    Field(usize),
    EmptyList,
    Scalar(Scalar<'de>),
}

impl<'de, 'c> Deserializer<'de, 'c> {
    fn new(context: &'c Context, message: MessageId, bytes: &'de [u8], depth: usize) -> Self {
        Self {
            context,
            message: context.messages.get(message),
            bytes,
            depth,
            type_meta: None,
        }
    }

    /// Also visits the fields `apiVersion` and `kind`, which are not part of a message.
    #[must_use]
    pub fn with_type_meta(mut self, api_version: &'de str, kind: &'de str) -> Self {
        self.type_meta = Some((api_version, kind));
        self
    }

    #[inline]
    fn shape(self) -> Result<Shape<'de>, Error> {
        Ok(match self.message.form {
            Form::Object => Shape::Object,
            Form::List | Form::Either => match self.present()? {
                Some(at) => Shape::Field(at),
                None if self.message.form == Form::List => Shape::EmptyList,
                None => Shape::Scalar(Scalar::Null),
            },
            special => Shape::Scalar(Scalar::special(special, self.bytes)?),
        })
    }

    /// Returns whether the message is null as JSON.
    #[inline]
    fn is_null(self) -> Result<bool, Error> {
        match self.message.form {
            Form::Object | Form::List => Ok(false),
            Form::Either => Ok(self.present()?.is_none()),
            special => Ok(scalar::is_null(special, self.bytes)?),
        }
    }

    /// Returns the position of the last field that is sent; if none is sent, the position of the first field if
    /// Go writes a value for it that is not null.
    ///
    /// Only messages that are one field in JSON need this. They are rare, so the order of their fields is
    /// checked in a pass of its own.
    fn present(self) -> Result<Option<usize>, Error> {
        let message = self.message;
        let mut last = None;
        let mut is_adjacent = true;
        for field in WireFields::new(self.bytes) {
            let (number, _) = field?;
            let Some(at) = message.position(number) else {
                is_adjacent = false;
                continue;
            };
            let is_next_item =
                last == Some(at) && is_adjacent && message.fields[at].container == Container::List;
            if last.is_some_and(|last| at <= last) && !is_next_item {
                return Err(self.context.unordered().into());
            }
            (last, is_adjacent) = (Some(at), true);
        }
        let first = message.fields.first();
        let first = first.filter(|field| {
            field.presence == Presence::Always && field.container == Container::One
        });
        Ok(last.or(first.map(|_| 0)))
    }

    #[inline]
    fn members(self) -> Result<MessageAccess<'de, 'c>, Reason> {
        let (context, message) = (self.context, self.message);
        MessageAccess::new(context, message, self.bytes, self.depth, self.type_meta)
    }
}

impl<'de> Deserializer<'de, '_> {
    /// Visits a message that is one JSON value.
    #[inline]
    fn scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.message.form {
            Form::Object | Form::List | Form::Either => self.deserialize_any(visitor),
            special => Scalar::special(special, self.bytes)?.visit(visitor),
        }
    }

    /// Visits a message that is a JSON object.
    #[inline]
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.message.form {
            Form::Object => visitor.visit_map(self.members()?),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Visits a message that is a JSON list.
    #[inline]
    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_any(visitor)
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'de, '_> {
    type Error = Error;

    #[inline(never)]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.shape()? {
            Shape::Object => visitor.visit_map(self.members()?),
            Shape::Scalar(scalar) => scalar.visit(visitor),
            Shape::EmptyList => visitor.visit_seq(NoItems),
            Shape::Field(at) => {
                let mut level = Level::new(self.message, self.bytes);
                let field = &self.message.fields[at];
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

    by_kind! {}

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.shape()? {
            Shape::Object => {
                let members = MapAccessDeserializer::new(self.members()?);
                members.deserialize_enum(name, variants, visitor)
            }
            Shape::Scalar(scalar) => ScalarValue(scalar).deserialize_enum(name, variants, visitor),
            Shape::Field(_) | Shape::EmptyList => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        unit unit_struct tuple tuple_struct ignored_any
    }
}

/// A list without items.
struct NoItems;

impl<'de> SeqAccess<'de> for NoItems {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        _: S,
    ) -> Result<Option<S::Value>, Error> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
