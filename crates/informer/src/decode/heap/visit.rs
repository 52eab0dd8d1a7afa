//! What a visitor is told, and that it is told of it.
//!
//! Guarantees: every call reaches the visitor with the value that the parser gave it, and what a visitor
//! refuses is refused in its own words.

use serde::de::{Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

use super::{
    Counting,
    access::{Entries, List, Variants},
};

/// Hands calls with plain values on.
macro_rules! plain {
    ($($method:ident: $of:ty)*) => {$(
        #[inline]
        fn $method<E: Error>(self, value: $of) -> Result<Self::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

/// Hands on every call of a visitor with a plain value that is no text.
macro_rules! plain_values {
    () => {
        plain! {
            visit_bool: bool
            visit_i8: i8 visit_i16: i16 visit_i32: i32 visit_i64: i64 visit_i128: i128
            visit_u8: u8 visit_u16: u16 visit_u32: u32 visit_u64: u64 visit_u128: u128
            visit_f32: f32 visit_f64: f64 visit_char: char
            visit_bytes: &[u8] visit_borrowed_bytes: &'de [u8] visit_byte_buf: Vec<u8>
        }

        #[inline]
        fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
            self.inner.visit_none()
        }

        #[inline]
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            self.inner.visit_unit()
        }

        #[inline]
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.inner.expecting(f)
        }
    };
}
pub(super) use plain;
pub(super) use plain_values;

impl<'de, V: Visitor<'de>> Visitor<'de> for Counting<'_, V> {
    type Value = V::Value;

    plain_values!();

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.heap.add(text.len());
        self.inner.visit_str(text)
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.heap.add(text.len());
        self.inner.visit_borrowed_str(text)
    }

    #[inline]
    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.heap.add(text.len());
        self.inner.visit_string(text)
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_some(deserializer)
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(List::new(list, self.heap))
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Entries::new(entries, self.heap))
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variants: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Variants::new(variants, self.heap))
    }
}
