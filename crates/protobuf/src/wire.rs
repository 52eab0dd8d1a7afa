//! Parses the bytes of a protobuf message into fields. Does not decode the values of the fields.
//!
//! Guarantees: for any bytes, parsing terminates, copies no bytes, and does not panic. The iterator ends
//! after the first error.

use std::fmt;

/// Maximum number of a protobuf field (29 bits).
const NUMBER_MAX: u32 = (1 << 29) - 1;

/// Maximum number of bytes of a varint: 64 bits with seven bits per byte.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// The encoded value of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// An integer, a boolean or an enumeration value.
    Varint(u64),
    /// Eight bytes, such as a double.
    Fixed64(u64),
    /// Text, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// A group, which the parser has skipped together with its content. Kubernetes never sends groups.
    Group,
    /// Four bytes, which the parser has skipped. Kubernetes never sends such fields.
    Fixed32,
}

/// An error in the encoding of a message. The `Display` text equals the error text of Go's decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the end of a field.
    Truncated,
    /// A varint exceeds 64 bits.
    Overflow,
    /// A field number is 0 or greater than 2^29 - 1.
    Tag {
        /// The invalid field number.
        number: u64,
        /// The wire type that the same tag contains.
        wire_type: u64,
    },
    /// The bytes contain the end of a group without its start.
    GroupEnd,
    /// A tag contains a wire type that protobuf does not define.
    WireType(u64),
    /// The field has a wire type that does not fit its type in the message definition.
    Unexpected(u8),
}

/// An iterator over the fields of a message, in the order of the bytes.
#[derive(Clone, Debug)]
pub struct WireFields<'a> {
    rest: &'a [u8],
}

/// A part of a message: a field, the start of a group, or the end of a group.
enum Part<'a> {
    Field(u32, WireValue<'a>),
    GroupStart(u32),
    GroupEnd,
}

impl<'a> WireValue<'a> {
    /// Returns the error for a field whose type does not allow the wire type of this value.
    pub fn unexpected(self) -> WireError {
        WireError::Unexpected(match self {
            WireValue::Varint(_) => 0,
            WireValue::Fixed64(_) => 1,
            WireValue::Bytes(_) => 2,
            WireValue::Group => 3,
            WireValue::Fixed32 => 5,
        })
    }

    /// Returns the bytes of a length-delimited field.
    ///
    /// # Errors
    /// Returns an error if the field has another wire type.
    pub fn bytes(self) -> Result<&'a [u8], WireError> {
        match self {
            WireValue::Bytes(bytes) => Ok(bytes),
            other => Err(other.unexpected()),
        }
    }
}

impl std::error::Error for WireError {}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Truncated => f.write_str("unexpected EOF"),
            WireError::Overflow => f.write_str("proto: integer overflow"),
            WireError::Tag { number, wire_type } => {
                write!(f, "proto: illegal tag {number} (wire type {wire_type})")
            }
            WireError::GroupEnd => f.write_str("proto: wiretype end group for non-group"),
            WireError::WireType(wire_type) => write!(f, "proto: illegal wireType {wire_type}"),
            WireError::Unexpected(wire_type) => write!(f, "proto: wrong wireType = {wire_type}"),
        }
    }
}

