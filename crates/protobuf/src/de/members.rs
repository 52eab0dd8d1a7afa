//! Passes the fields of a message, or the entries of a map, to a visitor as a JSON object, with [`Members`].
//!
//! Guarantees: a field after a field with a greater number is an error, and an error contains the JSON path of
//! its field. Does not sort the fields.

use std::borrow::Cow;

use serde::de::{
    DeserializeSeed, MapAccess,
    value::{BorrowedStrDeserializer, CowStrDeserializer},
};

use super::{
    Context, Deserializer, Missing,
    value::{Run, Value},
};
use crate::{
    error::{Error, Reason, Step},
    scalar::int32,
    table::{Container, Field, Message, Presence, Type},
    wire::{WireError, WireFields, WireValue},
};

/// The serde `MapAccess` of a message or a map. The visitor receives the members in the order of the bytes.
///
/// With [`Missing::Zero`], the visitor also receives the fields that the bytes do not contain, if Go writes
/// these fields as JSON.
pub(super) struct Members<'de, 'c> {
    context: &'c Context<'de>,
    /// Nesting depth of the members' values. The outermost object has depth 1.
    depth: usize,
    fields: WireFields<'de>,
    names: Names,
    /// Index in [`Message::fields`] of the first field that can follow.
    at: usize,
    /// The value that the visitor receives next. `None` if the visitor has not requested its name.
    value: Option<Value<'de>>,
    /// The name of the member that the visitor received last, as bytes.
    name: &'de [u8],
    /// The outer message, if the current message is an inline field. The members of an inline field are members
    /// of the outer message's JSON object.
    outer: Option<Box<Outer<'de>>>,
    /// The next member of the object's type meta.
    type_meta: TypeMeta,
}

/// The names of the members: the field names of a message, or the keys of a map.
#[derive(Clone, Copy)]
enum Names {
    /// The field names of this message.
    Message(&'static Message),
    /// The keys of a map whose values have this type.
    Map(Type),
}

/// The unread rest of a message that contains an inline field.
struct Outer<'de> {
    fields: WireFields<'de>,
    names: Names,
    at: usize,
    around: Option<Box<Outer<'de>>>,
}

/// The next member of an object's type meta, which consists of `apiVersion` and `kind`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeMeta {
    ApiVersion,
    Kind,
    /// The visitor has received both members, or the object has no type meta.
    Visited,
}

impl<'de, 'c> Members<'de, 'c> {
    #[inline]
    pub(super) fn of_message(
        object: Deserializer<'de, 'c>,
        message: &'static Message,
        bytes: &'de [u8],
    ) -> Result<Self, Reason> {
        let max = object.context.options.depth;
        if object.depth > max {
            return Err(Reason::new(format!("nested deeper than {max} levels")));
        }
        Self::new(object, bytes, Names::Message(message))
    }

    #[inline]
    pub(super) fn of_map(object: Deserializer<'de, 'c>, run: Run<'de>) -> Result<Self, Reason> {
        Self::new(object, run.bytes, Names::Map(run.value))
    }

    #[inline]
    fn new(object: Deserializer<'de, 'c>, bytes: &'de [u8], names: Names) -> Result<Self, Reason> {
        object.context.count_container()?;
        let has_type_meta = object.depth == 1 && object.context.type_meta.is_some();
        Ok(Self {
            context: object.context,
            depth: object.depth + 1,
            fields: WireFields::new(bytes),
            names,
            at: 0,
            value: None,
            name: &[],
            outer: None,
            type_meta: if has_type_meta {
                TypeMeta::ApiVersion
            } else {
                TypeMeta::Visited
            },
        })
    }

