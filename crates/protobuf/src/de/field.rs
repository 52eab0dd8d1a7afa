//! Deserializes one field of a message: a single value, a list or a map.

use serde::{
    de::{self, DeserializeSeed, Deserializer as _, MapAccess, SeqAccess, Visitor},
    forward_to_deserialize_any,
};

use super::{
    Context,
    level::Level,
    value::{ItemValue, ScalarValue},
};
use crate::{
    error::{Error, Reason, Step},
    scalar::Scalar,
    table::{Container, Field, Presence, Type},
    wire::{WireFields, WireValue},
};

/// A deserializer for one field of a message.
pub(super) struct FieldValue<'l, 'de, 'c> {
    pub(super) context: &'c Context,
    /// Nesting depth of the JSON value that results from the field. The outermost object has depth 1.
    pub(super) depth: usize,
    pub(super) field: &'static Field,
    /// The first value of the field in the bytes of the message. `None` if the bytes do not
    /// contain the field.
    pub(super) first: Option<WireValue<'de>>,
    /// The reader of the message, which returns the further items of a list and the further
    /// entries of a map.
    pub(super) level: &'l mut Level<'de>,
}

impl<'de, 'c> FieldValue<'_, 'de, 'c> {
    /// Returns a deserializer for the value of a field that is neither a list nor a map.
    #[inline]
    fn item(&self) -> Result<ItemValue<'de, 'c>, Error> {
        ItemValue::new(self.context, self.field.value, self.first, self.depth)
    }

    /// Returns a deserializer for an item of the list, or for the value of a map entry.
    #[inline]
    fn inner(&self, value: Option<WireValue<'de>>) -> Result<ItemValue<'de, 'c>, Error> {
        ItemValue::new(self.context, self.field.value, value, self.depth + 1)
    }

    /// Returns whether the bytes do not contain the field, and Go writes null for the field.
    #[inline]
    fn is_missing_null(&self) -> bool {
        self.first.is_none()
            && (self.field.presence == Presence::Nullable
                // Go's nil slices and maps.
                || self.field.container != Container::One
                || self.field.value == Type::Bytes)
    }
}

impl<'de> FieldValue<'_, 'de, '_> {
    /// Visits a field from which the visitor expects a boolean, a number or a string.
    #[inline]
    fn scalar<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.field.container == Container::One && self.first.is_some() {
            return self.item()?.scalar(visitor);
        }
        self.deserialize_any(visitor)
    }

    /// Visits a field from which the visitor expects a JSON object.
    #[inline]
    fn object<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.field.container, self.first) {
            (Container::One, Some(_)) => self.item()?.object(visitor),
            (Container::Map, Some(_)) => {
                self.context.count_container()?;
                visitor.visit_map(Entries {
                    field: self,
                    value: None,
                })
            }
            _ => self.deserialize_any(visitor),
        }
    }

    /// Visits a field from which the visitor expects a JSON list.
    #[inline]
    fn list<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match (self.field.container, self.first) {
            (Container::List, Some(_)) => {
                self.context.count_container()?;
                visitor.visit_seq(Items::new(self))
            }
            _ => self.deserialize_any(visitor),
        }
    }
}

impl<'de> de::Deserializer<'de> for FieldValue<'_, 'de, '_> {
    type Error = Error;

    #[inline(never)]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.is_missing_null() {
            return visitor.visit_unit();
        }
        if self.field.container != Container::One {
            self.context.count_container()?;
        }
        match (self.field.container, self.first) {
            (Container::List, Some(_)) => visitor.visit_seq(Items::new(self)),
            (Container::Map, Some(_)) => visitor.visit_map(Entries {
                field: self,
                value: None,
            }),
            _ => self.item()?.deserialize_any(visitor),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let may_be_null = matches!(
            (self.field.container, self.field.value),
            (Container::One, Type::Message(_))
        );
        if self.is_missing_null() || (may_be_null && self.item()?.is_null()?) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    by_kind! {}

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.item()?.deserialize_enum(name, variants, visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.field.container != Container::One {
            while self.level.again(self.field.number())?.is_some() {}
        }
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        unit unit_struct tuple tuple_struct
    }
}