impl<'a> WireFields<'a> {
    /// Creates an iterator over the fields in `bytes`, the bytes of one message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads one varint: a tag, a length, a number, or one of several packed numbers.
    ///
    /// # Errors
    /// Returns an error if the bytes end within the varint, or if the varint exceeds 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        // Most tags, lengths and numbers are below 128.
        if let [byte @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(*byte));
        }
        // The first byte is not below 128, so only the second can end the varint here.
        if let [low, high @ ..0x80, rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(u64::from(low & 0x7f) | u64::from(*high) << 7);
        }
        let (value, rest) = long_varint(self.rest)?;
        self.rest = rest;
        Ok(value)
    }

    /// Returns whether all bytes have been read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the bytes between the positions of `self` and `later` in the same message.
    #[inline]
    pub(crate) fn until(&self, later: &Self) -> &'a [u8] {
        let length = self.rest.len().saturating_sub(later.rest.len());
        self.rest.get(..length).unwrap_or_default()
    }

    /// Reads the value of a field of eight bytes.
    #[inline]
    pub(crate) fn fixed64(&mut self) -> Result<WireValue<'a>, WireError> {
        Ok(WireValue::Fixed64(u64::from_le_bytes(*self.array()?)))
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<&'a [u8; LENGTH], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Reads the value of a length-delimited field.
    #[inline]
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], WireError> {
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn part(&mut self) -> Result<Part<'a>, WireError> {
        let tag = self.varint()?;
        let (number, wire_type) = (tag >> 3, tag & 7);
        let illegal = WireError::Tag { number, wire_type };
        if wire_type == 4 {
            return Ok(Part::GroupEnd);
        }
        let number = u32::try_from(number).map_err(|_| illegal)?;
        if !(1..=NUMBER_MAX).contains(&number) {
            return Err(illegal);
        }
        let value = match wire_type {
            0 => WireValue::Varint(self.varint()?),
            1 => self.fixed64()?,
            2 => WireValue::Bytes(self.bytes()?),
            3 => return Ok(Part::GroupStart(number)),
            5 => {
                self.array::<4>()?;
                WireValue::Fixed32
            }
            other => return Err(WireError::WireType(other)),
        };
        Ok(Part::Field(number, value))
    }

    /// Reads the next field's tag: the field number, and in the lowest three bits the wire type.
    #[inline]
    pub(crate) fn tag(&mut self) -> Result<u32, WireError> {
        let tag = self.varint()?;
        match u32::try_from(tag) {
            Ok(short) if short >> 3 != 0 => Ok(short),
            _ if tag & 7 == 4 => Err(WireError::GroupEnd),
            _ => Err(WireError::Tag {
                number: tag >> 3,
                wire_type: tag & 7,
            }),
        }
    }

    /// Reads the next tag if it has one or two bytes and a field number above 0. Otherwise, reads nothing.
    ///
    /// This is a fast path. [`tag`](Self::tag) reads tags of any length.
    #[inline]
    pub(crate) fn short_tag(&mut self) -> Option<u32> {
        let (tag, rest) = match self.rest {
            [byte @ 0x08..0x80, rest @ ..] => (u32::from(*byte), rest),
            [low @ 0x80..=0xff, high @ 0x01..0x80, rest @ ..] => {
                (u32::from(low & 0x7f) | u32::from(*high) << 7, rest)
            }
            _ => return None,
        };
        self.rest = rest;
        Some(tag)
    }

    /// Skips the next varint if it is a 0 of one byte, and returns whether it did.
    ///
    /// Returns `None` and skips nothing if the next byte is 0x80, which can start a 0 of several bytes.
    #[inline]
    pub(crate) fn skip_0(&mut self) -> Option<bool> {
        match self.rest {
            [0, rest @ ..] => {
                self.rest = rest;
                Some(true)
            }
            [0x80, ..] => None,
            _ => Some(false),
        }
    }

    /// Skips consecutive complete fields with this tag, and returns how many fields it skipped.
    ///
    /// `tag` must be the tag of a length-delimited field, encoded in one or two bytes.
    pub(crate) fn skip_run(&mut self, tag: u32) -> usize {
        let mut fields = self.clone();
        let mut count = 0;
        loop {
            let mut next = fields.clone();
            if next.short_tag() != Some(tag) || next.bytes().is_err() {
                break;
            }
            fields = next;
            count += 1;
        }
        *self = fields;
        count
    }

    #[inline]
    fn field(&mut self) -> Result<(u32, WireValue<'a>), WireError> {
        let start = self.rest;
        let tag = self.tag()?;
        match tag & 7 {
            2 => Ok((tag >> 3, WireValue::Bytes(self.bytes()?))),
            0 => Ok((tag >> 3, WireValue::Varint(self.varint()?))),
            _ => {
                self.rest = start;
                self.rare_field()
            }
        }
    }

    /// Reads a field whose wire type is neither varint nor length-delimited.
    #[cold]
    fn rare_field(&mut self) -> Result<(u32, WireValue<'a>), WireError> {
        let number = match self.part()? {
            Part::Field(number, value) => return Ok((number, value)),
            Part::GroupEnd => return Err(WireError::GroupEnd),
            Part::GroupStart(number) => number,
        };
        self.skip_group()?;
        Ok((number, WireValue::Group))
    }

    /// Skips the content and the end of a group whose start has been read.
    #[cold]
    fn skip_group(&mut self) -> Result<(), WireError> {
        // A counter instead of recursion, because a nested group costs a sender only one byte.
        let mut open = 1_usize;
        while open > 0 {
            match self.part()? {
                Part::Field(..) => {}
                Part::GroupStart(_) => open += 1,
                Part::GroupEnd => open -= 1,
            }
        }
        Ok(())
    }
}

