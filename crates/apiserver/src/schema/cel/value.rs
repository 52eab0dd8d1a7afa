//! The values of expressions.
//!
//! A value borrows from the object that is validated, from its schema and from the expression. Lists and maps
//! of the object are converted item by item when the expression accesses them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map as JsonMap, Value as Json};

use super::net::Cidr;
use super::semver::Version;
use super::structural::Schema;
use super::time::Timestamp;
use super::url::Url;
use crate::quantity::Quantity;

mod data;

pub(super) use data::value as from_data;

/// The value of an expression or of a part of it.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    Timestamp(Timestamp),
    /// In nanoseconds.
    Duration(i64),
    /// The name of a type.
    Type(&'static str),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Rc<Value<'a>>>),
    Url(Rc<Url>),
    Quantity(Quantity),
    Ip(IpAddr),
    Cidr(Cidr),
    Format(&'static str),
    Version(Rc<Version>),
    /// Data of `x-kubernetes-preserve-unknown-fields`, which can only be compared.
    Unknown(&'a Json),
}

/// A borrowed or shared text.
#[derive(Clone, Debug)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// A list: of the object, or made by the expression.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Data {
        items: &'a [Json],
        schema: &'a Schema,
    },
    /// `like` is the schema of the list that this list extends.
    Made {
        items: Rc<Vec<Value<'a>>>,
        like: Option<&'a Schema>,
    },
}

/// An object or map: of the object that is validated, or made by the expression.
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    Data {
        entries: &'a JsonMap<String, Json>,
        schema: &'a Schema,
    },
    Made(Rc<BTreeMap<Key<'a>, Value<'a>>>),
}

/// A key of a map that an expression makes. Equal numbers of different types are equal keys.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Key<'a> {
    Bool(bool),
    Int(i64),
    /// A number that `Int` can't represent.
    Uint(u64),
    /// The bits of a number with a fraction.
    Double(u64),
    String(TextKey<'a>),
}

/// A text that is ordered by its bytes.
#[derive(Clone, Debug)]
pub(super) struct TextKey<'a>(pub(super) Text<'a>);

impl PartialEq for TextKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for TextKey<'_> {}

impl PartialOrd for TextKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TextKey<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self.0).cmp(&*other.0)
    }
}

impl<'a> Value<'a> {
    pub(super) fn text(text: impl Into<Rc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    pub(super) fn list(items: Vec<Value<'a>>) -> Value<'a> {
        Value::List(List::Made {
            items: Rc::new(items),
            like: None,
        })
    }

    pub(super) fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Rc::new(value)))
    }

    /// Returns the name of the value's type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Type(_) => "type",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Url(_) => "kubernetes.URL",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Version(_) => "kubernetes.Semver",
            Value::Unknown(_) => "unknown",
        }
    }

    /// Returns the key of a map that the value is, or `None` for values that can't be keys.
    pub(super) fn key(&self) -> Option<Key<'a>> {
        Some(match self {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => i64::try_from(*value).map_or(Key::Uint(*value), Key::Int),
            Value::Double(value) => double_key(*value),
            Value::String(value) => Key::String(TextKey(value.clone())),
            _ => return None,
        })
    }

    /// Returns the size in the unit of costs.
    pub(super) fn cost_size(&self) -> u64 {
        let size = match self {
            Value::String(text) => text.chars().count(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.len(),
            Value::Map(map) => map.len(),
            Value::Optional(Some(value)) => return value.cost_size(),
            Value::Ip(ip) if ip.is_ipv4() => 4,
            Value::Ip(_) => 16,
            Value::Cidr(cidr) => usize::from(cidr.bits).div_ceil(8),
            _ => 1,
        };
        size as u64
    }
}

/// Returns an integer of an equal value if there is one, because equal numbers are equal keys.
fn double_key<'a>(value: f64) -> Key<'a> {
    // The bounds are the first values beyond the integers' ranges, which `f64` represents exactly.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    const U64_END: f64 = 18_446_744_073_709_551_616.0;
    if value.fract() != 0.0 || !(-I64_END..U64_END).contains(&value) {
        return Key::Double(value.to_bits());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range, see above"
    )]
    if value < I64_END {
        Key::Int(value as i64)
    } else {
        Key::Uint(value as u64)
    }
}

impl<'a> Key<'a> {
    pub(super) fn value(&self) -> Value<'a> {
        match self {
            Key::Bool(value) => Value::Bool(*value),
            Key::Int(value) => Value::Int(*value),
            Key::Uint(value) => Value::Uint(*value),
            Key::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Key::String(text) => Value::String(text.0.clone()),
        }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            List::Data { items, .. } => items.len(),
            List::Made { items, .. } => items.len(),
        }
    }

    /// Returns an item. A value that does not match its schema is an error.
    pub(super) fn get(&self, index: usize) -> Option<Result<Value<'a>, String>> {
        match self {
            List::Data { items, schema } => {
                let item_schema = schema.items.as_deref()?;
                Some(data::value(items.get(index)?, item_schema))
            }
            List::Made { items, .. } => items.get(index).cloned().map(Ok),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, String>> {
        (0..self.len()).map_while(|index| self.get(index))
    }

    /// Returns the schema that defines how the list is compared and extended.
    pub(super) fn like(&self) -> Option<&'a Schema> {
        match self {
            List::Data { schema, .. } => Some(schema),
            List::Made { like, .. } => *like,
        }
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Map::Data { entries, .. } => entries.len(),
            Map::Made(entries) => entries.len(),
        }
    }

    /// Returns the value of a key. A value that does not match its schema, and a key of another type than a
    /// data map has, are errors.
    pub(super) fn get(&self, key: &Value<'a>) -> Option<Result<Value<'a>, String>> {
        match self {
            Map::Data { entries, schema } => match key {
                Value::String(name) => data::field(entries, schema, name),
                _ => Some(Err("no such overload".to_owned())),
            },
            Map::Made(entries) => entries.get(&key.key()?).cloned().map(Ok),
        }
    }

    pub(super) fn get_name(&self, name: &str) -> Option<Result<Value<'a>, String>> {
        match self {
            Map::Data { entries, schema } => data::field(entries, schema, name),
            Map::Made(entries) => {
                let key = Key::String(TextKey(Text::Shared(name.into())));
                entries.get(&key).cloned().map(Ok)
            }
        }
    }

    /// Returns whether a field or entry of the object has a schema.
    pub(super) fn knows(&self, name: &str) -> bool {
        match self {
            Map::Data { schema, .. } => data::schema_of(schema, name).is_some(),
            Map::Made(_) => true,
        }
    }

    /// Returns the keys in order.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Data { entries, schema } => {
                let known = entries
                    .keys()
                    .filter(|name| data::schema_of(schema, name).is_some());
                let names = known.map(|name| match &schema.properties {
                    Some(_) => match super::escape::escape(name) {
                        Some(escaped) => Text::Shared(escaped.into()),
                        None => Text::Borrowed(name),
                    },
                    None => Text::Borrowed(name),
                });
                names.map(Value::String).collect()
            }
            Map::Made(entries) => entries.keys().map(Key::value).collect(),
        }
    }
}
