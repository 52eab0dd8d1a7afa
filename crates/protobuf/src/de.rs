//! Decodes the bytes of a protobuf message with [`Deserializer`], a serde deserializer.
//!
//! Guarantees:
//! - with [`Missing::Zero`], a type receives the same values as from the JSON that Go writes for the object;
//! - a field that is not in this crate's message definitions is skipped, as by a Kubernetes server of the
//!   same version;
//! - [`Options`] limits the depth and the number of values, because a few bytes can result in many values;
//! - an error contains the JSON path of the field that failed.
//!
//! Does not check the kind of the object, which is part of the [`Envelope`](crate::Envelope).

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

/// The limits for decoding a message, and the treatment of fields that the message does not contain.
///
/// The limits apply to the decoded object, because a few bytes can result in a large object. With
/// [`Missing::Zero`], a nested message of two bytes, without fields, can result in a JSON object with a dozen
/// members.
///
/// The limits do not apply to JSON text that a message contains as bytes. Such text can have at most 127
/// levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Maximum nesting depth of the messages that are decoded as JSON objects. The outermost message has
    /// depth 1. Each JSON object and list around a message adds one level.
    pub depth: usize,
    /// Maximum number of JSON objects and lists in the decoded object.
    pub containers: usize,
    /// Maximum number of JSON values in the decoded object: the values of members, list items
    /// and map entries.
    pub values: usize,
    /// The treatment of fields that the message does not contain.
    pub missing: Missing,
}

/// The treatment of a field that the message does not contain, but that Go always includes in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A missing field is passed to the visitor as the zero value or null that Go writes in Kubernetes 1.36.
    ///
    /// A field that Kubernetes added after 1.36 is skipped, even if the message contains it.
    Zero,
    /// A missing field is not passed to the visitor, as if the sender's Kubernetes version did not have the
    /// field.
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
    decode_with(message, None, bytes, options, |deserializer| {
        T::deserialize(deserializer)
    })
}

/// Calls `read` with a deserializer of a message, and returns the result of `read`.
///
/// `type_meta` is the object's API version and kind, which are not part of the message. The deserializer
/// returns them as the members `apiVersion` and `kind`, before the fields of the message.
///
/// The deserializer requires that the fields are in ascending order of their numbers, as Kubernetes writes
/// them. If the fields in `bytes` have another order, `decode_with` sorts the fields, calls `read` a second
/// time, and returns only the second result.
///
/// # Errors
/// Returns the error of `read`, or an error if the fields can't be sorted because `bytes` are not an encoding
/// of `message`.
pub fn decode_with<R>(
    message: MessageId,
    type_meta: Option<(&str, &str)>,
    bytes: &[u8],
    options: Options,
    mut read: impl FnMut(Deserializer<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let context = Context::new(options, type_meta);
    let result = read(Deserializer(&Slot::new(&context, message, bytes)));
    let is_unordered = context.is_unordered.get();
    if result.is_ok() && !is_unordered {
        return result;
    }
    // Another error can be a consequence of the order too: a field that comes later seems to be missing.
    match sorted(context.messages, context.messages.get(message), bytes) {
        Ok(sorted) if is_unordered || sorted != bytes => {
            let context = Context::new(options, type_meta);
            read(Deserializer(&Slot::new(&context, message, &sorted)))
        }
        Err(reason) if is_unordered => Err(reason.into()),
        Ok(_) | Err(_) => result,
    }
}

/// State of the decoding of one object, which all deserializers of the object share.
#[derive(Debug)]
struct Context<'de> {
    messages: &'static Messages,
    options: Options,
    containers_left: Cell<usize>,
    values_left: Cell<usize>,
    /// Whether decoding has found fields in the wrong order, or several values of a single-valued field.
    is_unordered: Cell<bool>,
    type_meta: Option<(&'de str, &'de str)>,
}

impl<'de> Context<'de> {
    fn new(options: Options, type_meta: Option<(&'de str, &'de str)>) -> Self {
        Self {
            messages: match options.missing {
                Missing::Zero => Messages::v1_36(),
                Missing::Nothing => Messages::builtin(),
            },
            options,
            containers_left: Cell::new(options.containers),
            values_left: Cell::new(options.values),
            is_unordered: Cell::new(false),
            type_meta,
        }
    }

    /// Counts one JSON value. Returns an error if there are more than [`Options::values`].
    #[inline]
    fn count(&self) -> Result<(), Reason> {
        take_one(&self.values_left, self.options.values, "values")
    }

