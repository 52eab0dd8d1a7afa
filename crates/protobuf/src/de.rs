//! Decodes the bytes of a protobuf message with [`Deserializer`], a serde deserializer.
//!
//! Guarantees:
//! - with [`Missing::Zero`], a type receives the same values as from the JSON that Go writes for the object;
//! - a field that the table of messages does not contain is skipped, as a server of the table's Kubernetes
//!   version does;
//! - [`Options`] limits the depth and the number of values, because a few bytes can result in many values;
//! - an error contains the JSON path of the field that failed.
//!
//! Does not check the kind of the object, which is part of the [`Envelope`](crate::Envelope).

/// Implements `deserialize_bool`, `deserialize_seq`, `deserialize_map` and similar methods
/// of a deserializer.
///
/// The methods call `scalar`, `list` or `object` of the deserializer, which handle only one kind of
/// value. `deserialize_any` handles all kinds of values. It is too large to be inlined into the code
/// of each visitor.
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

/// The limits for decoding a message, and the treatment of fields that the message does not contain.
///
/// A nested message without fields has two bytes, but can result in a JSON object with a dozen members. A
/// limit on the number of bytes would therefore not limit the memory for the decoded object.
///
/// The limits do not apply to JSON text that a message contains as bytes. Such text can have at
/// most 127 levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum nesting depth of JSON objects and lists. The outermost object has depth 1.
    pub depth: usize,
    /// Maximum number of JSON objects and lists in the decoded object.
    pub containers: usize,
    /// Maximum number of JSON values in the decoded object: the values of members, list items
    /// and map entries.
    pub values: usize,
    /// The treatment of fields that the message does not contain.
    pub missing: Missing,
}

/// The treatment of a field that Go always writes as JSON, if the message does not contain the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The visitor receives the field with its zero value or null, as Go writes it.
    Zero,
    /// The visitor does not receive the field, as if the sender's Kubernetes version did
    /// not have the field.
    Nothing,
}

/// Decodes the bytes of a message to a value of type `T`.
///
/// # Errors
/// Returns an error if `bytes` are not an encoding of `message`, if a limit of `options` is exceeded, or if
/// the decoded fields do not fit the type `T`.
pub fn decode<T: de::DeserializeOwned>(
    message: MessageId,
    bytes: &[u8],
    options: Options,
) -> Result<T, Error> {
    decode_with(message, bytes, options, |deserializer| {
        T::deserialize(deserializer)
    })
}

/// Calls `read` with a deserializer of a message, and returns the result of `read`.
///
/// Kubernetes writes the fields of a message in ascending order of their numbers, which the deserializer
/// requires. If the fields in `bytes` have another order, `decode_with` sorts the fields and calls `read` a
/// second time. The result of the first call is then dropped.
///
/// # Errors
/// Returns the error of `read`, or an error if the fields can't be sorted because `bytes` are not an
/// encoding of `message`.
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

/// The remaining limits and the options that all deserializers of one decoded object share.
#[derive(Debug)]
struct Context {
    messages: &'static Messages,
    containers_left: Cell<usize>,
    values_left: Cell<usize>,
    options: Options,
    /// Whether the bytes contain a field after a field with a greater number, or contain a
    /// single-valued field twice.
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

    /// Counts one JSON value. Returns an error if [`Options::values`] is exceeded.
    #[inline]
    fn count(&self) -> Result<(), Reason> {
        take_one(&self.values_left, self.options.values, "values")
    }

    /// Counts one JSON object or list. Returns an error if [`Options::containers`] is exceeded.
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

/// A serde deserializer for the bytes of one message. Nested messages have deserializers of their own.
#[derive(Clone, Copy, Debug)]
pub struct Deserializer<'de, 'c> {
    context: &'c Context,
    message: &'static Message,
    bytes: &'de [u8],
    /// Nesting depth of the JSON value that results from this message. The outermost object has depth 1.
    depth: usize,
    type_meta: Option<(&'de str, &'de str)>,
}

/// The kind of JSON value that results from a message.
enum Shape<'de> {
    Object,
    /// The value of a single field of the message. The number is the field's index in [`Message::fields`].
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

    /// Makes the deserializer also visit the members `apiVersion` and `kind`, before the
    /// fields of the message.
    ///
    /// A message does not contain these members. They are part of the [`Envelope`](crate::Envelope).
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

    /// Returns whether the JSON value that results from the message is null.
    #[inline]
    fn is_null(self) -> Result<bool, Error> {
        match self.message.form {
            Form::Object | Form::List => Ok(false),
            Form::Either => Ok(self.present()?.is_none()),
            special => Ok(scalar::is_null(special, self.bytes)?),
        }
    }

    /// Returns the index of the field whose value is the JSON value of this message.
    ///
    /// This is the last field that the bytes contain. If the bytes contain no field, it is the first field of
    /// the message, provided that Go writes a value other than null for this field. Otherwise returns `None`.
    ///
    /// Only messages of the forms [`Form::List`] and [`Form::Either`] call this function. Such messages are
    /// rare, so an additional pass over the bytes that checks the order of the fields is acceptable.
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
    /// Visits a message from which the visitor expects a boolean, a number or a string.
    #[inline]
    fn scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.message.form {
            Form::Object | Form::List | Form::Either => self.deserialize_any(visitor),
            special => Scalar::special(special, self.bytes)?.visit(visitor),
        }
    }

    /// Visits a message from which the visitor expects a JSON object.
    #[inline]
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.message.form {
            Form::Object => visitor.visit_map(self.members()?),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Visits a message from which the visitor expects a JSON list.
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

/// Visits a list without items.
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
