//! Encodes a JSON object as a protobuf message, with [`encode`].
//!
//! Guarantees: the bytes equal the bytes that Go writes for an object with the same JSON. Returns an error
//! for a member that the message has no field for, or whose value does not fit the field.
//!
//! Does not write the [`Envelope`](crate::Envelope) around the message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp, civil::DateTime};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Reason, Step},
    scalar::{EPOCH, SECONDS},
    table::{Container, Field, Form, Message, MessageId, Messages, Presence, Type},
    write::{put_bytes, put_fixed64, put_head, put_varint},
};

/// Encodes `object` as a message.
///
/// Ignores the object's members `apiVersion` and `kind`, because they are part of the
/// [`Envelope`](crate::Envelope).
///
/// # Errors
/// Returns an error if the message has no field for a member, or if a value does not fit its field. The error
/// contains the JSON path of the member.
pub fn encode(message: MessageId, object: &Value) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder {
        messages: Messages::v1_36(),
        bytes: Vec::new(),
    };
    let message = encoder.messages.get(message);
    match object {
        Value::Object(members) => encoder.object(message, members, &TYPE_META)?,
        _ => return Err(misfit("an object")),
    }
    Ok(encoder.bytes)
}

/// The members of an object that belong to the envelope instead of the message.
const TYPE_META: [&str; 2] = ["apiVersion", "kind"];

struct Encoder {
    messages: &'static Messages,
    bytes: Vec<u8>,
}

impl Encoder {
    /// Writes the members of a JSON object as fields of `message`.
    ///
    /// Returns an error if a member has no field in the message and is not in `without`.
    fn object(
        &mut self,
        message: &'static Message,
        members: &Map<String, Value>,
        without: &[&str],
    ) -> Result<(), Error> {
        let written = self.fields(message, members)?;
        let left_out = without.iter().filter(|name| members.contains_key(**name));
        if written + left_out.count() == members.len() {
            return Ok(());
        }
        let is_unknown =
            |name: &&String| !without.contains(&name.as_str()) && !self.has_field(message, name);
        match members.keys().find(is_unknown) {
            Some(name) => {
                Err(Error::from(Reason::new("there is no such field"))
                    .below(Step::Key(name.clone())))
            }
            None => Ok(()),
        }
    }

    fn has_field(&self, message: &Message, name: &str) -> bool {
        message.fields.iter().any(|field| match field.value {
            Type::Message(inner) if field.is_inline() => {
                self.has_field(self.messages.get(inner), name)
            }
            _ => field.name == name,
        })
    }

    /// Writes all fields of `message` with the values in `members`. Returns the number of members with a
    /// field.
    fn fields(
        &mut self,
        message: &'static Message,
        members: &Map<String, Value>,
    ) -> Result<usize, Error> {
        let mut written = 0;
        for field in &message.fields {
            if let (true, Type::Message(inner)) = (field.is_inline(), field.value) {
                let start = self.bytes.len();
                written += self.fields(self.messages.get(inner), members)?;
                put_head(field.number(), start, &mut self.bytes);
                continue;
            }
            let member = members.get(field.name);
            written += usize::from(member.is_some());
            self.field(field, member.unwrap_or(&Value::Null))
                .map_err(|error| error.below(Step::Member(field.name.to_owned())))?;
        }
        Ok(written)
    }

