//! Writes fields of a message.

use std::iter;

use crate::wire::{WireError, WireValue};

/// Maximum bytes of a tag and a length.
const HEAD_BYTES_MAX: usize = 15;

/// Appends a field with a number, a boolean or an enumeration.
pub fn put_varint(number: u32, value: u64, to: &mut Vec<u8>) {
    varint(u64::from(number) << 3, to);
    varint(value, to);
}

/// Appends a field with text, bytes, a message or packed numbers.
pub fn put_bytes(number: u32, bytes: &[u8], to: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 2, to);
    varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

/// Appends a field with the eight bytes of a double.
pub fn put_fixed64(number: u32, bits: u64, to: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 1, to);
    to.extend_from_slice(&bits.to_le_bytes());
}

/// Appends a field with this value.
pub(crate) fn put(number: u32, value: WireValue<'_>, to: &mut Vec<u8>) -> Result<(), WireError> {
    match value {
        WireValue::Varint(value) => put_varint(number, value, to),
        WireValue::Fixed64(bits) => put_fixed64(number, bits, to),
        WireValue::Bytes(bytes) => put_bytes(number, bytes, to),
        WireValue::Group | WireValue::Fixed32 => return Err(value.unexpected()),
    }
    Ok(())
}

/// Inserts the tag and the length of the value that begins at `start` and ends the buffer.
pub(crate) fn put_head(number: u32, start: usize, to: &mut Vec<u8>) {
    let mut head = Vec::with_capacity(HEAD_BYTES_MAX);
    varint(u64::from(number) << 3 | 2, &mut head);
    varint((to.len() - start) as u64, &mut head);
    to.splice(start..start, head);
}

fn varint(value: u64, to: &mut Vec<u8>) {
    for group in iter::successors(Some(value), |value| Some(value >> 7)) {
        let [low, ..] = group.to_le_bytes();
        if group < 0x80 {
            to.push(low);
            break;
        }
        to.push(low | 0x80);
    }
}
