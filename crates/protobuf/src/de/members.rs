//! Passes the fields of a message or the entries of a map to a serde visitor, with [`Members`].
//!
//! This module does not sort fields: a known field after a known field with a greater number is an error.
//! An unknown field is allowed at any position.
//!
//! Guarantees: an error contains the JSON path of its field.

use std::borrow::Cow;

use serde::de::{
    DeserializeSeed, MapAccess,
    value::{BorrowedStrDeserializer, CowStrDeserializer},
};

use super::{
    Context, Deserializer, Missing, Slot,
    value::{Run, Value},
};
use crate::{
    error::{Error, Reason, Step},
    scalar::int32,
    table::{Container, Field, Message, Presence, Type},
    wire::{WireError, WireFields, WireValue},
};

/// The serde `MapAccess` of a message or a map. The members have the order of the encoded bytes.
///
/// With [`Missing::Zero`], includes missing fields that Go's JSON encoder writes with their zero values.
pub(super) struct Members<'de, 'c> {
    /// The value of the member that the visitor received last.
    slot: Slot<'de, 'c>,
    fields: WireFields<'de>,
    names: Names,
    /// Index in [`Message::fields`] after the last field that was read or skipped.
    at: usize,
    /// The name of the member that the visitor received last, as bytes.
    name: &'de [u8],
    /// The unread rest of the enclosing message, if the current message is an inline field.
    outer: Option<Outer<'de>>,
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

/// The type meta member that the visitor receives next. Type meta consists of `apiVersion` and `kind`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeMeta {
    ApiVersion,
    Kind,
    /// The visitor has received `apiVersion` and `kind`, or the object has no type meta.
    Visited,
}

