//! [`Value`] is a deserializer of one JSON value on a tape. A tape is a list of nodes that `simd-json`
//! writes.

// The methods that a type's `Deserialize` implementation calls are `#[inline]`. The compiler could otherwise
// not inline them into this implementation, which belongs to another crate.

use std::{cell::Cell, fmt};

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use simd_json::{Node, StaticNode};

/// Maximum nesting depth of decoded arrays and maps, the same as in `serde_json`.
const DEPTH_MAX: u8 = 127;

/// Name of the newtype struct with which `serde_json::value::RawValue` requests JSON text.
///
/// The tape does not contain this text, so the deserializer rejects the request.
const RAW: &str = "$serde_json::private::RawValue";

/// Error for invalid or unsupported input; the caller then decodes with `serde_json`.
#[derive(Debug)]
pub(in crate::json) struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("refused")
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }

    fn invalid_type(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self
    }

    fn invalid_value(_: de::Unexpected<'_>, _: &dyn de::Expected) -> Self {
        Self
    }

    fn invalid_length(_: usize, _: &dyn de::Expected) -> Self {
        Self
    }

    fn unknown_variant(_: &str, _: &'static [&'static str]) -> Self {
        Self
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self
    }
}

/// Decoding state that all [`Value`]s of one tape share.
#[derive(Default)]
pub(super) struct Reading {
    /// Number of nested arrays and maps that are being read, including the innermost one.
    depth: Cell<u8>,
    /// Whether an array or map was not read to its end.
    left_some: Cell<bool>,
}

impl Reading {
    /// Returns whether every array and map so far was read to its end.
    pub(super) fn is_whole(&self) -> bool {
        !self.left_some.get()
    }
}

/// One JSON value on a tape, with the nodes of its elements or entries.
#[derive(Clone, Copy)]
pub(in crate::json) struct Value<'t, 'de> {
    nodes: &'t [Node<'de>],
    reading: &'t Reading,
}

/// Returns the first JSON value of a list of nodes, and the nodes that follow it.
#[inline]
fn split<'t, 'de>(
    nodes: &'t [Node<'de>],
    reading: &'t Reading,
) -> Option<(Value<'t, 'de>, &'t [Node<'de>])> {
    let count = match nodes.first()? {
        Node::Object { count, .. } | Node::Array { count, .. } => *count,
        Node::String(_) | Node::Static(_) => 0,
    };
    let (nodes, rest) = nodes.split_at_checked(count + 1)?;
    Some((Value { nodes, reading }, rest))
}

impl<'t, 'de> Value<'t, 'de> {
    /// Returns the value on a tape, or `None` if `nodes` are not exactly one JSON value.
    pub(super) fn new(nodes: &'t [Node<'de>], reading: &'t Reading) -> Option<Self> {
        let (value, rest) = split(nodes, reading)?;
        rest.is_empty().then_some(value)
    }

    #[inline]
    fn node(self) -> Node<'de> {
        self.nodes
            .first()
            .copied()
            .unwrap_or(Node::Static(StaticNode::Null))
    }

    #[inline]
    fn text(self) -> Result<&'de str, Refused> {
        match self.node() {
            Node::String(text) => Ok(text),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn parts(self, len: usize) -> Result<Parts<'t, 'de>, Refused> {
        let depth = self.reading.depth.get();
        if depth >= DEPTH_MAX {
            return Err(Refused);
        }
        self.reading.depth.set(depth + 1);
        Ok(Parts {
            len,
            rest: self.nodes.get(1..).unwrap_or_default(),
            reading: self.reading,
        })
    }

    #[inline]
    fn visit_number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Static(StaticNode::I64(number)) => match u64::try_from(number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(number),
            },
            Node::Static(StaticNode::U64(number)) => visitor.visit_u64(number),
            Node::Static(StaticNode::F64(number)) => visitor.visit_f64(number),
            _ => Err(Refused),
        }
    }
}