    fn field(&mut self, field: &Field, value: &Value) -> Result<(), Error> {
        match (field.container, value) {
            (Container::One, Value::Null) if !is_written_as_zero(field) => Ok(()),
            (Container::One, value) => self.value(field.number(), field.value, value),
            (_, Value::Null) => Ok(()),
            (Container::List, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    self.value(field.number(), field.value, item)
                        .map_err(|error| error.below(Step::Item(at)))?;
                }
                Ok(())
            }
            (Container::Map, Value::Object(entries)) => {
                // Go sorts the keys too.
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_unstable_by_key(|(key, _)| *key);
                for (key, value) in entries {
                    let start = self.bytes.len();
                    put_bytes(1, key.as_bytes(), &mut self.bytes);
                    self.value(2, field.value, value)
                        .map_err(|error| error.below(Step::Key(key.clone())))?;
                    put_head(field.number(), start, &mut self.bytes);
                }
                Ok(())
            }
            (Container::List, _) => Err(misfit("a list")),
            (Container::Map, _) => Err(misfit("an object")),
        }
    }

    /// Writes a field with a single value. For a JSON null, writes the zero value of the field's type.
    fn value(&mut self, number: u32, value_type: Type, value: &Value) -> Result<(), Error> {
        let to = &mut self.bytes;
        match (value_type, value) {
            (Type::Bool, Value::Bool(value)) => put_varint(number, u64::from(*value), to),
            (Type::Bool | Type::Int32 | Type::Int64, Value::Null) => put_varint(number, 0, to),
            (Type::Int32, value) => {
                let value = value.as_i64().and_then(|value| i32::try_from(value).ok());
                let value = value.ok_or_else(|| misfit("an integer with 32 bits"))?;
                put_varint(number, i64::from(value).cast_unsigned(), to);
            }
            (Type::Int64, value) => {
                let value = value
                    .as_i64()
                    .ok_or_else(|| misfit("an integer with 64 bits"))?;
                put_varint(number, value.cast_unsigned(), to);
            }
            (Type::Double, Value::Null) => put_fixed64(number, 0, to),
            (Type::Double, value) => {
                let value = value.as_f64().ok_or_else(|| misfit("a number"))?;
                put_fixed64(number, value.to_bits(), to);
            }
            (Type::Text | Type::Bytes, Value::Null) => put_bytes(number, b"", to),
            (Type::Text, Value::String(text)) => put_bytes(number, text.as_bytes(), to),
            (Type::Bytes, Value::String(text)) => {
                let bytes = STANDARD.decode(text).map_err(|_| misfit("base64"))?;
                put_bytes(number, &bytes, to);
            }
            (Type::Message(id), value) => {
                let start = self.bytes.len();
                self.message(self.messages.get(id), value)?;
                put_head(number, start, &mut self.bytes);
            }
            (Type::Bool, _) => return Err(misfit("true or false")),
            (Type::Text | Type::Bytes, _) => return Err(misfit("a text")),
        }
        Ok(())
    }

    /// Writes the fields of a message. A JSON null is written as the message's zero value.
    fn message(&mut self, message: &'static Message, value: &Value) -> Result<(), Error> {
        match (message.form, value) {
            (Form::Object, Value::Null) => self.object(message, &Map::new(), &[]),
            // A nested kind, such as a claim template, has its type in JSON only.
            (Form::Object, Value::Object(members)) if message.is_kind => {
                self.object(message, members, &TYPE_META)
            }
            (Form::Object, Value::Object(members)) => self.object(message, members, &[]),
            (Form::Object, _) => Err(misfit("an object")),
            (Form::List, value) => {
                let field = message.fields.first();
                field.map_or(Ok(()), |field| self.field(field, value))
            }
            (Form::Either, value) => self.either(message, value),
            (Form::IntOrString, value) => self.int_or_string(value),
            (Form::Json, Value::Null) => Ok(()),
            (Form::Json, value) => {
                put_bytes(1, value.to_string().as_bytes(), &mut self.bytes);
                Ok(())
            }
            (Form::Quantity, Value::Null) => {
                put_bytes(1, b"0", &mut self.bytes);
                Ok(())
            }
            (Form::Quantity, Value::String(text)) => {
                put_bytes(1, text.as_bytes(), &mut self.bytes);
                Ok(())
            }
            (Form::Quantity, _) => Err(misfit("a quantity as text")),
            (Form::Time | Form::MicroTime, value) => self.time(value),
        }
    }

    /// Writes a JSON value as a message with two fields ([`Form::Either`]), such as `JSONSchemaPropsOrBool`.
    ///
    /// The value is written to the second field if it fits: an array if this field is a list, or an object if
    /// this field is a single message. Otherwise, the value is written to the first field.
    ///
    /// If the value is written to the second field, and the first field is a boolean, the first field is also
    /// written, as `true`. Go does the same.
    fn either(&mut self, message: &'static Message, value: &Value) -> Result<(), Error> {
        let [first, second] = &message.fields[..] else {
            return Ok(());
        };
        let fits_second = match second.container {
            Container::One => value.is_object(),
            Container::List | Container::Map => value.is_array(),
        };
        // Go's `JSONSchemaPropsOrBool` allows what its schema describes.
        let first_value = match first.value {
            Type::Bool if fits_second => &Value::Bool(true),
            _ if fits_second => &Value::Null,
            _ => value,
        };
        self.field(first, first_value)
            .map_err(|error| error.below(Step::Member(first.name.to_owned())))?;
        if fits_second {
            self.field(second, value)?;
        }
        Ok(())
    }

    /// Writes an `IntOrString` as `{1: type, 2: integer, 3: text}`. Type 0 is an integer, and type 1 a text.
    fn int_or_string(&mut self, value: &Value) -> Result<(), Error> {
        let is_text = value.is_string();
        put_varint(1, u64::from(is_text), &mut self.bytes);
        let (integer, text) = if is_text {
            (&Value::Null, value)
        } else {
            (value, &Value::Null)
        };
        self.value(2, Type::Int32, integer)?;
        self.value(3, Type::Text, text)
    }

    /// Writes a time as the fields `{1: seconds, 2: nanoseconds}` since 1970, and null as no fields.
    fn time(&mut self, value: &Value) -> Result<(), Error> {
        if value.is_null() {
            return Ok(());
        }
        let time = value.as_str().and_then(since_1970);
        // Before 1970, the nanoseconds count from the second before.
        let time = time.map(|time| {
            let borrowed = i64::from(time.subsec_nanos() < 0);
            let nanos = time.subsec_nanos().rem_euclid(1_000_000_000);
            (time.as_secs() - borrowed, nanos)
        });
        let time = time.filter(|(seconds, _)| SECONDS.contains(seconds));
        let (seconds, nanos) = time.ok_or_else(|| misfit("a time as RFC 3339 text"))?;
        put_varint(1, seconds.cast_unsigned(), &mut self.bytes);
        put_varint(2, i64::from(nanos).cast_unsigned(), &mut self.bytes);
        Ok(())
    }
}

/// Returns the Unix time of an RFC 3339 text.
fn since_1970(text: &str) -> Option<SignedDuration> {
    // A `Timestamp` ends before the last day of year 9999 does.
    let in_utc = text.strip_suffix('Z');
    if let Some(civil) = in_utc.and_then(|text| text.parse::<DateTime>().ok()) {
        return Some(civil.duration_since(EPOCH));
    }
    let time = text.parse::<Timestamp>().ok()?;
    Some(time.as_duration())
}

/// Returns whether Go writes the zero value of a field that is absent in JSON.
///
/// The field must not be a list or a map.
fn is_written_as_zero(field: &Field) -> bool {
    match field.presence {
        // Only pointers and byte slices can be unset.
        Presence::Always | Presence::Inline | Presence::Nonzero => field.value != Type::Bytes,
        Presence::Nullable | Presence::Sent => false,
    }
}

fn misfit(wanted: &str) -> Error {
    Reason::new(format!("it must be {wanted}")).into()
}

#[cfg(test)]
mod tests;