    /// Reads the next field of the message into `value`, and returns the field, or `None` after the last field.
    ///
    /// Is not inlined, because the code is large, and a copy per visitor would crowd the instruction cache.
    #[inline(never)]
    fn next_field(&mut self, message: &'static Message) -> Result<Option<&'static Field>, Error> {
        loop {
            let start = self.fields.clone();
            let tag = if start.is_empty() {
                u32::MAX
            } else {
                self.fields.tag()?
            };
            if self.context.options.missing == Missing::Zero
                && let Some(field) = self.next_missing(message, tag >> 3)
            {
                self.fields = start;
                return Ok(Some(field));
            }
            let field = match message.position(tag >> 3) {
                Some(at) if at >= self.at => {
                    self.at = at + 1;
                    message.fields.get(at)
                }
                _ => None,
            };
            let Some(field) = field else {
                if start.is_empty() {
                    return Ok(None);
                }
                self.skip_unknown(message, start)?;
                continue;
            };
            let value = if field.tag == tag && field.container == Container::One {
                self.usual_value(field)
            } else {
                self.unusual_value(field, start)
            };
            let value = match value {
                Ok(value) => value,
                Err(error) => return Err(below(error, field)),
            };
            if field.presence == Presence::Nonzero && value.is_omitted() {
                continue;
            }
            self.value = Some(value);
            return Ok(Some(field));
        }
    }

    /// Sets `value` to the value of the next field that the bytes do not contain and that Go writes as JSON.
    ///
    /// Returns this field. Returns `None` if no such field has a number below `number`.
    #[inline(never)]
    fn next_missing(&mut self, message: &'static Message, number: u32) -> Option<&'static Field> {
        while let Some(field) = message.fields.get(self.at)
            && field.number() < number
        {
            self.at += 1;
            if field.is_written_if_missing() {
                self.value = Some(Value::missing(self.context, field));
                return Some(field);
            }
        }
        None
    }

    /// Reads the value of a single-valued field whose tag has the field's usual wire type.
    #[inline]
    fn usual_value(&mut self, field: &Field) -> Result<Value<'de>, WireError> {
        Ok(match field.value {
            Type::Text => Value::Text(self.fields.bytes()?),
            Type::Message(id) => {
                Value::Message(self.context.messages.get(id), self.fields.bytes()?)
            }
            Type::Int32 => Value::Integer(int32(self.fields.varint()?).into()),
            Type::Int64 => Value::Integer(self.fields.varint()?.cast_signed()),
            Type::Bool => Value::Scalar(Type::Bool, Some(WireValue::Varint(self.fields.varint()?))),
            Type::Bytes => Value::Scalar(Type::Bytes, Some(WireValue::Bytes(self.fields.bytes()?))),
            Type::Double => Value::Scalar(Type::Double, Some(self.fields.fixed64()?)),
        })
    }

    /// Reads a list, a map, or a value of another wire type than usual. The field begins at `start`.
    #[inline(never)]
    fn unusual_value(
        &mut self,
        field: &Field,
        start: WireFields<'de>,
    ) -> Result<Value<'de>, WireError> {
        self.fields = start;
        Value::read(self.context, field, &mut self.fields)
    }

    /// Skips the field at `start`, which the table does not contain.
    ///
    /// Returns an error if the table contains the field: the field then follows a field with a greater number.
    #[cold]
    fn skip_unknown(
        &mut self,
        message: &'static Message,
        start: WireFields<'de>,
    ) -> Result<(), Error> {
        self.fields = start;
        let Some((number, _)) = self.fields.next().transpose()? else {
            return Ok(());
        };
        match message.position(number) {
            Some(_) => Err(self.context.unordered().into()),
            None => Ok(()),
        }
    }

    /// Reads the fields of an inline message next, before the remaining fields of the current message.
    #[cold]
    fn enter(&mut self, message: &'static Message, bytes: &'de [u8]) {
        let outer = Outer {
            fields: std::mem::replace(&mut self.fields, WireFields::new(bytes)),
            names: std::mem::replace(&mut self.names, Names::Message(message)),
            at: std::mem::take(&mut self.at),
            around: self.outer.take(),
        };
        self.outer = Some(Box::new(outer));
    }

    /// Reads the remaining fields of the outer message next, after the last field of an inline message.
    #[cold]
    fn leave(&mut self, outer: Outer<'de>) {
        self.fields = outer.fields;
        self.names = outer.names;
        self.at = outer.at;
        self.outer = outer.around;
    }

