//! Sorts the fields of a message in ascending order of their numbers, with [`sorted`].
//!
//! Guarantees: decoding the result yields the same value as Go decodes from the original bytes. List items
//! keep their order. Of several values of a single-valued field, only the last value remains. If the values
//! are messages, they are merged instead.

use crate::{
    error::Reason,
    table::{Container, Field, Message, MessageId, Messages, Type},
    wire::{WireFields, WireValue},
    write::{put, put_head},
};

/// Maximum nesting depth of messages.
const DEPTH_MAX: usize = 127;

/// Returns the message with its fields in ascending order of their numbers.
///
/// The result contains no unknown fields. A single-valued field that occurs several times in `bytes` occurs
/// once in the result, with the last value or the merged message.
///
/// A map entry keeps all its fields in their order. Messages for which `messages` lists no fields, such as
/// quantities, are copied without changes.
pub(crate) fn sorted(
    messages: &'static Messages,
    message: &'static Message,
    bytes: &[u8],
) -> Result<Vec<u8>, Reason> {
    let mut sorter = Sorter {
        messages,
        sorted: Vec::with_capacity(bytes.len()),
    };
    sorter.message(message, &[bytes], DEPTH_MAX)?;
    Ok(sorter.sorted)
}

struct Sorter {
    messages: &'static Messages,
    /// The sorted fields of the message and of all nested messages.
    sorted: Vec<u8>,
}

impl Sorter {
    /// Appends the sorted fields of the message whose encoding is the concatenation of `parts`.
    ///
    /// There are several parts if a single-valued field occurs several times in the enclosing message.
    fn message(
        &mut self,
        message: &'static Message,
        parts: &[&[u8]],
        depth_left: usize,
    ) -> Result<(), Reason> {
        // Messages with their own JSON encoding are read in any order.
        if message.fields.is_empty() {
            for part in parts {
                self.sorted.extend_from_slice(part);
            }
            return Ok(());
        }
        let depth_left = depth_left
            .checked_sub(1)
            .ok_or_else(|| Reason::new(format!("nested deeper than {DEPTH_MAX} messages")))?;
        let mut fields = Vec::new();
        for field in parts.iter().copied().flat_map(WireFields::new) {
            let (number, value) = field?;
            if let Some(at) = message.position(number) {
                fields.push((at, value));
            }
        }
        // The sort is stable, so the values of one field stay in their order.
        fields.sort_by_key(|(at, _)| *at);
        for values in fields.chunk_by(|(a, _), (b, _)| a == b) {
            let field = &message.fields[values[0].0];
            self.field(field, values, depth_left)?;
        }
        Ok(())
    }

    /// Appends one field to `self.sorted`. `values` contains the field's values in their original order.
    ///
    /// For a list or a map, appends all values. For a single message, merges the values into one message.
    /// For any other single value, appends only the last value.
    fn field(
        &mut self,
        field: &Field,
        values: &[(usize, WireValue<'_>)],
        depth_left: usize,
    ) -> Result<(), Reason> {
        let number = field.number();
        let mut values = values.iter().map(|(_, value)| *value);
        match (field.container, field.value) {
            (Container::One, Type::Message(id)) => {
                let parts = values
                    .map(WireValue::bytes)
                    .collect::<Result<Vec<_>, _>>()?;
                self.nested(number, id, &parts, depth_left)?;
            }
            (Container::One, _) => {
                if let Some(last) = values.next_back() {
                    put(number, last, &mut self.sorted)?;
                }
            }
            (Container::List, Type::Message(id)) => {
                for value in values {
                    self.nested(number, id, &[value.bytes()?], depth_left)?;
                }
            }
            (Container::Map, Type::Message(id)) => {
                for value in values {
                    let entry = self.sorted.len();
                    for field in WireFields::new(value.bytes()?) {
                        match field? {
                            (2, value) => {
                                self.nested(2, id, &[value.bytes()?], depth_left)?;
                            }
                            (number, value) => put(number, value, &mut self.sorted)?,
                        }
                    }
                    put_head(number, entry, &mut self.sorted);
                }
            }
            (Container::List | Container::Map, _) => {
                for value in values {
                    put(number, value, &mut self.sorted)?;
                }
            }
        }
        Ok(())
    }

    /// Appends a message as the value of a field.
    fn nested(
        &mut self,
        number: u32,
        id: MessageId,
        parts: &[&[u8]],
        depth_left: usize,
    ) -> Result<(), Reason> {
        let start = self.sorted.len();
        self.message(self.messages.get(id), parts, depth_left)?;
        put_head(number, start, &mut self.sorted);
        Ok(())
    }
}
