//! [`MessageAccess`]: visits the fields of a message as the members of a JSON object.

use std::borrow::Cow;

use serde::de::{DeserializeSeed, MapAccess};

use super::{Context, field::FieldValue, level::Level, value::ScalarValue};
use crate::{
    error::{Error, Reason, Step},
    scalar::{self, Scalar},
    table::{Container, Field, Form, Message, Presence, Type},
    wire::WireValue,
};

/// Visits the fields of a message in the order of their numbers.
///
/// The fields of the bytes and those of the table are read side by side, so that a field that is missing in the
/// bytes is visited where Go writes its zero value.
pub(super) struct MessageAccess<'de, 'c> {
    context: &'c Context,
    depth: usize,
    level: Level<'de>,
    /// The messages around a message whose members are members of its parent; the innermost is last.
    outer: Vec<Level<'de>>,
    /// The member whose key was visited last.
    current: Option<Member<'de>>,
    /// The API version and the kind, which are visited first.
    type_meta: Option<(&'de str, &'de str)>,
    kind: Option<&'de str>,
}

/// A member of the JSON object.
enum Member<'de> {
    /// A field of the table, with its first value if it has any.
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

    /// Returns the next member, or `None` behind the last.
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

    /// Continues with the members of a message that are members of this one.
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

    /// Whether Go omits the field, which is sent, because of its value. Invalid values are not omitted, so that
    /// they are reported.
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
