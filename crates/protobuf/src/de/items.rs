//! Passes the items of a list to a visitor, with [`Items`].
//!
//! Guarantees: an error contains the index of the item. This module does not limit the nesting depth.

use serde::de::{DeserializeSeed, SeqAccess};

use super::{
    Deserializer, Slot,
    value::{Run, Value},
};
use crate::{
    error::{Error, Reason, Step},
    table::Type,
    wire::{WireFields, WireValue},
};

/// The serde `SeqAccess` of a list.
///
/// On the wire, each item of a list is a field of its own. Packed numbers are the exception: one field then
/// contains several items.
pub(super) struct Items<'de, 'c> {
    /// The item that the visitor received last.
    slot: Slot<'de, 'c>,
    item: Type,
    fields: WireFields<'de>,
    /// The unread packed numbers of the field that was read last. Empty if that field is not packed.
    packed: WireFields<'de>,
    /// Number of fields that `fields` still contains.
    left: usize,
    /// Number of items that the visitor has received.
    visited: usize,
}

impl<'de, 'c> Items<'de, 'c> {
    #[inline]
    pub(super) fn new(list: &Slot<'de, 'c>, run: Run<'de>) -> Result<Self, Reason> {
        list.context.count_container()?;
        Ok(Self {
            slot: list.inner(),
            item: run.value,
            fields: WireFields::new(run.bytes),
            packed: WireFields::new(&[]),
            left: run.count,
            visited: 0,
        })
    }

    fn is_packable(&self) -> bool {
        matches!(self.item, Type::Bool | Type::Int32 | Type::Int64)
    }

    /// Returns the next item, or `None` after the last item.
    #[inline]
    fn next_value(&mut self) -> Result<Option<WireValue<'de>>, Error> {
        loop {
            if !self.packed.is_empty() {
                return Ok(Some(WireValue::Varint(self.packed.varint()?)));
            }
            let Some(next) = self.fields.next() else {
                return Ok(None);
            };
            let (_, value) = next?;
            self.left = self.left.saturating_sub(1);
            match value {
                WireValue::Bytes(packed) if self.is_packable() => {
                    self.packed = WireFields::new(packed);
                }
                value => return Ok(Some(value)),
            }
        }
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'de, '_> {
    type Error = Error;

    /// Returns the number of items that the visitor has not received yet, or `None` if the items can be
    /// packed.
    #[inline]
    fn size_hint(&self) -> Option<usize> {
        (!self.is_packable()).then_some(self.left)
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
        self.slot.context.count()?;
        let item = match Value::item(self.slot.context, self.item, value) {
            Ok(value) => {
                self.slot.value = value;
                seed.deserialize(Deserializer(&self.slot))
            }
            Err(error) => Err(error.into()),
        };
        match item {
            Ok(item) => Ok(Some(item)),
            Err(error) => Err(error.below(Step::Item(at))),
        }
    }
}