    /// Counts one JSON object or list. Returns an error if there are more than [`Options::containers`].
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

/// A serde deserializer for one value: a message, a field of a message, a list item or a map entry.
///
/// A value that a type ignores ([`IgnoredAny`](de::IgnoredAny)) is not validated.
// A reference, because serde passes a deserializer by value through several functions per value.
#[derive(Clone, Copy, Debug)]
pub struct Deserializer<'de, 'c>(&'c Slot<'de, 'c>);

/// One value with the context in which it is decoded.
#[derive(Debug)]
struct Slot<'de, 'c> {
    context: &'c Context<'de>,
    value: Value<'de>,
    /// Nesting depth of the JSON value; the outermost object has depth 1.
    depth: usize,
}

impl<'de, 'c> Slot<'de, 'c> {
    fn new(context: &'c Context<'de>, message: MessageId, bytes: &'de [u8]) -> Self {
        Self {
            context,
            value: Value::Message(context.messages.get(message), bytes),
            depth: 1,
        }
    }

    /// Returns a slot for the values nested in `self`. The slot stores one value at a time, initially null.
    #[inline]
    fn inner(&self) -> Self {
        Self {
            context: self.context,
            value: Value::Null,
            depth: self.depth + 1,
        }
    }
}

impl<'de> Deserializer<'de, '_> {
    /// Passes a value of any kind to the visitor.
    // The code is large and rarely called.
    #[inline(never)]
    fn any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value.resolved(self.0.context)? {
            Value::Null => visitor.visit_unit(),
            Value::Text(bytes) => scalar::text(bytes).visit(visitor),
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Scalar(scalar, Some(value)) => Scalar::of(scalar, value)?.visit(visitor),
            Value::Scalar(scalar, None) => Scalar::zero(scalar).visit(visitor),
            Value::Message(message, bytes) if message.form == Form::Object => {
                visitor.visit_map(&mut Members::of_message(self.0, message, bytes)?)
            }
            Value::Message(message, bytes) => Scalar::special(message.form, bytes)?.visit(visitor),
            Value::List(run) => visitor.visit_seq(&mut Items::new(self.0, run)?),
            Value::Map(run) => visitor.visit_map(&mut Members::of_map(self.0, run)?),
        }
    }

    /// Does the same as [`any`](Self::any), with a fast path for strings.
    #[inline]
    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Text(bytes) => match str::from_utf8(bytes) {
                Ok(text) => visitor.visit_borrowed_str(text),
                Err(_) => self.any(visitor),
            },
            _ => self.any(visitor),
        }
    }

    /// Does the same as [`any`](Self::any), with a fast path for integers and booleans.
    #[inline]
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Integer(number) => visitor.visit_i64(number),
            Value::Scalar(Type::Bool, Some(WireValue::Varint(number))) => {
                visitor.visit_bool(number != 0)
            }
            _ => self.any(visitor),
        }
    }

    /// Does the same as [`any`](Self::any), with a fast path for messages and maps.
    #[inline]
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0.value {
            Value::Message(message, bytes) if message.form == Form::Object => {
                visitor.visit_map(&mut Members::of_message(self.0, message, bytes)?)
            }
            Value::Map(run) => visitor.visit_map(&mut Members::of_map(self.0, run)?),
            _ => self.any(visitor),
        }
    }
}

/// Implements methods of `serde::Deserializer` that call the given method of [`Deserializer`].
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

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        // The types of JSON values call this method. Few other types do, so that it is compiled rarely.
        match self.0.value {
            Value::Message(message, bytes) if message.form == Form::Json => {
                match Scalar::special(Form::Json, bytes)? {
                    Scalar::Json(json) => scalar::visit_text(json, visitor),
                    other => other.visit(visitor),
                }
            }
            _ => self.any(visitor),
        }
    }

    forward! { any: deserialize_bytes deserialize_byte_buf deserialize_unit }
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
        match self.0.value {
            Value::List(run) => visitor.visit_seq(&mut Items::new(self.0, run)?),
            _ => self.any(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.value.is_null(self.0.context)? {
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
        match self.0.value {
            Value::Message(message, bytes) if message.form == Form::Object => {
                let mut members = Members::of_message(self.0, message, bytes)?;
                MapAccessDeserializer::new(&mut members).deserialize_enum(name, variants, visitor)
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
