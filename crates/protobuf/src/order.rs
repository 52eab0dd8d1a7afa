//! [`sorted`]: brings the fields of a message into the order of their numbers.
//!
//! Guarantees: the result decodes to the same value as the input does in Go: the items of a list keep their
//! order, the last scalar of a field wins, and the parts of a split message are merged.

use crate::{
    error::Reason,
    table::{Container, Field, Message, MessageId, Messages, Type},
    wire::{WireFields, WireValue},
    write::{put, put_head},
};

/// Maximum nesting depth of messages.
const DEPTH_MAX: usize = 127;

/// Returns the message with ascending field numbers, and with each field that is no list or map at most once.
/// Fields that are not in the table are dropped.
pub(crate) fn sorted(
    messages: &'static Messages,
    message: &'static Message,
    bytes: &[u8],
) -> Result<Vec<u8>, Reason> {
    let mut sorted = Vec::with_capacity(bytes.len());
    Sorter { messages }.message(message, &[bytes], &mut sorted, DEPTH_MAX)?;
    Ok(sorted)
}

struct Sorter {
    messages: &'static Messages,
}

impl Sorter {
    /// Appends the fields of a message, which was sent in these parts.
    ///
    /// The parts are borrowed and the result has one buffer: copies would multiply with the nesting depth.
    fn message(
        &self,
        message: &'static Message,
        parts: &[&[u8]],
        sorted: &mut Vec<u8>,
        depth_left: usize,
    ) -> Result<(), Reason> {
        // Messages with their own JSON encoding are read in any order.
        if message.fields.is_empty() {
            parts.iter().for_each(|part| sorted.extend_from_slice(part));
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
            self.field(field, values, sorted, depth_left)?;
        }
        Ok(())
    }

    /// Appends the values of one field.
    fn field(
        &self,
        field: &Field,
        values: &[(usize, WireValue<'_>)],
        sorted: &mut Vec<u8>,
        depth_left: usize,
    ) -> Result<(), Reason> {
        let number = field.number();
        let values = values.iter().map(|(_, value)| *value);
        match (field.container, field.value) {
            (Container::One, Type::Message(id)) => {
                let parts = values
                    .map(WireValue::bytes)
                    .collect::<Result<Vec<_>, _>>()?;
                self.nested(number, id, &parts, sorted, depth_left)?;
            }
            (Container::One, _) => {
                if let Some(last) = values.last() {
                    put(number, last, sorted)?;
                }
            }
            (Container::List, Type::Message(id)) => {
                for value in values {
                    self.nested(number, id, &[value.bytes()?], sorted, depth_left)?;
                }
            }
            (Container::Map, Type::Message(id)) => {
                for value in values {
                    let entry = sorted.len();
                    for field in WireFields::new(value.bytes()?) {
                        match field? {
                            (2, value) => {
                                self.nested(2, id, &[value.bytes()?], sorted, depth_left)?;
                            }
                            (number, value) => put(number, value, sorted)?,
                        }
                    }
                    put_head(number, entry, sorted);
                }
            }
            (Container::List | Container::Map, _) => {
                for value in values {
                    put(number, value, sorted)?;
                }
            }
        }
        Ok(())
    }

    /// Appends a message as the value of a field.
    fn nested(
        &self,
        number: u32,
        id: MessageId,
        parts: &[&[u8]],
        sorted: &mut Vec<u8>,
        depth_left: usize,
    ) -> Result<(), Reason> {
        let start = sorted.len();
        self.message(self.messages.get(id), parts, sorted, depth_left)?;
        put_head(number, start, sorted);
        Ok(())
    }
}
