//! Decodes JSON, and says how much heap the value takes.
//!
//! Guarantees: the value, or the error, is the one of [`serde_json::from_slice`].
//!
//! What types call is `#[inline]`, as in `tape/value.rs`.

mod access;
mod key;
mod plain;
mod visit;

use std::cell::Cell;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Visitor};

use super::tape;

/// A value, and what it takes beyond itself.
pub(crate) struct Measured<K> {
    pub(crate) value: K,
    /// What was asked of the allocator for it, as far as can be seen from here: texts, elements of lists
    /// and boxes are counted, maps by how a `BTreeMap` makes its nodes. Of what is decoded into something
    /// else before it becomes what it is, the former is counted.
    pub(crate) heap_bytes: usize,
}

/// # Errors
/// Those of [`serde_json::from_slice`].
pub(crate) fn measured<K: DeserializeOwned>(json: &[u8]) -> Result<Measured<K>, serde_json::Error> {
    if let Some(measured) = tape::read(json, |value| counted(value)) {
        return Ok(measured);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let measured = counted(&mut deserializer)?;
    deserializer.end()?;
    Ok(measured)
}

fn counted<'de, K: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Measured<K>, D::Error> {
    let heap = Heap::default();
    let value = K::deserialize(Counting::new(deserializer, &heap, size_of::<K>()))?;
    Ok(Measured {
        value,
        heap_bytes: heap.bytes.get(),
    })
}

/// What has been counted.
#[derive(Default)]
struct Heap {
    bytes: Cell<usize>,
}

impl Heap {
    #[inline]
    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }
}

/// What a `BTreeMap` of so many entries, put in in the order of their keys, asks of the allocator: nodes
/// of eleven entries, of which each but the last is left with six when it is split.
fn map_bytes(entries: usize, entry_bytes: usize) -> usize {
    const NODE: usize = 11;
    const PER_SPLIT: usize = 7;
    const LINKS: usize = 16;
    const EDGES: usize = (NODE + 1) * size_of::<usize>();

    let nodes = |entries: usize| match entries {
        0 => 0,
        _ => 1 + entries.saturating_sub(NODE).div_ceil(PER_SPLIT),
    };
    let leaves = nodes(entries);
    let (mut level, mut inner) = (leaves, 0);
    while level > 1 {
        level = nodes(level - 1);
        inner += level;
    }
    (leaves + inner) * (NODE * entry_bytes + LINKS) + inner * EDGES
}

/// What stands between a type and the parser: a deserializer, a visitor, a seed, or access to the parts
/// of a value.
struct Counting<'h, T> {
    inner: T,
    heap: &'h Heap,
    /// The size of the value that is made; what is larger inside is in a box.
    room: usize,
}

impl<'h, T> Counting<'h, T> {
    #[inline]
    fn new(inner: T, heap: &'h Heap, room: usize) -> Self {
        Self { inner, heap, room }
    }

    /// Of a value whose size is not known before it is asked for.
    #[inline]
    fn seed(inner: T, heap: &'h Heap) -> Self {
        Self::new(inner, heap, 0)
    }

    /// Another one in its place.
    #[inline]
    fn with<U>(&self, inner: U) -> Counting<'h, U> {
        Counting::new(inner, self.heap, self.room)
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Counting<'_, T> {
    type Value = T::Value;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        let room = size_of::<T::Value>();
        self.inner
            .deserialize(Counting::new(deserializer, self.heap, room))
    }
}

/// Hands a deserializer's method on as it is.
macro_rules! as_it_is {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        }
    )*};
}

/// Hands a deserializer's method on with an eye on what the visitor gets.
macro_rules! watched {
    ($($method:ident($($name:ident: $of:ty),*))*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, $($name: $of,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Counting<'_, D> {
    type Error = D::Error;

    as_it_is! {
        deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
        deserialize_char deserialize_unit deserialize_identifier
        // What is skipped has no part in the value.
        deserialize_ignored_any
    }

    watched! {
        deserialize_any()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_option()
        deserialize_seq()
        deserialize_map()
        deserialize_newtype_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    /// A `String` asks for a string. Who asks for a text makes something else of it: a time, which takes
    /// nothing more, or bytes of base64.
    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        if size_of::<V::Value>() < size_of::<Vec<u8>>() {
            return self.inner.deserialize_str(visitor);
        }
        let (heap, before) = (self.heap, self.heap.bytes.get());
        let visitor = self.with(visitor);
        let value = self.inner.deserialize_str(visitor)?;
        let text = heap.bytes.get() - before;
        heap.bytes.set(before + text / 4 * 3);
        Ok(value)
    }

    #[inline]
    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let made = size_of::<V::Value>();
        if made > self.room {
            self.heap.add(made);
        }
        let visitor = self.with(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

#[cfg(test)]
mod tests;
