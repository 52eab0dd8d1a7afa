//! Defines [`Json`], a value with the order of its members in the text that a server sent.

use std::{
    fmt::{self, Write as _},
    ops::{Deref, DerefMut},
};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

/// A JSON value, which can be changed, and the order of the members in its text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Json {
    pub(crate) value: Value,
    pub(crate) order: Order,
    /// Whether the text is the one that Go's encoder writes for the value in this order, with a line break.
    pub(crate) is_of_go: bool,
}

/// The order of the members of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Order {
    /// The order of the names, on each level.
    Sorted,
    Array(Vec<Order>),
    Object(Vec<(String, Order)>),
}

impl Json {
    /// # Errors
    /// Returns an error if the text is not JSON.
    pub(crate) fn parse(text: &[u8]) -> serde_json::Result<Self> {
        let mut value = serde_json::from_slice(text)?;
        let mut order = serde_json::from_slice(text)?;
        let mut written = String::new();
        put(&value, &order, &mut written);
        written.push('\n');
        let is_of_go = written.as_bytes() == text;
        sort_unordered(&mut value, &mut order);
        Ok(Self {
            value,
            order,
            is_of_go,
        })
    }
}

/// Sorts the lists whose order differs between runs: the owners of fields, which are sorted by time, and the conflicts
/// of an apply.
fn sort_unordered(value: &mut Value, order: &mut Order) {
    match (value, order) {
        (Value::Object(members), Order::Object(ordered)) => {
            for (name, order) in ordered {
                let Some(member) = members.get_mut(name) else {
                    continue;
                };
                sort_unordered(member, order);
                let key: fn(&Value) -> String = match name.as_str() {
                    "managedFields" => |entry| {
                        let of = |name: &str| entry[name].to_string();
                        ["manager", "operation", "apiVersion", "subresource"]
                            .map(of)
                            .concat()
                    },
                    "causes" => |cause| match &cause["reason"] {
                        Value::String(reason) if reason == "FieldManagerConflict" => {
                            cause.to_string()
                        }
                        _ => String::new(),
                    },
                    _ => continue,
                };
                if let (Value::Array(items), Order::Array(orders)) = (member, order) {
                    let mut pairs: Vec<_> = items.drain(..).zip(orders.drain(..)).collect();
                    pairs.sort_by_cached_key(|(item, _)| key(item));
                    (*items, *orders) = pairs.into_iter().unzip();
                }
            }
        }
        (Value::Array(items), Order::Array(orders)) => {
            for (item, order) in items.iter_mut().zip(orders) {
                sort_unordered(item, order);
            }
        }
        _ => {}
    }
}

/// Appends the JSON of a value, without white space and with the escapes of Go's encoder.
fn put(value: &Value, order: &Order, out: &mut String) {
    let plain = |value: Value, out: &mut String| {
        for letter in value.to_string().chars() {
            match letter {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    let _ = write!(out, "\\u{:04x}", u32::from(letter));
                }
                _ => out.push(letter),
            }
        }
    };
    match value {
        Value::Object(members) => {
            for (at, name) in order.names(members).into_iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                plain(name.into(), out);
                out.push(':');
                put(&members[name], order.of_member(name), out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                put(item, order.of_item(at), out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        value => plain(value.clone(), out),
    }
}

#[cfg(test)]
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self {
            value,
            order: Order::Sorted,
            is_of_go: true,
        }
    }
}

impl Deref for Json {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl DerefMut for Json {
    fn deref_mut(&mut self) -> &mut Value {
        &mut self.value
    }
}

impl Order {
    /// Returns the order of the members in the value of the member `name`.
    pub(crate) fn of_member(&self, name: &str) -> &Self {
        let found = match self {
            Self::Object(members) => members.iter().find(|member| member.0 == name),
            Self::Sorted | Self::Array(_) => None,
        };
        found.map_or(&Self::Sorted, |member| &member.1)
    }

    pub(crate) fn of_item(&self, at: usize) -> &Self {
        match self {
            Self::Array(items) => items.get(at).unwrap_or(&Self::Sorted),
            Self::Sorted | Self::Object(_) => &Self::Sorted,
        }
    }

    /// Returns the names of the members of an object: first those that `self` has, in its order.
    pub(crate) fn names<'a>(&self, members: &'a Map<String, Value>) -> Vec<&'a str> {
        let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
        if let Self::Object(ordered) = self {
            let place = |name: &&str| ordered.iter().position(|member| member.0 == **name);
            names.sort_by_key(|name| place(name).unwrap_or(usize::MAX));
        }
        names
    }
}

impl<'de> Deserialize<'de> for Order {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OfAny)
    }
}

struct OfAny;

impl<'de> Visitor<'de> for OfAny {
    type Value = Order;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_str<E>(self, _: &str) -> Result<Order, E> {
        Ok(Order::Sorted)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Order, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Order::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Order, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Order::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_and_escapes_of_another_encoder_are_recognized() {
        for (text, is_of_go) in [
            ("{\"b\":[1,{}],\"a\":[]}\n", true),
            ("{\"b\":[1,{}],\"a\":[]}", false),
            ("{\"b\": 1}\n", false),
            ("[\"\\u003ca\\u0026\"]\n", true),
            ("[\"<a\\u0026\"]\n", false),
        ] {
            let json = Json::parse(text.as_bytes()).unwrap();
            assert_eq!(json.is_of_go, is_of_go, "{text}");
        }
    }
}
