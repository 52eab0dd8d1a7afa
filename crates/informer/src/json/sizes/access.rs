//! Counts the heap memory of array elements, map entries and enum variants during decoding.
//!
//! Guarantees: the type's `Deserialize` implementation receives all elements, entries and variants unchanged
//! and in the order of the JSON.

use serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{Counting, Heap, key::Key, map_bytes};

/// Wraps an array's [`SeqAccess`], and adds the size of each element to `heap`.
pub(super) struct List<'h, A> {
    inner: A,
    heap: &'h Heap,
}

impl<'h, A> List<'h, A> {
    #[inline]
    pub(super) fn new(inner: A, heap: &'h Heap) -> Self {
        Self { inner, heap }
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for List<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        let element = self
            .inner
            .next_element_seed(Counting::seed(seed, self.heap))?;
        if element.is_some() {
            self.heap.add(size_of::<T::Value>());
        }
        Ok(element)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// Wraps a [`MapAccess`], and adds the size of a map's `BTreeMap` nodes to `heap`.
pub(super) struct Entries<'h, A> {
    inner: A,
    heap: &'h Heap,
    seen: usize,
    /// Size in bytes of the last decoded key's type.
    key_bytes: usize,
    /// Sizes in bytes of the types of the first key and the first value. `None` before the first entry.
    sizes: Option<(usize, usize)>,
    /// Whether the entries that were decoded so far can be those of a map, not the fields of a struct.
    ///
    /// True if all key types have the same size, at least that of a `String`, and all value types have the
    /// same size.
    is_map: bool,
}

impl<'h, A> Entries<'h, A> {
    #[inline]
    pub(super) fn new(inner: A, heap: &'h Heap) -> Self {
        Self {
            inner,
            heap,
            seen: 0,
            key_bytes: 0,
            sizes: None,
            is_map: true,
        }
    }

    #[inline]
    fn count(&mut self, key: usize, value: usize) {
        self.seen += 1;
        let sizes = *self.sizes.get_or_insert((key, value));
        self.is_map &= sizes == (key, value) && key >= size_of::<String>();
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Key::seed(seed, self.heap))?;
        match (&key, self.sizes) {
            (Some(_), _) => self.key_bytes = size_of::<S::Value>(),
            (None, Some((key, value))) if self.is_map => {
                self.heap.add(map_bytes(self.seen, key + value));
            }
            (None, _) => {}
        }
        Ok(key)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.count(self.key_bytes, size_of::<S::Value>());
        self.inner.next_value_seed(Counting::seed(seed, self.heap))
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// Wraps an enum's [`EnumAccess`] or [`VariantAccess`], and counts the content's heap memory.
pub(super) struct Variants<'h, A> {
    inner: A,
    heap: &'h Heap,
}

impl<'h, A> Variants<'h, A> {
    #[inline]
    pub(super) fn new(inner: A, heap: &'h Heap) -> Self {
        Self { inner, heap }
    }
}

impl<'de, 'h, A: EnumAccess<'de>> EnumAccess<'de> for Variants<'h, A> {
    type Error = A::Error;
    type Variant = Variants<'h, A::Variant>;

    #[inline]
    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (variant, content) = self.inner.variant_seed(Key::seed(seed, self.heap))?;
        Ok((variant, Variants::new(content, self.heap)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Variants<'_, A> {
    type Error = A::Error;

    #[inline]
    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    #[inline]
    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner
            .newtype_variant_seed(Counting::seed(seed, self.heap))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = Counting::new(visitor, self.heap, size_of::<V::Value>());
        self.inner.tuple_variant(len, visitor)
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = Counting::new(visitor, self.heap, size_of::<V::Value>());
        self.inner.struct_variant(fields, visitor)
    }
}
