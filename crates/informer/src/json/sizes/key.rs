//! Counts the text of a map key as heap memory, if the decoded map stores the key as a string.
//!
//! Guarantees: the `Deserialize` implementation of the key's type receives every key unchanged.

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

use super::{
    Heap,
    plain::{plain, plain_values},
};

/// Wraps a deserializer, a visitor or a seed of a map key, and counts the key's heap bytes.
pub(super) struct Key<'h, T> {
    inner: T,
    heap: &'h Heap,
    /// Whether the decoded value stores the key as a string. A map stores its keys; a struct does not.
    is_kept: bool,
}

impl<'h, T> Key<'h, T> {
    #[inline]
    pub(super) fn seed<'de>(inner: T, heap: &'h Heap) -> Self
    where
        T: DeserializeSeed<'de>,
    {
        Self {
            inner,
            heap,
            is_kept: size_of::<T::Value>() >= size_of::<String>(),
        }
    }

    #[inline]
    fn with<U>(&self, inner: U) -> Key<'h, U> {
        Key {
            inner,
            heap: self.heap,
            is_kept: self.is_kept,
        }
    }

    #[inline]
    fn count(&self, text: &str) {
        if self.is_kept {
            self.heap.add(text.len());
        }
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, T> {
    type Value = T::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.deserialize(deserializer)
    }
}

/// Implements methods of `Deserializer` that pass the visitor unchanged to the inner deserializer.
macro_rules! as_it_is {
    ($($method:ident($($name:ident: $of:ty),*))*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($name: $of,)* visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

/// Implements methods of `Deserializer` that wrap the visitor in a `Key`, which counts the key's text.
macro_rules! watched {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method(visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Key<'_, D> {
    type Error = D::Error;

    watched! { deserialize_any deserialize_str deserialize_string deserialize_identifier }

    as_it_is! {
        deserialize_bool()
        deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64() deserialize_i128()
        deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
        deserialize_f32() deserialize_f64()
        deserialize_char() deserialize_unit() deserialize_bytes() deserialize_byte_buf()
        deserialize_option() deserialize_seq() deserialize_map() deserialize_ignored_any()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Key<'_, V> {
    type Value = V::Value;

    plain_values!();

    #[inline]
    fn visit_str<E: Error>(self, text: &str) -> Result<V::Value, E> {
        self.count(text);
        self.inner.visit_str(text)
    }

    #[inline]
    fn visit_string<E: Error>(self, text: String) -> Result<V::Value, E> {
        self.count(&text);
        self.inner.visit_string(text)
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.count(text);
        self.inner.visit_borrowed_str(text)
    }

    #[inline]
    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(deserializer)
    }

    #[inline]
    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(deserializer)
    }

    #[inline]
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(list)
    }

    #[inline]
    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(entries)
    }

    #[inline]
    fn visit_enum<A: EnumAccess<'de>>(self, variants: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(variants)
    }
}
