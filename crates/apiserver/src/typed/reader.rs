//! Decodes one JSON value of a given type.

use std::collections::BTreeSet;
use std::fmt;

use kube_informer_protobuf::{Container, MessageId, Type};
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::literal::Literal;
use super::presence;
use super::trail::{Family, Found, Mode, Place, Trail};
use super::value_type::{Target, ValueType, either, is_of_operation, member, message, type_meta};
use crate::field_validation::Wrong;
use crate::go_base64;
use crate::go_time::GoTime;

/// A name that `serde_json` reserves for itself: an object with it can't be parsed again, so it is an unknown field
/// everywhere.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Deserializes a value of a type, and records what is wrong with it.
///
/// A value of a wrong type is read as it is.
pub(super) struct Reader<'a> {
    value_type: ValueType,
    target: Target,
    trail: &'a mut Trail,
}

/// A member of a JSON object, as its object decodes it.
enum Member {
    Known(ValueType),
    Field(ValueType, Place),
    Unknown,
}

impl<'a> Reader<'a> {
    pub(super) fn new(value_type: ValueType, trail: &'a mut Trail) -> Reader<'a> {
        Reader {
            value_type,
            target: value_type.target(),
            trail,
        }
    }

    /// Records that the value is not of its type.
    fn mismatch(&mut self, found: Found<'_>) {
        let family = match self.target {
            Target::Either(id) => {
                if either(id).1.value == Type::Bool {
                    let why = "boolean or JSON schema expected";
                    self.trail.malformed(why.to_owned());
                }
                return;
            }
            Target::Time(_) => return self.trail.mismatch(found, "string", Family::Own),
            Target::Bool | Target::Text | Target::Literal(_) => Family::Simple,
            Target::List(_) | Target::Bytes => Family::List,
            Target::Map(_) => Family::Map,
            Target::Struct(_) => Family::Struct,
            // The caller checks these.
            Target::Anything | Target::Json | Target::Custom | Target::Operation => return,
        };
        let expected = self.value_type.go_type();
        self.trail.mismatch(found, &expected, family);
    }

    /// Decodes a number for a type that is no number.
    fn number(mut self, value: Value) -> Value {
        if matches!(self.target, Target::Anything) {
            return value;
        }
        self.mismatch(if value.is_f64() {
            Found::Float
        } else {
            Found::Integer
        });
        value
    }

    /// Decodes a text that can be in another form, or returns `None`.
    fn canonical(&mut self, text: &str) -> Option<String> {
        match self.target {
            Target::Bytes => {
                let bytes = go_base64::decode(text).map_err(|why| self.trail.not_base64(why));
                bytes.ok().map(|bytes| go_base64::encode(&bytes))
            }
            Target::Time(layout) => {
                let time = GoTime::parse(layout, text).map_err(|why| self.trail.malformed(why));
                time.ok().map(|time| time.canonical(layout))
            }
            Target::Anything | Target::Text => None,
            _ => {
                self.mismatch(Found::Text);
                None
            }
        }
    }

    /// Reads bytes as a list of numbers.
    fn list_of_bytes<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(text) = seq.next_element::<Box<RawValue>>()? {
            items.push(Literal::Byte.decode(text.get(), self.trail));
        }
        let byte = |item: &Value| match item {
            Value::Null => Some(0),
            item => u8::try_from(item.as_u64()?).ok(),
        };
        let bytes: Option<Vec<u8>> = items.iter().map(byte).collect();
        Ok(match bytes {
            Some(bytes) => Value::String(go_base64::encode(&bytes)),
            None => Value::Array(items),
        })
    }

    fn find(&self, name: &str) -> Member {
        match self.target {
            _ if name == RAW_VALUE => Member::Unknown,
            Target::Struct(id) => of_struct(id, name),
            Target::Map(value_type) => Member::Known(value_type),
            Target::Custom if name == "metadata" => Member::Known(ValueType::metadata()),
            Target::Operation if !is_of_operation(name) => Member::Unknown,
            _ => Member::Known(ValueType::Anything),
        }
    }

    fn members<'de, A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        // The names of null members, which are absent, but can be duplicates.
        let mut nulls = BTreeSet::new();
        // A later value of a map replaces the earlier one.
        let is_struct = matches!(self.target, Target::Struct(_));
        while let Some(name) = map.next_key::<String>()? {
            let found = self.find(&name);
            let earlier = members.remove(&name);
            let is_second = earlier.is_some() || nulls.contains(&name);
            let (value_type, value) = self.trail.member(&name, |trail| {
                if is_second && !matches!(found, Member::Unknown) {
                    trail.complain(Wrong::Duplicate);
                }
                let mut read = |value_type, trail: &mut Trail| {
                    let outer = trail.keeps_nulls;
                    trail.keeps_nulls |= earlier.is_some() && is_struct;
                    let value = map.next_value_seed(Reader::new(value_type, trail));
                    trail.keeps_nulls = outer;
                    value
                };
                match found {
                    Member::Known(value_type) => Ok((value_type, read(value_type, trail)?)),
                    Member::Field(value_type, place) => {
                        let value = trail.field(&place, |trail| read(value_type, trail));
                        Ok((value_type, value?))
                    }
                    Member::Unknown => {
                        trail.complain(Wrong::Unknown);
                        let value = if trail.mode == Mode::WithUnknown && name != RAW_VALUE {
                            read(ValueType::Anything, trail)?
                        } else {
                            map.next_value::<IgnoredAny>().map(|_| Value::Null)?
                        };
                        Ok((ValueType::Unknown, value))
                    }
                }
            })?;
            let value = if is_struct && earlier.is_some() {
                merged(value_type, earlier, value)
            } else {
                Some(value).filter(|value| !value.is_null())
            };
            let value = value.or_else(|| self.null(value_type));
            match value {
                Some(value) => drop(members.insert(name, value)),
                None => drop(nulls.insert(name)),
            }
        }
        Ok(Value::Object(members))
    }

    /// Returns what a null member of this value is.
    fn null(&self, value_type: ValueType) -> Option<Value> {
        match (self.target, value_type) {
            (_, ValueType::Unknown) => None,
            (Target::Struct(_), _) => self.trail.keeps_nulls.then_some(Value::Null),
            _ => Some(presence::zero_item(value_type)),
        }
    }
}