/// Visits the items of a list.
///
/// Each item is one value in the bytes, except for packed numbers: a value can then contain several items.
struct Items<'l, 'de, 'c> {
    field: FieldValue<'l, 'de, 'c>,
    packed: Option<WireFields<'de>>,
    /// Number of items that the visitor has received.
    visited: usize,
}

impl<'l, 'de, 'c> Items<'l, 'de, 'c> {
    #[inline]
    fn new(field: FieldValue<'l, 'de, 'c>) -> Self {
        Self {
            field,
            packed: None,
            visited: 0,
        }
    }

    /// Returns the next item, or `None` after the last item.
    #[inline]
    fn next_value(&mut self) -> Result<Option<WireValue<'de>>, Error> {
        loop {
            if let Some(packed) = &mut self.packed {
                if !packed.is_empty() {
                    return Ok(Some(WireValue::Varint(packed.varint()?)));
                }
                self.packed = None;
            }
            let next = match self.field.first.take() {
                Some(first) => Some(first),
                None => self.field.level.again(self.field.field.number())?,
            };
            match (self.field.field.value, next) {
                (Type::Bool | Type::Int32 | Type::Int64, Some(WireValue::Bytes(packed))) => {
                    self.packed = Some(WireFields::new(packed));
                }
                _ => return Ok(next),
            }
        }
    }
}

impl<'de> SeqAccess<'de> for Items<'_, 'de, '_> {
    type Error = Error;

    /// Returns the number of remaining items, with which a vector allocates its exact capacity.
    ///
    /// Returns `None` for lists of numbers or booleans, because they can be packed.
    fn size_hint(&self) -> Option<usize> {
        let is_number = matches!(
            self.field.field.value,
            Type::Bool | Type::Int32 | Type::Int64
        );
        let first = usize::from(self.field.first.is_some());
        (!is_number).then(|| first + self.field.level.count(self.field.field.number()))
    }

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let Some(value) = self.next_value()? else {
            return Ok(None);
        };
        let at = self.visited;
        self.visited += 1;
        self.field.context.count()?;
        let item = self.field.inner(Some(value));
        let item = item.and_then(|item| seed.deserialize(item));
        item.map(Some).map_err(|error| error.below(Step::Item(at)))
    }
}

/// Visits the entries of a map. In the bytes, each entry is a message with the fields
/// `{1: key, 2: value}`.
struct Entries<'l, 'de, 'c> {
    field: FieldValue<'l, 'de, 'c>,
    /// The entry whose key the visitor received last: the bytes of the key, and the value.
    value: Option<(&'de [u8], Option<WireValue<'de>>)>,
}

impl<'de> MapAccess<'de> for Entries<'_, 'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let next = match self.field.first.take() {
            Some(first) => Some(first),
            None => self.field.level.again(self.field.field.number())?,
        };
        let Some(entry) = next else {
            return Ok(None);
        };
        self.field.context.count()?;
        let (mut key, mut value) = (&[][..], None);
        for field in WireFields::new(entry.bytes()?) {
            match field? {
                (1, field) => key = field.bytes()?,
                (2, field) => value = Some(field),
                _ => {}
            }
        }
        self.value = Some((key, value));
        let key = Scalar::of(Type::Text, WireValue::Bytes(key))?;
        seed.deserialize(ScalarValue(key)).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let (key, value) = self
            .value
            .take()
            .ok_or_else(|| Reason::new("a value was requested before its key"))?;
        let item = self.field.inner(value);
        let item = item.and_then(|item| seed.deserialize(item));
        item.map_err(|error| error.below(Step::Key(String::from_utf8_lossy(key).into_owned())))
    }
}
