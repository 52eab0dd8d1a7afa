//! Decodes JSON so that its lists take no more memory than they need, and says how much that is.
//!
//! A deserializer of JSON can't know how long a list is before it has read it, so `Vec`s grow by doubling
//! and keep what they have too much. Here each list is counted in the text when it begins, and its length
//! told to whoever collects it. Everything else is left to `serde_json`.
//!
//! Guarantees: the value, or the error, is the one of [`serde_json::from_slice`]. A length is told only of
//! a list that was found in the text where it is read, and of others none, so none is ever wrong for JSON
//! that is valid.

mod access;
mod key;
mod lists;
mod visit;

use std::cell::{Cell, RefCell};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Visitor};

use self::lists::Lists;

/// A value, and what it takes beyond itself.
pub(super) struct Measured<K> {
    pub(super) value: K,
    /// What was asked of the allocator for it, as far as can be seen from here: texts, elements of lists
    /// and boxes are counted, maps by how a `BTreeMap` makes its nodes. Of what is decoded into something
    /// else before it becomes what it is, the former is counted.
    pub(super) heap_bytes: usize,
}

/// # Errors
/// Those of [`serde_json::from_slice`].
pub(super) fn from_slice<'de, K: Deserialize<'de>>(
    json: &'de [u8],
) -> Result<Measured<K>, serde_json::Error> {
    // Looking at all of it at once takes less time than at each string.
    let Ok(text) = std::str::from_utf8(json) else {
        // What is no text may be where it is skipped.
        let value = serde_json::from_slice(json)?;
        return Ok(Measured {
            value,
            heap_bytes: 0,
        });
    };
    let walk = Walk::new(json);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let room = size_of::<K>();
    let value = K::deserialize(Exact::new(&mut deserializer, &walk, room))?;
    deserializer.end()?;
    Ok(Measured {
        value,
        heap_bytes: walk.heap_bytes.get(),
    })
}

/// Where decoding has come to.
struct Walk<'t> {
    text: &'t [u8],
    /// Where the next value begins, with white space and a colon before it, if that is known.
    next_at: Cell<Option<usize>>,
    lists: RefCell<Lists>,
    heap_bytes: Cell<usize>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            next_at: Cell::new(Some(0)),
            lists: RefCell::default(),
            heap_bytes: Cell::new(0),
        }
    }

    fn add(&self, bytes: usize) {
        self.heap_bytes.set(self.heap_bytes.get() + bytes);
    }

    /// A key was read, so what comes next is its value. One that is no part of the text, as it was written
    /// with escapes or is the parser's own, does not say where.
    fn behind(&self, key: &str) {
        let start = key.as_ptr().addr().checked_sub(self.text.as_ptr().addr());
        // Its quotation mark is there too, for the key is a whole one.
        let end = start.and_then(|start| start.checked_add(key.len() + 1));
        self.next_at.set(end.filter(|&end| end < self.text.len()));
    }

    /// How many elements the list has that begins now, if it can be found.
    fn elements(&self) -> Option<usize> {
        let text = self.text;
        let skip = |at: usize| text.len() - text[at..].trim_ascii_start().len();
        let mut at = skip(self.next_at.take()?);
        if text.get(at) == Some(&b':') {
            at = skip(at + 1);
        }
        let is_list = text.get(at) == Some(&b'[');
        is_list.then(|| self.lists.borrow_mut().elements(text, at))?
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
struct Exact<'w, 't, T> {
    inner: T,
    walk: &'w Walk<'t>,
    /// The size of the value that is made; what is larger inside is in a box.
    room: usize,
}

impl<'w, 't, T> Exact<'w, 't, T> {
    fn new(inner: T, walk: &'w Walk<'t>, room: usize) -> Self {
        Self { inner, walk, room }
    }

    /// Of a value whose size is not known before it is asked for.
    fn seed(inner: T, walk: &'w Walk<'t>) -> Self {
        Self::new(inner, walk, 0)
    }

    /// Another one in its place.
    fn with<U>(&self, inner: U) -> Exact<'w, 't, U> {
        Exact::new(inner, self.walk, self.room)
    }
}

impl<'de, T: DeserializeSeed<'de>> DeserializeSeed<'de> for Exact<'_, '_, T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        let room = size_of::<T::Value>();
        self.inner
            .deserialize(Exact::new(deserializer, self.walk, room))
    }
}

/// Hands a deserializer's method on as it is.
macro_rules! as_it_is {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        }
    )*};
}

/// Hands a deserializer's method on with an eye on what the visitor gets.
macro_rules! watched {
    ($($method:ident($($name:ident: $of:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $of,)* visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method($($name,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Exact<'_, '_, D> {
    type Error = D::Error;

    as_it_is! {
        deserialize_bool
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64
        deserialize_char deserialize_unit deserialize_identifier
        // What is skipped has no part in the value, and where its lists are need not be known.
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
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        if size_of::<V::Value>() < size_of::<Vec<u8>>() {
            return self.inner.deserialize_str(visitor);
        }
        let (walk, before) = (self.walk, self.walk.heap_bytes.get());
        let visitor = self.with(visitor);
        let value = self.inner.deserialize_str(visitor)?;
        let text = walk.heap_bytes.get() - before;
        walk.heap_bytes.set(before + text / 4 * 3);
        Ok(value)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let made = size_of::<V::Value>();
        if made > self.room {
            self.walk.add(made);
        }
        let visitor = self.with(visitor);
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

#[cfg(test)]
mod tests;