macro_rules! as_another {
    ($another:ident: $($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
            self.$another(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Value<'_, 'de> {
    type Error = Refused;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::String(text) => visitor.visit_borrowed_str(text),
            Node::Static(StaticNode::Null) => visitor.visit_unit(),
            Node::Static(StaticNode::Bool(value)) => visitor.visit_bool(value),
            Node::Static(_) => self.visit_number(visitor),
            Node::Array { len, .. } => visitor.visit_seq(self.parts(len)?),
            Node::Object { len, .. } => visitor.visit_map(self.parts(len)?),
        }
    }

    as_another! {
        visit_number:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    as_another! {
        deserialize_str:
        deserialize_char deserialize_string deserialize_identifier
    }

    as_another! {
        deserialize_bytes:
        deserialize_byte_buf
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Static(StaticNode::Bool(value)) => visitor.visit_bool(value),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_borrowed_str(self.text()?)
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::String(text) => visitor.visit_borrowed_bytes(text.as_bytes()),
            Node::Array { len, .. } => visitor.visit_seq(self.parts(len)?),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Static(StaticNode::Null) => visitor.visit_unit(),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Array { len, .. } => visitor.visit_seq(self.parts(len)?),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Object { len, .. } => visitor.visit_map(self.parts(len)?),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Static(StaticNode::Null) => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        if name == RAW {
            return Err(Refused);
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self.node() {
            Node::Object { len, .. } => visitor.visit_map(self.parts(len)?),
            Node::Array { len, .. } => visitor.visit_seq(self.parts(len)?),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self.node() {
            Node::String(_) => visitor.visit_enum(Variant {
                name: self,
                content: None,
            }),
            Node::Object { len: 1, .. } => {
                let mut parts = self.parts(1)?;
                visitor.visit_enum(Variant {
                    name: parts.next()?,
                    content: Some(parts),
                })
            }
            _ => Err(Refused),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_unit()
    }
}

/// The elements of an array, or the entries of a map, that have not been read yet.
///
/// If unread parts remain on drop, `Drop` records this in [`Reading`]. The decoded value is then discarded,
/// and `serde_json` decodes the text.
struct Parts<'t, 'de> {
    len: usize,
    rest: &'t [Node<'de>],
    reading: &'t Reading,
}

impl Drop for Parts<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        let Reading { depth, left_some } = self.reading;
        depth.set(depth.get() - 1);
        if !self.rest.is_empty() {
            left_some.set(true);
        }
    }
}

impl<'t, 'de> Parts<'t, 'de> {
    #[inline]
    fn next(&mut self) -> Result<Value<'t, 'de>, Refused> {
        let (value, rest) = split(self.rest, self.reading).ok_or(Refused)?;
        self.rest = rest;
        Ok(value)
    }
}

impl<'de> SeqAccess<'de> for Parts<'_, 'de> {
    type Error = Refused;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        let Some(left) = self.len.checked_sub(1) else {
            return Ok(None);
        };
        self.len = left;
        seed.deserialize(self.next()?).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.len)
    }
}

impl<'de> MapAccess<'de> for Parts<'_, 'de> {
    type Error = Refused;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Refused> {
        let Some(left) = self.len.checked_sub(1) else {
            return Ok(None);
        };
        self.len = left;
        // Keys are strings on a tape. A type with number or boolean keys is refused, and `serde_json` decodes
        // the text.
        seed.deserialize(self.next()?).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(self.next()?)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.len)
    }
}

/// The name of an enum's variant, and the content of this variant.
struct Variant<'t, 'de> {
    name: Value<'t, 'de>,
    content: Option<Parts<'t, 'de>>,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Refused;
    type Variant = Self;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refused> {
        Ok((seed.deserialize(self.name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Refused;

    #[inline]
    fn unit_variant(self) -> Result<(), Refused> {
        let Some(mut content) = self.content else {
            return Ok(());
        };
        match content.next()?.node() {
            Node::Static(StaticNode::Null) => Ok(()),
            _ => Err(Refused),
        }
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        let mut content = self.content.ok_or(Refused)?;
        seed.deserialize(content.next()?)
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Refused> {
        let mut content = self.content.ok_or(Refused)?;
        content.next()?.deserialize_seq(visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let mut content = self.content.ok_or(Refused)?;
        content.next()?.deserialize_struct("", fields, visitor)
    }
}