/// Returns what Go decodes a value into that has decoded an earlier value, if there is one.
///
/// Nulls in `value` are what they are in the text. Those in the result are what they are in Go. The result is `None` for
/// an absent value.
fn merged(value_type: ValueType, earlier: Option<Value>, value: Value) -> Option<Value> {
    match (value_type.target(), value) {
        (_, Value::Null) => earlier.filter(|_| !value_type.is_nullable()),
        (Target::Map(item), Value::Object(value)) => {
            let mut members = into_members(earlier);
            members.extend(value.into_iter().map(|(name, value)| {
                let value = merged(item, None, value);
                (name, value.unwrap_or_else(|| presence::zero_item(item)))
            }));
            Some(Value::Object(members))
        }
        (Target::Struct(id), Value::Object(value)) => {
            let mut members = into_members(earlier);
            for (name, value) in value {
                let earlier = members.remove(&name);
                let value = match of_struct(id, &name) {
                    Member::Field(value_type, _) => merged(value_type, earlier, value),
                    Member::Known(_) | Member::Unknown => Some(value),
                };
                members.extend(value.map(|value| (name, value)));
            }
            Some(Value::Object(members))
        }
        (Target::List(item), Value::Array(value)) => {
            let mut earlier = match earlier {
                Some(Value::Array(earlier)) => earlier.into_iter(),
                _ => Vec::new().into_iter(),
            };
            let items = value.into_iter().map(|value| {
                let merged = merged(item, earlier.next(), value);
                merged.unwrap_or_else(|| presence::zero_item(item))
            });
            Some(Value::Array(items.collect()))
        }
        (_, value) => Some(value),
    }
}

fn into_members(value: Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn of_struct(id: MessageId, name: &str) -> Member {
    let struct_type = message(id);
    let owner = struct_type.type_name();
    if struct_type.is_kind
        && let Some(name) = type_meta(name)
    {
        let inlined = vec!["TypeMeta"];
        return Member::Field(
            ValueType::TypeMeta,
            Place {
                owner,
                inlined,
                name,
            },
        );
    }
    match member(id, name) {
        Some((inlined, field)) => Member::Field(
            ValueType::Field(field),
            Place {
                owner,
                inlined,
                name: field.name,
            },
        ),
        None => Member::Unknown,
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.target {
            Target::Literal(literal) => {
                let text = Box::<RawValue>::deserialize(deserializer)?;
                Ok(literal.decode(text.get(), self.trail))
            }
            Target::Json => Value::deserialize(deserializer),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<Value, E> {
        match self.target {
            Target::Anything | Target::Bool => {}
            Target::Either(id) if either(id).1.value == Type::Bool => {}
            _ => self.mismatch(Found::Bool),
        }
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(self.number(Value::from(value)))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(self.number(Value::from(value)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let value = Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(self.number(value))
    }

    fn visit_str<E>(mut self, value: &str) -> Result<Value, E> {
        let canonical = self.canonical(value);
        Ok(Value::String(canonical.unwrap_or_else(|| value.to_owned())))
    }

    fn visit_string<E>(mut self, value: String) -> Result<Value, E> {
        let canonical = self.canonical(&value);
        Ok(Value::String(canonical.unwrap_or(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let (item, is_silent) = match self.target {
            Target::Bytes => return self.list_of_bytes(seq),
            Target::List(item) => (item, false),
            Target::Anything => (ValueType::Anything, false),
            Target::Either(id) if either(id).1.container == Container::List => {
                (ValueType::Item(either(id).1), true)
            }
            _ => {
                self.mismatch(Found::Array);
                (ValueType::Anything, true)
            }
        };
        let mut items = Vec::new();
        loop {
            let step = format_args!("[{}]", items.len());
            let next = self.trail.below(step, |trail| {
                let mut read = |trail: &mut Trail| seq.next_element_seed(Reader::new(item, trail));
                if is_silent {
                    trail.silently(read)
                } else {
                    read(trail)
                }
            })?;
            match next {
                Some(Value::Null) if !self.trail.keeps_nulls => {
                    items.push(presence::zero_item(item));
                }
                Some(value) => items.push(value),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<Value, A::Error> {
        match self.target {
            Target::Either(id) => {
                let schema = ValueType::Item(either(id).0);
                self.trail
                    .silently(|trail| Reader::new(schema, trail).members(map))
            }
            Target::Anything
            | Target::Custom
            | Target::Operation
            | Target::Struct(_)
            | Target::Map(_) => self.members(map),
            _ => {
                self.mismatch(Found::Object);
                self.target = Target::Anything;
                self.members(map)
            }
        }
    }
}
