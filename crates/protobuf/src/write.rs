//! Functions that append protobuf fields to a buffer of bytes.
//!
//! The functions do not check the order of the field numbers.

use std::iter;

use crate::wire::{WireError, WireValue};

/// Maximum number of bytes of a tag (5) and a length (10) together.
const HEAD_BYTES_MAX: usize = 15;

/// Appends a field that contains a varint: an integer, a boolean or an enumeration value.
pub fn put_varint(number: u32, value: u64, to: &mut Vec<u8>) {
    varint(u64::from(number) << 3, to);
    varint(value, to);
}

/// Appends a length-delimited field, which contains a string, bytes, a message or packed numbers.
pub fn put_bytes(number: u32, bytes: &[u8], to: &mut Vec<u8>) {
    put_length(number, bytes.len(), to);
    to.extend_from_slice(bytes);
}

/// Appends the tag and the length of a length-delimited field.
///
/// The caller must append the `length` bytes of the value.
pub fn put_length(number: u32, length: usize, to: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 2, to);
    varint(length as u64, to);
}

/// Appends a field that contains a double. `bits` are the eight bytes of the double.
pub fn put_fixed64(number: u32, bits: u64, to: &mut Vec<u8>) {
    varint(u64::from(number) << 3 | 1, to);
    to.extend_from_slice(&bits.to_le_bytes());
}

/// Appends a field with any value.
///
/// Returns an error for [`WireValue::Group`] and [`WireValue::Fixed32`], because they do not store the bytes
/// of the value.
pub(crate) fn put(number: u32, value: WireValue<'_>, to: &mut Vec<u8>) -> Result<(), WireError> {
    match value {
        WireValue::Varint(value) => put_varint(number, value, to),
        WireValue::Fixed64(bits) => put_fixed64(number, bits, to),
        WireValue::Bytes(bytes) => put_bytes(number, bytes, to),
        WireValue::Group | WireValue::Fixed32 => return Err(value.unexpected()),
    }
    Ok(())
}

/// Inserts the tag and the length of a field before the field's value, which starts at `to[start]`.
pub(crate) fn put_head(number: u32, start: usize, to: &mut Vec<u8>) {
    let mut head = Vec::with_capacity(HEAD_BYTES_MAX);
    put_length(number, to.len() - start, &mut head);
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