    /// Reads the next member of a message into `value`, and returns its name, or `None` after the last member.
    #[inline]
    fn next_name(&mut self, message: &'static Message) -> Result<Option<&'static str>, Error> {
        let mut message = message;
        loop {
            let Some(field) = self.next_field(message)? else {
                let Some(outer) = self.outer.take() else {
                    return Ok(None);
                };
                self.leave(*outer);
                match self.names {
                    Names::Message(outer) => message = outer,
                    Names::Map(_) => return Ok(None),
                }
                continue;
            };
            match self.value {
                Some(Value::Message(inner, bytes)) if field.presence == Presence::Inline => {
                    self.enter(inner, bytes);
                    message = inner;
                }
                _ => {
                    self.name = field.name.as_bytes();
                    return Ok(Some(field.name));
                }
            }
        }
    }

    /// Reads the next entry of a map into `value`, and returns its key, or `None` after the last entry.
    ///
    /// In the bytes, an entry is a message with the fields `{1: key, 2: value}`.
    #[inline]
    fn next_key(&mut self, value_type: Type) -> Result<Option<Cow<'de, str>>, Error> {
        let Some(entry) = self.fields.next() else {
            return Ok(None);
        };
        self.context.count()?;
        let (mut key, mut value) = (&[][..], None);
        for field in WireFields::new(entry?.1.bytes()?) {
            match field? {
                (1, field) => key = field.bytes()?,
                (2, field) => value = Some(field),
                _ => {}
            }
        }
        self.name = key;
        let value = match value {
            Some(value) => Value::item(self.context, value_type, value),
            None => Ok(Value::zero(self.context, value_type)),
        };
        self.value = Some(value.map_err(|error| Error::from(error).below(self.step()))?);
        Ok(Some(String::from_utf8_lossy(key)))
    }

    /// Sets `value` to the next member of the type meta, and returns the member's name.
    #[cold]
    fn next_type_meta(&mut self) -> Option<&'static str> {
        let (api_version, kind) = self.context.type_meta?;
        let (name, value, next) = match self.type_meta {
            TypeMeta::ApiVersion => ("apiVersion", api_version, TypeMeta::Kind),
            TypeMeta::Kind => ("kind", kind, TypeMeta::Visited),
            TypeMeta::Visited => return None,
        };
        self.type_meta = next;
        self.value = Some(Value::Text(value.as_bytes()));
        self.name = name.as_bytes();
        Some(name)
    }

    /// Returns the last step of the JSON path of the member that the visitor received last.
    #[cold]
    fn step(&self) -> Step {
        let name = String::from_utf8_lossy(self.name).into_owned();
        match self.names {
            Names::Message(_) => Step::Member(name),
            Names::Map(_) => Step::Key(name),
        }
    }
}

/// Returns an error whose JSON path contains the name of the field.
#[cold]
fn below(error: WireError, field: &Field) -> Error {
    Error::from(error).below(Step::Member(field.name.to_owned()))
}

impl<'de> MapAccess<'de> for Members<'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let name = match self.names {
            Names::Map(value) => {
                let Some(key) = self.next_key(value)? else {
                    return Ok(None);
                };
                return seed.deserialize(CowStrDeserializer::new(key)).map(Some);
            }
            Names::Message(_) if self.type_meta != TypeMeta::Visited => self.next_type_meta(),
            Names::Message(message) => self.next_name(message)?,
        };
        match name {
            Some(name) => seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some(value) = self.value.take() else {
            return Err(Reason::new("a value was requested before its key").into());
        };
        if let (Names::Message(..), Err(reason)) = (self.names, self.context.count()) {
            return Err(Error::from(reason).below(self.step()));
        }
        let mut value = seed.deserialize(Deserializer {
            context: self.context,
            value,
            depth: self.depth,
        });
        // The error is changed in place: a result that is returned as it is need not be moved.
        if let Err(error) = &mut value {
            error.enter(self.step());
        }
        value
    }
}
