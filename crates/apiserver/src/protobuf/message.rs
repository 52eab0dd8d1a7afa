//! Converts a protobuf message to JSON.
//!
//! Guarantees:
//! - the JSON equals Go's for the same object, including omitted, null and zero values;
//! - fields that are not in the message table are skipped, as a Kubernetes server of the table's version
//!   does;
//! - the size of the result is bounded by [`VALUES_MAX`] and [`DEPTH_MAX`], even if a small input expands to
//!   many values;
//! - an error contains the field's path in JSON.

use std::fmt;

use serde_json::{Map, Value};

use super::scalar::{self, Reason};
use super::wire::{WireError, WireFields, WireValue};
use crate::kinds::wire::{Container, Field, Form, Message, MessageId, Messages, Presence, Type};
use crate::object::{DEPTH_MAX, height};

/// Maximum number of JSON values that one body may produce.
///
/// The size of the body is not a sufficient limit: an empty message has two bytes but may produce a dozen
/// members.
/// In a measurement, the worst allowed body needed two thirds of the memory of the worst 3 MB of JSON.
const VALUES_MAX: usize = 500_000;

/// An error in a message, with the JSON path of the field that caused the error.
#[derive(Debug)]
pub(super) struct MessageError {
    /// Steps of the JSON path, from the innermost to the outermost.
    path: Vec<Step>,
    reason: Reason,
}

#[derive(Debug)]
enum Step {
    Member(&'static str),
    Item(usize),
    Key(String),
}

/// Decodes the message of one request body, and limits the number of JSON values that the message produces.
pub(super) struct Decoder {
    messages: &'static Messages,
    values_left: usize,
}

/// Data of one field that the decoder has received so far.
#[derive(Clone)]
enum Slot<'a> {
    Nothing,
    Value(Value),
    /// The byte ranges of one message; protobuf merges a message that is sent in several parts.
    /// The byte ranges are borrowed, because copies would multiply with the nesting depth.
    Message(Vec<&'a [u8]>),
}

// === impl MessageError ===

impl MessageError {
    fn below(mut self, step: Step) -> MessageError {
        self.path.push(step);
        self
    }
}

impl From<Reason> for MessageError {
    fn from(reason: Reason) -> MessageError {
        MessageError {
            path: Vec::new(),
            reason,
        }
    }
}

impl From<WireError> for MessageError {
    fn from(error: WireError) -> MessageError {
        Reason::from(error).into()
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.path.iter().rev().enumerate() {
            match step {
                Step::Member(name) if at == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Item(index) => write!(f, "[{index}]")?,
                Step::Key(key) => write!(f, "[{key}]")?,
            }
        }
        if !self.path.is_empty() {
            f.write_str(": ")?;
        }
        self.reason.fmt(f)
    }
}

// === impl Decoder ===

impl Decoder {
    pub(super) fn new() -> Decoder {
        Decoder {
            messages: Messages::builtin(),
            values_left: VALUES_MAX,
        }
    }

    /// Decodes the message of a kind and returns the JSON members.
    ///
    /// The members do not include `apiVersion` and `kind`, which are part of the envelope.
    pub(super) fn kind(
        &mut self,
        id: MessageId,
        bytes: &[u8],
    ) -> Result<Map<String, Value>, MessageError> {
        self.members(self.messages.get(id), &[bytes], 1)
    }

    /// Decodes one message, which was sent in `parts`.
    ///
    /// `depth` is the number of nested JSON containers, including the container of this message.
    fn message(
        &mut self,
        id: MessageId,
        parts: &[&[u8]],
        depth: usize,
    ) -> Result<Value, MessageError> {
        let message = self.messages.get(id);
        let mut value = match message.form {
            Form::Object => return self.members(message, parts, depth).map(Value::Object),
            Form::List | Form::Either => {
                let mut members = self.members(message, parts, depth)?;
                let mut values = message.fields.iter().rev();
                let found = values.find_map(|field| {
                    let value = members.remove(field.name)?;
                    (!value.is_null()).then_some(value)
                });
                found.unwrap_or(Value::Null)
            }
            special => match parts {
                [bytes] => scalar::special(special, bytes)?,
                _ => scalar::special(special, &parts.concat())?,
            },
        };
        if message.form == Form::List && value.is_null() {
            value = Value::Array(Vec::new());
        }
        if message.form == Form::Json && depth - 1 + height(&value) > DEPTH_MAX {
            return Err(too_deep().into());
        }
        Ok(value)
    }

    fn members(
        &mut self,
        message: &'static Message,
        parts: &[&[u8]],
        depth: usize,
    ) -> Result<Map<String, Value>, MessageError> {
        if depth > DEPTH_MAX {
            return Err(too_deep().into());
        }
        let mut slots = vec![Slot::Nothing; message.fields.len()];
        for field in parts.iter().copied().flat_map(WireFields::new) {
            let (number, value) = field?;
            if let Some(at) = message.position(number) {
                let field = &message.fields[at];
                self.take(field, &mut slots[at], value, depth)
                    .map_err(|refusal| refusal.below(Step::Member(field.name)))?;
            }
        }
        let mut members = Map::new();
        for (field, slot) in message.fields.iter().zip(slots) {
            match self.shown(field, slot, depth) {
                Ok(None) => {}
                Ok(Some(Value::Object(inner))) if field.presence == Presence::Inline => {
                    members.extend(inner);
                }
                Ok(Some(value)) => {
                    let counted = self.count().map_err(MessageError::from);
                    counted.map_err(|refusal| refusal.below(Step::Member(field.name)))?;
                    members.insert(field.name.to_owned(), value);
                }
                // An inlined message has no path of its own in JSON.
                Err(refusal) if field.presence == Presence::Inline => return Err(refusal),
                Err(refusal) => return Err(refusal.below(Step::Member(field.name))),
            }
        }
        Ok(members)
    }

