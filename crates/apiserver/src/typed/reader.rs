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
use super::trail::{Family, Found, Place, Trail};
use super::value_type::{Target, ValueType, either, is_of_operation, member, message, type_meta};
use crate::field_validation::Wrong;
use crate::go_base64;
use crate::go_time::GoTime;

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
                    self.trail.malformed(why.to_owned(), true);
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

    fn number(mut self, value: Value) -> Value {
        if !matches!(self.target, Target::Anything) {
            self.mismatch(Found::Number);
        }
        value
    }

    /// Decodes a text that can be in another form, or returns `None`.
    fn canonical(&mut self, text: &str) -> Option<String> {
        let (canonical, is_final) = match self.target {
            Target::Bytes => (
                go_base64::decode(text).map(|bytes| go_base64::encode(&bytes)),
                false,
            ),
            Target::Time(layout) => (
                GoTime::parse(layout, text).map(|time| time.canonical(layout)),
                true,
            ),
            Target::Anything | Target::Text => return None,
            _ => {
                self.mismatch(Found::Text);
                return None;
            }
        };
        canonical
            .map_err(|why| self.trail.malformed(why, is_final))
            .ok()
    }

    /// Reads bytes as a list of numbers.
    fn list_of_bytes<'de, A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut bytes = Vec::new();
        while let Some(text) = seq.next_element::<Box<RawValue>>()? {
            let number = Literal::Byte.decode(text.get(), self.trail);
            bytes.push(
                number
                    .as_u64()
                    .and_then(|byte| byte.try_into().ok())
                    .unwrap_or(0),
            );
        }
        Ok(Value::String(go_base64::encode(&bytes)))
    }

    fn find(&self, name: &str) -> Member {
        match self.target {
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
                    trail.keeps_nulls |= earlier.is_some();
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
                        let value = if trail.keeps_unknown {
                            read(ValueType::Anything, trail)?
                        } else {
                            map.next_value::<IgnoredAny>().map(|_| Value::Null)?
                        };
                        Ok((ValueType::Unknown, value))
                    }
                }
            })?;
            let value = match self.target {
                Target::Struct(_) => merged(value_type, earlier, value),
                _ => Some(value).filter(|value| !value.is_null()),
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

/// Returns what Go decodes a member of a struct into that has decoded an earlier value of the same name.
///
/// Returns `None` for a null. Nulls in `value` are what they are in the text.
fn merged(value_type: ValueType, earlier: Option<Value>, value: Value) -> Option<Value> {
    let Some(earlier) = earlier else {
        return Some(value).filter(|value| !value.is_null());
    };
    match (value_type.target(), earlier, value) {
        (_, earlier, Value::Null) => (!value_type.is_nullable()).then_some(earlier),
        (Target::Map(_), Value::Object(mut earlier), Value::Object(value)) => {
            earlier.extend(value);
            Some(Value::Object(earlier))
        }
        (Target::Struct(id), Value::Object(mut earlier), Value::Object(value)) => {
            for (name, value) in value {
                let of_earlier = earlier.remove(&name);
                if let Member::Field(value_type, _) = of_struct(id, &name)
                    && let Some(value) = merged(value_type, of_earlier, value)
                {
                    earlier.insert(name, value);
                }
            }
            Some(Value::Object(earlier))
        }
        (Target::List(item), Value::Array(earlier), Value::Array(value)) => {
            let mut earlier = earlier.into_iter();
            let items = value.into_iter().map(|value| {
                let merged = merged(item, earlier.next(), value);
                merged.unwrap_or_else(|| presence::zero_item(item))
            });
            Some(Value::Array(items.collect()))
        }
        (_, _, value) => Some(value),
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
