//! Access to the parts of a value: elements of a list, entries of a map, the content of a variant.
//!
//! Guarantees: parts come in the parser's order, each as itself. A list says how many are left of it if
//! that is known; what the parser says of it itself goes before.

use serde::de::{DeserializeSeed, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor};

use super::{Exact, Walk, key::Key, map_bytes};

/// The elements of a list.
pub(super) struct List<'w, 't, A> {
    inner: A,
    walk: &'w Walk<'t>,
    left: Option<usize>,
}

impl<'w, 't, A> List<'w, 't, A> {
    /// Of a list that begins now.
    pub(super) fn new(inner: A, walk: &'w Walk<'t>) -> Self {
        let left = walk.elements();
        Self { inner, walk, left }
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for List<'_, '_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        // Only what follows a key is known to begin at a place.
        self.walk.next_at.set(None);
        let element = self.inner.next_element_seed(Exact::seed(seed, self.walk))?;
        if element.is_some() {
            self.walk.add(size_of::<T::Value>());
            self.left = self.left.and_then(|left| left.checked_sub(1));
        }
        Ok(element)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint().or(self.left)
    }
}

/// The entries of a map, or the fields of a struct.
pub(super) struct Entries<'w, 't, A> {
    inner: A,
    walk: &'w Walk<'t>,
    seen: usize,
    /// The size of the last key.
    key_bytes: usize,
    /// Of a key and its value.
    sizes: Option<(usize, usize)>,
    /// Whether it is a map: keys are texts, and values all of one size.
    is_map: bool,
}

impl<'w, 't, A> Entries<'w, 't, A> {
    pub(super) fn new(inner: A, walk: &'w Walk<'t>) -> Self {
        Self {
            inner,
            walk,
            seen: 0,
            key_bytes: 0,
            sizes: None,
            is_map: true,
        }
    }

    fn count(&mut self, key: usize, value: usize) {
        self.seen += 1;
        let sizes = *self.sizes.get_or_insert((key, value));
        self.is_map &= sizes == (key, value) && key >= size_of::<String>();
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, '_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let key = self.inner.next_key_seed(Key::seed(seed, self.walk))?;
        match (&key, self.sizes) {
            (Some(_), _) => self.key_bytes = size_of::<S::Value>(),
            (None, Some((key, value))) if self.is_map => {
                self.walk.add(map_bytes(self.seen, key + value));
            }
            (None, _) => {}
        }
        Ok(key)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.count(self.key_bytes, size_of::<S::Value>());
        self.inner.next_value_seed(Exact::seed(seed, self.walk))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The variant of an enum, and then what is in it.
pub(super) struct Variants<'w, 't, A> {
    inner: A,
    walk: &'w Walk<'t>,
}

impl<'w, 't, A> Variants<'w, 't, A> {
    pub(super) fn new(inner: A, walk: &'w Walk<'t>) -> Self {
        Self { inner, walk }
    }
}

impl<'de, 'w, 't, A: EnumAccess<'de>> EnumAccess<'de> for Variants<'w, 't, A> {
    type Error = A::Error;
    type Variant = Variants<'w, 't, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (variant, content) = self.inner.variant_seed(Key::seed(seed, self.walk))?;
        Ok((variant, Variants::new(content, self.walk)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Variants<'_, '_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner
            .newtype_variant_seed(Exact::seed(seed, self.walk))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = Exact::new(visitor, self.walk, size_of::<V::Value>());
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        let visitor = Exact::new(visitor, self.walk, size_of::<V::Value>());
        self.inner.struct_variant(fields, visitor)
    }
}
