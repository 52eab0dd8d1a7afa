//! [`MessageAccess`]: visits the fields of a message as the members of a JSON object.

use serde::{
    de::{self, DeserializeSeed, MapAccess},
    forward_to_deserialize_any,
};

use super::{Context, field::FieldValue};
use crate::{
    error::{Error, Reason, Step},
    scalar,
    table::{Container, Field, Form, Message, Presence, Type},
    wire::{WireError, WireFields, WireValue},
};

/// Maximum nesting of messages whose members are members of their parent. A test compares it with the table.
pub(crate) const INLINE_MAX: usize = 2;

/// Visits the fields of a message in the order of their numbers.
///
/// The fields of the bytes and those of the table are read side by side, so that a field that is missing in the
/// bytes is visited where Go writes its zero value.
pub(super) struct MessageAccess<'de, 'c> {
    context: &'c Context,
    depth: usize,
    level: Level<'de>,
    /// The messages around a message whose members are members of its parent; the innermost is last.
    outer: [Option<Level<'de>>; INLINE_MAX],
    /// The member whose key was visited last.
    current: Option<Member<'de>>,
    /// The API version and the kind, which are visited first.
    pub(super) type_meta: Option<(&'de str, &'de str)>,
    kind: Option<&'de str>,
}

/// Position in the bytes and in the table of one message.
#[derive(Clone, Debug)]
pub(super) struct Level<'de> {
    fields: WireFields<'de>,
    /// The next field of the bytes, if it was read already.
    next: Option<(u32, WireValue<'de>)>,
    message: &'static Message,
    /// Position of the next field in the table.
    at: usize,
}

/// A member of the JSON object.
enum Member<'de> {
    /// A field of the table, with its first value if it has any.
    Field(&'static Field, Option<WireValue<'de>>),
    Text(&'de str),
}

impl<'de> Level<'de> {
    pub(super) fn new(message: &'static Message, bytes: &'de [u8]) -> Self {
        Self {
            fields: WireFields::new(bytes),
            next: None,
            message,
            at: 0,
        }
    }

    #[inline]
    fn peek(&mut self) -> Result<Option<(u32, WireValue<'de>)>, WireError> {
        if self.next.is_none() {
            self.next = self.fields.next().transpose()?;
        }
        Ok(self.next)
    }

    /// Returns the next value if it belongs to the field with this number: the next item of a list or the next
    /// entry of a map.
    #[inline]
    pub(super) fn again(&mut self, number: u32) -> Result<Option<WireValue<'de>>, WireError> {
        let next = self.peek()?.filter(|(next, _)| *next == number);
        if next.is_some() {
            self.next = None;
        }
        Ok(next.map(|(_, value)| value))
    }

    /// Skips fields up to the first value of the field with this number, and returns this value.
    pub(super) fn find(&mut self, number: u32) -> Result<Option<WireValue<'de>>, WireError> {
        while let Some((next, value)) = self.peek()? {
            self.next = None;
            if next == number {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Returns the next field that is in the bytes, or missing there although Go writes it.
    #[inline]
    fn advance(
        &mut self,
        context: &Context,
    ) -> Result<Option<(&'static Field, Option<WireValue<'de>>)>, Error> {
        loop {
            let next = self.peek()?;
            let number = next.map_or(u32::MAX, |(number, _)| number);
            while let Some(field) = self.message.fields.get(self.at) {
                if field.number() > number {
                    break;
                }
                self.at += 1;
                if field.number() == number {
                    self.next = None;
                    return Ok(Some((field, next.map(|(_, value)| value))));
                }
                if field.is_written_if_missing() {
                    return Ok(Some((field, None)));
                }
            }
            if next.is_none() {
                return Ok(None);
            }
            if self.message.position(number).is_some() {
                return Err(context.unordered().into());
            }
            self.next = None;
        }
    }
}

impl<'de, 'c> MessageAccess<'de, 'c> {
    pub(super) fn new(
        context: &'c Context,
        message: &'static Message,
        bytes: &'de [u8],
        depth: usize,
    ) -> Result<Self, Reason> {
        if depth > context.limits.depth {
            let max = context.limits.depth;
            return Err(Reason::new(format!(
                "it is nested deeper than {max} levels"
            )));
        }
        Ok(Self {
            context,
            depth,
            level: Level::new(message, bytes),
            outer: [const { None }; INLINE_MAX],
            current: None,
            type_meta: None,
            kind: None,
        })
    }

    /// Returns the next member, or `None` behind the last.
    #[inline]
    fn next_member(&mut self) -> Result<Option<(&'static Field, Option<WireValue<'de>>)>, Error> {
        loop {
            let Some((field, value)) = self.level.advance(self.context)? else {
                match self.outer.iter_mut().rev().find_map(Option::take) {
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
        let free = self.outer.iter_mut().find(|outer| outer.is_none());
        *free.ok_or_else(|| Reason::new("too many inlined messages"))? = Some(outer);
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
            return seed.deserialize(Key("apiVersion")).map(Some);
        }
        if let Some(kind) = self.kind.take() {
            self.current = Some(Member::Text(kind));
            return seed.deserialize(Key("kind")).map(Some);
        }
        let Some((field, value)) = self.next_member()? else {
            return Ok(None);
        };
        self.current = Some(Member::Field(field, value));
        seed.deserialize(Key(field.name)).map(Some)
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
            Some(Member::Text(text)) => seed.deserialize(Key(text)),
            None => Err(Reason::new("a value was requested before its key").into()),
        }
    }
}

/// A text, such as the name of a member.
pub(super) struct Key<'de>(pub(super) &'de str);

impl<'de> de::Deserializer<'de> for Key<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: de::Visitor<'de>>(
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
