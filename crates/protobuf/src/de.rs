//! [`Deserializer`]: a serde deserializer over the bytes of a message.
//!
//! Guarantees:
//! - the visited value equals the JSON that Go writes for the same object, including omitted, null and zero
//!   fields;
//! - fields that are not in the table are skipped, as a server of that version does;
//! - the depth and the number of visited values are limited by [`Limits`], also for small inputs;
//! - an error contains the field's path in JSON.

mod field;
mod message;
mod value;

use std::cell::Cell;

use serde::{
    de::{self, Visitor},
    forward_to_deserialize_any,
};

use crate::{
    error::{Error, Reason},
    order::sorted,
    table::{MessageId, Messages},
};
use message::MessageAccess;

#[cfg(test)]
pub(crate) use self::{field::ScalarValue, message::INLINE_MAX};

/// Limits on what one message may produce.
///
/// An empty message has two bytes and may result in a dozen members, so the length of the bytes alone limits
/// little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum nesting of JSON objects and lists, including the outermost. JSON that a message contains as
    /// bytes is counted on its own.
    pub depth: usize,
    /// Maximum number of JSON values.
    pub values: usize,
}

/// Decodes a message.
///
/// # Errors
/// The bytes are not such a message, exceed the limits, or do not fit the type.
pub fn decode<T: de::DeserializeOwned>(
    message: MessageId,
    bytes: &[u8],
    limits: Limits,
) -> Result<T, Error> {
    decode_with(message, bytes, limits, |deserializer| {
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
    limits: Limits,
    mut read: impl FnMut(Deserializer<'_, '_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let context = Context::new(limits);
    let result = read(Deserializer::new(&context, message, bytes));
    let is_unordered = context.is_unordered.get();
    if result.is_ok() && !is_unordered {
        return result;
    }
    // Another error can be a consequence of the order too: a field that comes later seems to be missing.
    match sorted(context.messages, context.messages.get(message), bytes) {
        Ok(sorted) if is_unordered || sorted != bytes => {
            let context = Context::new(limits);
            read(Deserializer::new(&context, message, &sorted))
        }
        Err(reason) if is_unordered => Err(reason.into()),
        Ok(_) | Err(_) => result,
    }
}

/// State that all deserializers of one message share.
#[derive(Debug)]
struct Context {
    messages: &'static Messages,
    values_left: Cell<usize>,
    limits: Limits,
    /// Whether a field appeared behind one with a greater number, or a second time.
    is_unordered: Cell<bool>,
}

impl Context {
    fn new(limits: Limits) -> Self {
        Self {
            messages: Messages::builtin(),
            values_left: Cell::new(limits.values),
            limits,
            is_unordered: Cell::new(false),
        }
    }

    /// Counts one JSON value.
    #[inline]
    fn count(&self) -> Result<(), Reason> {
        let left = self.values_left.get();
        if left == 0 {
            let max = self.limits.values;
            return Err(Reason::new(format!("it has more than {max} values")));
        }
        self.values_left.set(left - 1);
        Ok(())
    }

    fn unordered(&self) -> Reason {
        self.is_unordered.set(true);
        Reason::new("the fields are not in the order of their numbers")
    }
}

/// A serde deserializer over the bytes of one message.
#[derive(Clone, Copy, Debug)]
pub struct Deserializer<'de, 'c> {
    context: &'c Context,
    message: MessageId,
    bytes: &'de [u8],
    type_meta: Option<(&'de str, &'de str)>,
}

impl<'de, 'c> Deserializer<'de, 'c> {
    fn new(context: &'c Context, message: MessageId, bytes: &'de [u8]) -> Self {
        Self {
            context,
            message,
            bytes,
            type_meta: None,
        }
    }

    /// Also visits the fields `apiVersion` and `kind`, which are not part of a message.
    #[must_use]
    pub fn with_type_meta(mut self, api_version: &'de str, kind: &'de str) -> Self {
        self.type_meta = Some((api_version, kind));
        self
    }
}

impl<'de> de::Deserializer<'de> for Deserializer<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let message = self.context.messages.get(self.message);
        let mut access = MessageAccess::new(self.context, message, self.bytes, 1)?;
        access.type_meta = self.type_meta;
        visitor.visit_map(access)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
