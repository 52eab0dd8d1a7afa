//! Decodes JSON, and estimates the heap memory of the decoded value.
//!
//! Guarantees: the value or error equals that of [`serde_json::from_slice`].

// The methods that a type's `Deserialize` implementation calls are `#[inline]`. The compiler could otherwise
// not inline them into this implementation, which belongs to another crate.

mod access;
mod key;
mod plain;
mod visit;

use std::cell::Cell;

use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, Visitor};

use super::tape;

/// A decoded value, with an estimate of the heap memory that the value uses.
pub(crate) struct Measured<K> {
    pub(crate) value: K,
    pub(crate) heap_bytes: usize,
}

/// Decodes a value, and estimates its heap memory.
///
/// # Errors
/// Returns the same errors as [`serde_json::from_slice`].
pub(crate) fn measured<K: DeserializeOwned>(json: &[u8]) -> Result<Measured<K>, serde_json::Error> {
    if let Some(measured) = tape::read(json, |value| counted(value)) {
        return Ok(measured);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let measured = counted(&mut deserializer)?;
    deserializer.end()?;
    Ok(measured)
}

/// Decodes a value with any deserializer, and estimates its heap memory.
///
/// # Errors
/// Returns the errors of the deserializer.
pub(crate) fn counted<'de, K: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Measured<K>, D::Error> {
    let heap = Heap::default();
    let value = K::deserialize(Counting::new(deserializer, &heap, size_of::<K>()))?;
    Ok(Measured {
        value,
        heap_bytes: heap.bytes.get(),
    })
}

/// Counter of the heap bytes of the value that is being decoded.
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

/// Returns the heap bytes of a `BTreeMap` with `entries` entries, inserted in key order.
///
/// Each node has room for eleven entries. Insertion in key order splits each full node, and six entries
/// remain in the left node. Only the last node of each level may have another number of entries.
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

/// Counts the heap memory of values that the wrapped deserializer, visitor or seed decodes.
struct Counting<'h, T> {
    inner: T,
    heap: &'h Heap,
    /// Size in bytes of the field or element that will contain the decoded value. These bytes are already
    /// included in the size of the parent.
    ///
    /// A struct that is larger than `room` can't be stored directly in the field. Such a struct is assumed to
    /// be in a `Box`, and is counted as heap memory.
    room: usize,
}

impl<'h, T> Counting<'h, T> {
    #[inline]
    fn new(inner: T, heap: &'h Heap, room: usize) -> Self {
        Self { inner, heap, room }
    }

    /// Wraps a seed, for which `room` is not used.
    #[inline]
    fn seed(inner: T, heap: &'h Heap) -> Self {
        Self::new(inner, heap, 0)
    }

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

/// Implements methods of `Deserializer` that pass the visitor unchanged to the inner deserializer.
macro_rules! as_it_is {
    ($($method:ident)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        }
    )*};
}

/// Implements methods of `Deserializer` that pass a counting visitor to the inner deserializer.
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
        // Skipped values are not part of the result.
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

    /// Estimates the heap memory of a value that is decoded from a string, such as base64 data.
    ///
    /// The estimate is three quarters of the string's length, the size of decoded base64. The estimate is
    /// zero if the value's type is smaller than a `Vec`.
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