    /// Adds a received value of a field to the data in `slot`.
    fn take<'a>(
        &mut self,
        field: &Field,
        slot: &mut Slot<'a>,
        value: WireValue<'a>,
        depth: usize,
    ) -> Result<(), MessageError> {
        match field.container {
            Container::One => match (field.value, value) {
                (Type::Message(_), WireValue::Bytes(bytes)) => match slot {
                    Slot::Message(parts) => parts.push(bytes),
                    _ => *slot = Slot::Message(vec![bytes]),
                },
                (value_type, value) => *slot = Slot::Value(scalar::scalar(value_type, value)?),
            },
            Container::List => {
                if let Slot::Nothing = slot {
                    *slot = Slot::Value(Value::Array(Vec::new()));
                }
                if let Slot::Value(Value::Array(items)) = slot {
                    self.take_items(field.value, items, value, depth + 2)?;
                }
            }
            Container::Map => {
                if let Slot::Nothing = slot {
                    *slot = Slot::Value(Value::Object(Map::new()));
                }
                if let Slot::Value(Value::Object(entries)) = slot {
                    self.take_entry(field.value, entries, value, depth + 2)?;
                }
            }
        }
        Ok(())
    }

    /// Adds a received value to a list: one item, or several items if the value contains packed numbers.
    fn take_items(
        &mut self,
        value_type: Type,
        items: &mut Vec<Value>,
        value: WireValue<'_>,
        depth: usize,
    ) -> Result<(), MessageError> {
        match (value_type, value) {
            (Type::Bool | Type::Int32 | Type::Int64, WireValue::Bytes(packed)) => {
                let mut packed = WireFields::new(packed);
                while !packed.is_empty() {
                    self.count()?;
                    let number = WireValue::Varint(packed.varint()?);
                    items.push(scalar::scalar(value_type, number)?);
                }
            }
            (value_type, value) => {
                self.count()?;
                let item = self
                    .element(value_type, value, depth)
                    .map_err(|refusal| refusal.below(Step::Item(items.len())))?;
                items.push(item);
            }
        }
        Ok(())
    }

    /// Adds a received entry to a map; the entry is a message `{1: key, 2: value}`.
    fn take_entry(
        &mut self,
        value_type: Type,
        entries: &mut Map<String, Value>,
        value: WireValue<'_>,
        depth: usize,
    ) -> Result<(), MessageError> {
        let bytes = value.bytes()?;
        self.count()?;
        let (mut key, mut sent) = (String::new(), None);
        for field in WireFields::new(bytes) {
            match field? {
                (1, value) => key = String::from_utf8_lossy(value.bytes()?).into_owned(),
                (2, value) => sent = Some(value),
                _ => {}
            }
        }
        let value = match (sent, value_type) {
            (Some(value), _) => self.element(value_type, value, depth),
            (None, Type::Message(_)) => self.element(value_type, WireValue::Bytes(&[]), depth),
            (None, _) => Ok(scalar::zero(value_type)),
        };
        let value = value.map_err(|refusal| refusal.below(Step::Key(key.clone())))?;
        entries.insert(key, value);
        Ok(())
    }

    /// Decodes one item of a list, or one value of a map.
    fn element(
        &mut self,
        value_type: Type,
        value: WireValue<'_>,
        depth: usize,
    ) -> Result<Value, MessageError> {
        match (value_type, value) {
            (Type::Message(id), WireValue::Bytes(bytes)) => self.message(id, &[bytes], depth),
            (value_type, value) => Ok(scalar::scalar(value_type, value)?),
        }
    }

    /// Returns the JSON value of a field, or `None` if the JSON omits the field.
    fn shown(
        &mut self,
        field: &Field,
        slot: Slot<'_>,
        depth: usize,
    ) -> Result<Option<Value>, MessageError> {
        let depth = match field.presence {
            Presence::Inline => depth,
            _ => depth + 1,
        };
        let value = match (slot, field.value, field.presence) {
            (Slot::Value(value), ..) => value,
            (Slot::Message(parts), Type::Message(id), _) => self.message(id, &parts, depth)?,
            (_, _, Presence::Nonzero | Presence::Sent) => return Ok(None),
            (_, _, Presence::Nullable) => Value::Null,
            (_, Type::Message(id), _) if field.container == Container::One => {
                self.message(id, &[], depth)?
            }
            // Go writes nil slices and maps as null.
            _ if field.container != Container::One || field.value == Type::Bytes => Value::Null,
            (_, value_type, _) => scalar::zero(value_type),
        };
        let hidden = field.presence == Presence::Nonzero && scalar::is_zero(&value);
        Ok((!hidden).then_some(value))
    }

    fn count(&mut self) -> Result<(), Reason> {
        let left = self.values_left.checked_sub(1);
        self.values_left =
            left.ok_or_else(|| Reason::new(format!("it has more than {VALUES_MAX} values")))?;
        Ok(())
    }
}

fn too_deep() -> Reason {
    Reason::new(format!("it is nested deeper than {DEPTH_MAX} levels"))
}

#[cfg(test)]
mod tests;
