//! Deserializes one value with [`ItemValue`]: a field's only value, a list item, or the
//! value of a map entry.

use serde::{
    de::{self, Visitor},
    forward_to_deserialize_any,
};

use super::{Context, Deserializer};
use crate::{error::Error, scalar::Scalar, table::Type, wire::WireValue};

/// A deserializer for one value, which is a scalar or a nested message.
pub(super) enum ItemValue<'de, 'c> {
    Scalar(ScalarValue<'de>),
    Message(Deserializer<'de, 'c>),
}

impl<'de, 'c> ItemValue<'de, 'c> {
    /// Creates a deserializer for a value of this type. If `value` is `None`, the value is the
    /// type's zero value.
    ///
    /// `depth` is the nesting depth of the resulting JSON value. The outermost object has depth 1.
    #[inline]
    pub(super) fn new(
        context: &'c Context,
        value_type: Type,
        value: Option<WireValue<'de>>,
        depth: usize,
    ) -> Result<Self, Error> {
        Ok(match (value_type, value) {
            (Type::Message(id), value) => {
                let bytes = value.map_or(Ok(&[][..]), WireValue::bytes)?;
                Self::Message(Deserializer::new(context, id, bytes, depth))
            }
            (_, Some(value)) => Self::Scalar(ScalarValue(Scalar::of(value_type, value)?)),
            (_, None) => Self::Scalar(ScalarValue(Scalar::zero(value_type))),
        })
    }

    /// Returns whether the resulting JSON value is null.
    #[inline]
    pub(super) fn is_null(&self) -> Result<bool, Error> {
        match self {
            Self::Scalar(_) => Ok(false),
            Self::Message(message) => message.is_null(),
        }
    }
}

impl<'de> ItemValue<'de, '_> {
    #[inline]
    pub(super) fn scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(scalar) => scalar.0.visit(visitor),
            Self::Message(message) => message.scalar(visitor),
        }
    }

    #[inline]
    pub(super) fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Message(message) => message.object(visitor),
            Self::Scalar(scalar) => scalar.0.visit(visitor),
        }
    }

    #[inline]
    pub(super) fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Message(message) => message.list(visitor),
            Self::Scalar(scalar) => scalar.0.visit(visitor),
        }
    }
}

impl<'de> de::Deserializer<'de> for ItemValue<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(scalar) => scalar.deserialize_any(visitor),
            Self::Message(message) => message.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(scalar) => scalar.deserialize_option(visitor),
            Self::Message(message) => message.deserialize_option(visitor),
        }
    }

    by_kind! {}

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Self::Scalar(scalar) => scalar.deserialize_enum(name, variants, visitor),
            Self::Message(message) => message.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        unit unit_struct tuple tuple_struct ignored_any
    }
}

/// A deserializer for a scalar: null, a boolean, a number, a string, a time, or embedded JSON text.
pub(super) struct ScalarValue<'de>(pub(super) Scalar<'de>);

impl<'de> de::Deserializer<'de> for ScalarValue<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.visit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Scalar::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.0 {
            Scalar::Text(text) => {
                visitor.visit_enum(de::value::CowStrDeserializer::<Error>::new(text))
            }
            other => other.visit(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct identifier ignored_any
    }
}