impl<'de, 'c> Members<'de, 'c> {
    #[inline]
    pub(super) fn of_message(
        object: &Slot<'de, 'c>,
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
    pub(super) fn of_map(object: &Slot<'de, 'c>, run: Run<'de>) -> Result<Self, Reason> {
        Self::new(object, run.bytes, Names::Map(run.value))
    }

    #[inline]
    fn new(object: &Slot<'de, 'c>, bytes: &'de [u8], names: Names) -> Result<Self, Reason> {
        object.context.count_container()?;
        let has_type_meta = object.depth == 1 && object.context.type_meta.is_some();
        Ok(Self {
            slot: object.inner(),
            fields: WireFields::new(bytes),
            names,
            at: 0,
            name: &[],
            outer: None,
            type_meta: if has_type_meta {
                TypeMeta::ApiVersion
            } else {
                TypeMeta::Visited
            },
        })
    }

    /// Stores the value of the message's next field in `self.slot`, and returns the definition of the field.
    // A copy of this large function in each visitor would slow down decoding.
    #[inline(never)]
    fn next_field(&mut self, message: &'static Message) -> Result<Option<&'static Field>, Error> {
        loop {
            let start = self.fields.clone();
            let tag = if start.is_empty() {
                u32::MAX
            } else {
                self.fields.tag()?
            };
            if self.slot.context.options.missing == Missing::Zero
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
            self.fields = start;
            let value = match Value::read(self.slot.context, field, &mut self.fields) {
                Ok(value) => value,
                Err(error) => return Err(below(error, field)),
            };
            if field.presence == Presence::Nonzero && value.is_omitted() {
                continue;
            }
            self.slot.value = value;
            return Ok(Some(field));
        }
    }

    /// Returns the next field that the bytes do not contain, but that Go's JSON encoder writes. Stores in
    /// `self.slot` the zero value or null that Go writes.
    ///
    /// `number` is the number of the next field in the bytes. Only fields with lower numbers count as
    /// missing.
    #[inline(never)]
    fn next_missing(&mut self, message: &'static Message, number: u32) -> Option<&'static Field> {
        while let Some(field) = message.fields.get(self.at)
            && field.number() < number
        {
            self.at += 1;
            if field.is_written_if_missing() {
                self.slot.value = Value::missing(self.slot.context, field);
                return Some(field);
            }
        }
        None
    }

    /// Skips the field that begins at `start`, if `message` does not define the field.
    ///
    /// # Errors
    /// Returns an error if the bytes of the field are invalid. Also returns an error if `message` defines the
    /// field, because the field is then out of order.
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
            Some(_) => Err(self.slot.context.unordered().into()),
            None => Ok(()),
        }
    }

    /// Makes an inline message the current message. The rest of the outer message is read afterwards.
    #[cold]
    fn enter(&mut self, message: &'static Message, bytes: &'de [u8]) {
        let outer = Outer {
            fields: std::mem::replace(&mut self.fields, WireFields::new(bytes)),
            names: std::mem::replace(&mut self.names, Names::Message(message)),
            at: std::mem::take(&mut self.at),
            around: self.outer.take().map(Box::new),
        };
        self.outer = Some(outer);
    }

    /// Makes the outer message the current message again, after an inline message has ended.
    #[cold]
    fn leave(&mut self, outer: Outer<'de>) {
        self.fields = outer.fields;
        self.names = outer.names;
        self.at = outer.at;
        self.outer = outer.around.map(|around| *around);
    }

    /// Stores the value of the message's next member in `self.slot`, and returns the member's name.
    ///
    /// Returns `None` after the last member.
    #[inline]
    fn next_name(&mut self, message: &'static Message) -> Result<Option<&'static str>, Error> {
        let are_missing_omitted = self.slot.context.options.missing == Missing::Nothing;
        if self.fields.is_empty() && are_missing_omitted && self.outer.is_none() {
            return Ok(None);
        }
        match self.next_plain(message, are_missing_omitted) {
            Some(name) => Ok(Some(name)),
            None => self.next_of_any_form(message),
        }
    }

    /// Fast path of [`next_name`](Self::next_name).
    ///
    /// Returns `None` at the end of the message, and before a field that this path does not support, such as
    /// a packed list. The caller must then call [`next_of_any_form`](Self::next_of_any_form).
    #[inline(never)]
    fn next_plain(
        &mut self,
        message: &'static Message,
        are_missing_omitted: bool,
    ) -> Option<&'static str> {
        loop {
            let mut fields = self.fields.clone();
            let at = message.plain_position(fields.short_tag()?)?;
            let field = message.fields.get(at)?;
            let has_missing = usize::from(field.required_before) > self.at && !are_missing_omitted;
            if at < self.at || has_missing {
                return None;
            }
            if field.is_omitted_if_0 && fields.skip_0()? {
                self.fields = fields;
                self.at = at + 1;
                continue;
            }
            let value = &mut self.slot.value;
            match field.container {
                Container::One => usual_value(self.slot.context, field, &mut fields, value)?,
                Container::List => *value = Value::List(run(field, &self.fields, &mut fields)?),
                Container::Map => *value = Value::Map(run(field, &self.fields, &mut fields)?),
            }
            self.fields = fields;
            self.at = at + 1;
            if field.is_omitted_if_null && self.slot.value.is_omitted() {
                continue;
            }
            self.name = field.name.as_bytes();
            return Some(field.name);
        }
    }

    #[inline(never)]
    fn next_of_any_form(
        &mut self,
        message: &'static Message,
    ) -> Result<Option<&'static str>, Error> {
        let mut message = message;
        loop {
            let Some(field) = self.next_field(message)? else {
                let Some(outer) = self.outer.take() else {
                    return Ok(None);
                };
                self.leave(outer);
                match self.names {
                    Names::Message(outer) => message = outer,
                    Names::Map(_) => return Ok(None),
                }
                continue;
            };
            match self.slot.value {
                Value::Message(inner, bytes) if field.presence == Presence::Inline => {
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

    /// Reads the next entry of a map: stores its value in `self.slot`, and returns its key.
    #[inline]
    fn next_map_key(&mut self, value_type: Type) -> Result<Option<Cow<'de, str>>, Error> {
        let Some(entry) = self.fields.next() else {
            return Ok(None);
        };
        self.slot.context.count()?;
        // An entry is a message with the fields `{1: key, 2: value}`.
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
            Some(value) => Value::item(self.slot.context, value_type, value),
            None => Ok(Value::zero(self.slot.context, value_type)),
        };
        self.slot.value = value.map_err(|error| Error::from(error).below(self.step()))?;
        Ok(Some(match str::from_utf8(key) {
            Ok(key) => Cow::Borrowed(key),
            Err(_) => String::from_utf8_lossy(key),
        }))
    }

    /// Returns the name of the object's next type meta member (`apiVersion` or `kind`), and stores the
    /// member's value in `self.slot`.
    #[cold]
    fn next_type_meta(&mut self) -> Option<&'static str> {
        let (api_version, kind) = self.slot.context.type_meta?;
        let (name, value, next) = match self.type_meta {
            TypeMeta::ApiVersion => ("apiVersion", api_version, TypeMeta::Kind),
            TypeMeta::Kind => ("kind", kind, TypeMeta::Visited),
            TypeMeta::Visited => return None,
        };
        self.type_meta = next;
        self.slot.value = Value::Text(value.as_bytes());
        self.name = name.as_bytes();
        Some(name)
    }

    /// Returns the element of the JSON path for the member that the visitor received last.
    #[cold]
    fn step(&self) -> Step {
        let name = String::from_utf8_lossy(self.name).into_owned();
        match self.names {
            Names::Message(_) => Step::Member(name),
            Names::Map(_) => Step::Key(name),
        }
    }
}

/// Reads a value of type `field.value` into `value`, or returns `None` if the bytes are invalid.
///
/// The caller must have read the tag, and checked that the tag's wire type matches `field.value`.
///
/// The value is not returned, because copying a returned value would take a third of the decoding time.
#[inline]
fn usual_value<'de>(
    context: &Context<'de>,
    field: &Field,
    fields: &mut WireFields<'de>,
    value: &mut Value<'de>,
) -> Option<()> {
    match field.value {
        Type::Text => *value = Value::Text(fields.bytes().ok()?),
        Type::Message(id) => {
            *value = Value::Message(context.messages.get(id), fields.bytes().ok()?);
        }
        Type::Int32 => *value = Value::Integer(int32(fields.varint().ok()?).into()),
        Type::Int64 => *value = Value::Integer(fields.varint().ok()?.cast_signed()),
        Type::Bool => {
            let number = fields.varint().ok()?;
            *value = Value::Scalar(Type::Bool, Some(WireValue::Varint(number)));
        }
        Type::Bytes => {
            let bytes = fields.bytes().ok()?;
            *value = Value::Scalar(Type::Bytes, Some(WireValue::Bytes(bytes)));
        }
        Type::Double => {
            *value = Value::Scalar(Type::Double, Some(fields.fixed64().ok()?));
        }
    }
    Some(())
}

/// Reads all items of a list, or all entries of a map.
///
/// `start` is the position before the tag of the first item, and `fields` is the position after this tag.
#[inline]
fn run<'de>(
    field: &Field,
    start: &WireFields<'de>,
    fields: &mut WireFields<'de>,
) -> Option<Run<'de>> {
    fields.bytes().ok()?;
    Some(Run {
        value: field.value,
        count: 1 + fields.skip_run(field.tag),
        bytes: start.until(fields),
    })
}

/// Converts `error` to an [`Error`] whose JSON path contains the name of `field`.
#[cold]
fn below(error: WireError, field: &Field) -> Error {
    Error::from(error).below(Step::Member(field.name.to_owned()))
}

impl<'de> MapAccess<'de> for &mut Members<'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let name = match self.names {
            Names::Map(value) => {
                let Some(key) = self.next_map_key(value)? else {
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
        if let (Names::Message(..), Err(reason)) = (self.names, self.slot.context.count()) {
            return Err(Error::from(reason).below(self.step()));
        }
        let mut value = seed.deserialize(Deserializer(&self.slot));
        // The error is changed in place: a result that is returned as it is need not be moved.
        if let Err(error) = &mut value {
            error.enter(self.step());
        }
        value
    }
}
