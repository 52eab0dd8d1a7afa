//! [`Deserializer`]: a serde deserializer over the bytes of a message.
//!
//! Guarantees:
//! - the visited value equals the JSON that Go writes for the same object, including omitted, null and zero
//!   fields;
//! - fields that are not in the table are skipped, as a server of that version does;
//! - the depth and the number of visited values are limited by [`Options`], also for small inputs;
//! - an error contains the field's path in JSON.

mod value;
mod items;
mod members;

use std::cell::Cell;

use serde::{
    de::{
        self, Visitor,
        value::{CowStrDeserializer, MapAccessDeserializer},
    },
    forward_to_deserialize_any,
};

use crate::{
    error::{Error, Reason},
    order::sorted,
    scalar::{self, Scalar},
    table::{Form, MessageId, Messages, Type},
    wire::WireValue,
};
use items::Items;
use members::Members;
use value::Value;

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
    decode_with(message, None, bytes, options, |deserializer| {
        T::deserialize(deserializer)
    })
}

/// Passes a deserializer of a message to a function, and returns what the function returns.
///
/// `type_meta` is the API version and the kind of the object, which are not part of a message. They are visited
/// as the members `apiVersion` and `kind`.
///
/// Kubernetes writes the fields of a message in the order of their numbers. If these bytes have another order,
/// the function is called a second time, with sorted bytes, and the result of the first call is dropped.
///
/// # Errors
/// The errors of the function, and those of bytes that are not a message.
pub fn decode_with<R>(
    message: MessageId,
    type_meta: Option<(&str, &str)>,
    bytes: &[u8],
    options: Options,
    mut read: impl FnMut(Deserializer<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let context = Context::new(options, type_meta);
    let result = read(Deserializer::new(&context, message, bytes));
    let is_unordered = context.is_unordered.get();
    if result.is_ok() && !is_unordered {
        return result;
    }
    // Another error can be a consequence of the order too: a field that comes later seems to be missing.
    match sorted(context.messages, context.messages.get(message), bytes) {
        Ok(sorted) if is_unordered || sorted != bytes => {
            let context = Context::new(options, type_meta);
            read(Deserializer::new(&context, message, &sorted))
        }
        Err(reason) if is_unordered => Err(reason.into()),
        Ok(_) | Err(_) => result,
    }
}

/// State that all deserializers of one message share.
#[derive(Debug)]
struct Context<'de> {
    messages: &'static Messages,
    options: Options,
    containers_left: Cell<usize>,
    values_left: Cell<usize>,
    /// Whether a field appeared behind one with a greater number, or a second time.
    is_unordered: Cell<bool>,
    type_meta: Option<(&'de str, &'de str)>,
}

impl<'de> Context<'de> {
    fn new(options: Options, type_meta: Option<(&'de str, &'de str)>) -> Self {
        Self {
            messages: Messages::builtin(),
            options,
            containers_left: Cell::new(options.containers),
            values_left: Cell::new(options.values),
            is_unordered: Cell::new(false),
            type_meta,
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
        let max = self.options.containers;
        take_one(&self.containers_left, max, "arrays and maps")
    }

    #[cold]
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

/// A serde deserializer over the bytes of one JSON value: a message, or a field of a message.
///
/// A value that is skipped ([`IgnoredAny`](de::IgnoredAny)) is not validated.
#[derive(Clone, Copy, Debug)]
pub struct Deserializer<'de, 'c> {
    context: &'c Context<'de>,
    value: Value<'de>,
    /// Nesting of the JSON value, from 1 for the outermost object.
    depth: usize,
}

impl<'de, 'c> Deserializer<'de, 'c> {
    fn new(context: &'c Context<'de>, message: MessageId, bytes: &'de [u8]) -> Self {
        Self {
            context,
            value: Value::Message(context.messages.get(message), bytes),
            depth: 1,
        }
    }

    /// Visits a value of any kind.
    ///
    /// This is not inlined, because it is compiled for each visitor, and few visitors need it.
    #[inline(never)]
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value.resolved(self.context)? {
            Value::Null => visitor.visit_unit(),
            Value::Text(bytes) => scalar::text(bytes).visit(visitor),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Scalar(scalar, Some(value)) => Scalar::of(scalar, value)?.visit(visitor),
            Value::Scalar(scalar, None) => Scalar::zero(scalar).visit(visitor),
            Value::Message(message, bytes) if message.form == Form::Object => {
                visitor.visit_map(Members::of_message(self, message, bytes)?)
            }
            Value::Message(message, bytes) => Scalar::special(message.form, bytes)?.visit(visitor),
            Value::List(run) => visitor.visit_seq(Items::new(self, run)?),
            Value::Map(run) => visitor.visit_map(Members::of_map(self, run)?),
        }
    }

    /// Visits a text, or a value of another kind.
    #[inline]
    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => self.any(visitor),
            },
            _ => self.any(visitor),
        }
    }

    /// Visits a number or a boolean, or a value of another kind.
    #[inline]
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Scalar(Type::Bool, Some(WireValue::Varint(number))) => {
                visitor.visit_bool(number != 0)
            }
            _ => self.any(visitor),
        }
    }

    /// Visits a JSON object, or a value of another kind.
    #[inline]
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Message(message, bytes) if message.form == Form::Object => {
                visitor.visit_map(Members::of_message(self, message, bytes)?)
            }
            Value::Map(run) => visitor.visit_map(Members::of_map(self, run)?),
            _ => self.any(visitor),
        }
    }
}

/// Implements methods that request one kind of value. Each compiles little more than the visit of this kind.
macro_rules! forward {
    ($to:ident: $($name:ident)*) => {$(
        #[inline]
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$to(visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Deserializer<'de, '_> {
    type Error = Error;

    forward! { any: deserialize_any deserialize_bytes deserialize_byte_buf deserialize_unit }
    forward! { text: deserialize_char deserialize_str deserialize_string deserialize_identifier }
    forward! {
        number: deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
    }
    forward! { object: deserialize_map }

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
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::List(run) => visitor.visit_seq(Items::new(self, run)?),
            _ => self.any(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.value.is_null(self.context)? {
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
        match self.value {
            Value::Message(message, bytes) if message.form == Form::Object => {
                let members = Members::of_message(self, message, bytes)?;
                MapAccessDeserializer::new(members).deserialize_enum(name, variants, visitor)
            }
            Value::Text(bytes) => {
                visitor.visit_enum(CowStrDeserializer::new(String::from_utf8_lossy(bytes)))
            }
            _ => self.any(visitor),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        unit_struct tuple tuple_struct
    }
}

#[cfg(test)]
mod tests;
