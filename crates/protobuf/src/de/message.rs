//! Visits the fields of a message as the members of a JSON object, with [`MessageAccess`].

use std::borrow::Cow;

use serde::de::{DeserializeSeed, MapAccess};

use super::{Context, field::FieldValue, level::Level, value::ScalarValue};
use crate::{
    error::{Error, Reason, Step},
    scalar::{self, Scalar},
    table::{Container, Field, Form, Message, Presence, Type},
    wire::WireValue,
};

/// The serde `MapAccess` of a message, which visits the fields in ascending order of their numbers.
///
/// Also visits fields that the bytes do not contain, if Go writes these fields as JSON and
/// [`Missing::Zero`](super::Missing::Zero) is set.
pub(super) struct MessageAccess<'de, 'c> {
    context: &'c Context,
    depth: usize,
    level: Level<'de>,
    /// The readers of the outer messages, while `level` reads an inline field. The innermost outer
    /// message is last.
    ///
    /// The members of an inline field are members of the outer message's JSON object.
    outer: Vec<Level<'de>>,
    /// The member whose key the visitor received last, and whose value it has not received.
    current: Option<Member<'de>>,
    /// The API version and the kind, which the visitor receives before the fields. `None`
    /// after the first key.
    type_meta: Option<(&'de str, &'de str)>,
    kind: Option<&'de str>,
}

/// A member of the JSON object: a field of the message, or `apiVersion` or `kind`.
enum Member<'de> {
    /// A field with its first value in the bytes. The value is `None` if the bytes do not
    /// contain the field.
    Field(&'static Field, Option<WireValue<'de>>),
    Text(&'de str),
}

impl<'de, 'c> MessageAccess<'de, 'c> {
    pub(super) fn new(
        context: &'c Context,
        message: &'static Message,
        bytes: &'de [u8],
        depth: usize,
        type_meta: Option<(&'de str, &'de str)>,
    ) -> Result<Self, Reason> {
        if depth > context.options.depth {
            let max = context.options.depth;
            return Err(Reason::new(format!("nested deeper than {max} levels")));
        }
        context.count_container()?;
        Ok(Self {
            context,
            depth,
            level: Level::new(message, bytes),
            outer: Vec::new(),
            current: None,
            type_meta,
            kind: None,
        })
    }

    /// Returns the next field with its first value, or `None` after the last field.
    ///
    /// For an inline field, returns the fields of the inline message instead.
    #[inline]
    fn next_member(&mut self) -> Result<Option<(&'static Field, Option<WireValue<'de>>)>, Error> {
        loop {
            let Some((field, value)) = self.level.advance(self.context)? else {
                match self.outer.pop() {
                    Some(outer) => self.level = outer,
                    None => return Ok(None),
                }
                continue;
            };
            if field.presence == Presence::Inline {
                self.enter(field, value)?;
                continue;
            }
            if field.presence == Presence::Nonzero
                && value.is_some_and(|value| self.is_zero(field, value))
            {
                continue;
            }
            return Ok(Some((field, value)));
        }
    }

    /// Reads the fields of an inline field's message next, before the remaining fields of the
    /// current message.
    #[cold]
    fn enter(&mut self, field: &'static Field, value: Option<WireValue<'de>>) -> Result<(), Error> {
        let Type::Message(id) = field.value else {
            return Ok(());
        };
        let bytes = value.map_or(Ok(&[][..]), WireValue::bytes);
        let bytes = bytes.map_err(|error| Error::from(error).below(Step::Member(field.name)))?;
        let inner = Level::new(self.context.messages.get(id), bytes);
        let outer = std::mem::replace(&mut self.level, inner);
        self.outer.push(outer);
        Ok(())
    }

    /// Returns whether Go omits the field in JSON because the value in the bytes is zero, empty or null.
    ///
    /// Returns false for an invalid value, and the error of this value is then reported when it is decoded.
    #[inline]
    fn is_zero(&self, field: &Field, value: WireValue<'_>) -> bool {
        match (field.container, field.value, value) {
            (Container::List | Container::Map, ..) => false,
            (_, Type::Text | Type::Bytes, WireValue::Bytes(bytes)) => bytes.is_empty(),
            (_, Type::Int32, WireValue::Varint(number)) => number.trailing_zeros() >= u32::BITS,
            (_, Type::Bool | Type::Int64, WireValue::Varint(number)) => number == 0,
            (_, Type::Double, WireValue::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
            (_, Type::Message(id), WireValue::Bytes(bytes)) => {
                match self.context.messages.get(id).form {
                    Form::Object | Form::List | Form::Either => false,
                    special => scalar::is_null(special, bytes).unwrap_or(false),
                }
            }
            _ => false,
        }
    }
}

impl<'de> MapAccess<'de> for MessageAccess<'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        if let Some((api_version, kind)) = self.type_meta.take() {
            self.current = Some(Member::Text(api_version));
            self.kind = Some(kind);
            return seed.deserialize(text("apiVersion")).map(Some);
        }
        if let Some(kind) = self.kind.take() {
            self.current = Some(Member::Text(kind));
            return seed.deserialize(text("kind")).map(Some);
        }
        let Some((field, value)) = self.next_member()? else {
            return Ok(None);
        };
        self.current = Some(Member::Field(field, value));
        seed.deserialize(text(field.name)).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.current.take() {
            Some(Member::Field(field, first)) => {
                let value = FieldValue {
                    context: self.context,
                    depth: self.depth + 1,
                    field,
                    first,
                    level: &mut self.level,
                };
                let counted = self.context.count().map_err(Error::from);
                let value = counted.and_then(|()| seed.deserialize(value));
                value.map_err(|error| error.below(Step::Member(field.name)))
            }
            Some(Member::Text(value)) => seed.deserialize(text(value)),
            None => Err(Reason::new("a value was requested before its key").into()),
        }
    }
}

#[inline]
fn text(text: &str) -> ScalarValue<'_> {
    ScalarValue(Scalar::Text(Cow::Borrowed(text)))
}