/// Reads one varint, and returns its value and the bytes after it.
// Takes the bytes by value: a reference to a `WireFields` would keep it in memory instead of registers.
#[inline(never)]
fn long_varint(bytes: &[u8]) -> Result<(u64, &[u8]), WireError> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(VARINT_BYTES_MAX) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[at + 1..]));
        }
    }
    Err(if bytes.len() < VARINT_BYTES_MAX {
        WireError::Truncated
    } else {
        WireError::Overflow
    })
}

impl<'a> Iterator for WireFields<'a> {
    type Item = Result<(u32, WireValue<'a>), WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<(u32, WireValue<'_>)>, WireError> {
        WireFields::new(bytes).collect()
    }

    #[test]
    fn fields_of_every_wire_type_are_yielded_in_order() {
        let bytes = [
            &[0x08, 0x96, 0x01][..],
            &[0x11, 1, 0, 0, 0, 0, 0, 0, 0x80],
            &[0x1a, 2, b'h', b'i'],
            &[0x25, 1, 2, 3, 4],
            &[0x2a, 0],
            &[0xf8, 0xff, 0xff, 0xff, 0x0f, 0],
        ]
        .concat();
        let fields = [
            (1, WireValue::Varint(150)),
            (2, WireValue::Fixed64(0x8000_0000_0000_0001)),
            (3, WireValue::Bytes(b"hi")),
            (4, WireValue::Fixed32),
            (5, WireValue::Bytes(b"")),
            (536_870_911, WireValue::Varint(0)),
        ];
        assert_eq!(read(&bytes), Ok(fields.into()));
        let types = fields.map(|(_, value)| value.unexpected());
        assert_eq!(types, [0, 1, 2, 5, 2, 0].map(WireError::Unexpected));
        assert_eq!(WireValue::Group.unexpected(), WireError::Unexpected(3));
    }

    #[test]
    fn a_varint_has_at_most_ten_bytes() {
        let mut minus_one = vec![0x08];
        minus_one.extend([0xff; 9]);
        minus_one.push(0x01);
        let all_bits = WireValue::Varint(u64::MAX);
        assert_eq!(read(&minus_one), Ok(vec![(1, all_bits)]));
        minus_one[10] = 0x81;
        minus_one.push(0);
        assert_eq!(read(&minus_one), Err(WireError::Overflow));
    }

    #[test]
    fn groups_are_skipped_with_their_content() {
        let bytes = [0x0b, 0x13, 0x08, 1, 0x14, 0x1a, 1, 0, 0x0c, 0x10, 7];
        let fields = vec![(1, WireValue::Group), (2, WireValue::Varint(7))];
        assert_eq!(read(&bytes), Ok(fields));
        assert_eq!(read(&[0x0b, 0x13, 0x14]), Err(WireError::Truncated));
        assert_eq!(read(&[0x0c]), Err(WireError::GroupEnd));
        assert_eq!(read(&vec![0x0b; 1 << 20]), Err(WireError::Truncated));
    }

    #[test]
    fn malformed_bytes_yield_one_error_and_end() {
        let cases: [(&[u8], &str); 8] = [
            (&[0x08], "unexpected EOF"),
            (&[0x08, 0x80], "unexpected EOF"),
            (&[0x11, 1, 2, 3, 4, 5, 6, 7], "unexpected EOF"),
            (&[0x25, 1, 2, 3], "unexpected EOF"),
            (&[0x1a, 3, b'h', b'i'], "unexpected EOF"),
            (&[0x02, 0], "proto: illegal tag 0 (wire type 2)"),
            (&[0x0e], "proto: illegal wireType 6"),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x10, 0],
                "proto: illegal tag 536870912 (wire type 0)",
            ),
        ];
        for (bytes, why) in cases {
            let mut fields = WireFields::new(bytes);
            let error = fields.find_map(Result::err).unwrap();
            assert_eq!(error.to_string(), why, "{bytes:?}");
            assert!(fields.next().is_none());
        }
    }
}
