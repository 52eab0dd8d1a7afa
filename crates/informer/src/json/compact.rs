//! [`CompactReader`] reads the members of JSON objects without a parser and without copying them.
//!
//! The reader supports the JSON that API servers write. A method returns `None` if it finds white space in
//! place of a token, or an escape in a string whose text it reads. The caller must then use a parser. The
//! reader does not check that a skipped value is valid JSON.

use memchr::memchr2;

use super::scanner::value_end;

/// Reads JSON without white space. The slice contains the bytes that are not read yet.
///
/// Each method reads and removes one JSON value, or returns `None` for unsupported input.
pub(crate) struct CompactReader<'a>(&'a [u8]);

impl<'a> CompactReader<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Self(json)
    }

    /// Reads a JSON object, and calls `read` with the key of each member and with this reader.
    ///
    /// `read` must read the member's value from the reader.
    pub(crate) fn members(
        &mut self,
        mut read: impl FnMut(&'a str, &mut Self) -> Option<()>,
    ) -> Option<()> {
        self.byte(b'{')?;
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            let key = self.text()?;
            self.byte(b':')?;
            read(key, self)?;
            if self.byte(b',').is_none() {
                return self.byte(b'}');
            }
        }
    }

    /// Reads a JSON string without escapes, and returns its text.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let end = memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at(end);
        // A control character in a JSON string is valid only as an escape.
        if rest[0] == b'\\' || text.iter().any(|&byte| byte < b' ') {
            return None;
        }
        self.0 = &rest[1..];
        std::str::from_utf8(text).ok()
    }

    /// Reads an object or array, and returns its bytes.
    pub(crate) fn nested(&mut self) -> Option<&'a [u8]> {
        let value = self.value()?;
        matches!(value[0], b'{' | b'[').then_some(value)
    }

    /// Reads a value of any type and returns its bytes.
    pub(crate) fn value(&mut self) -> Option<&'a [u8]> {
        let end = value_end(self.0).filter(|&end| end > 0)?;
        let (value, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(value)
    }

    fn byte(&mut self, expected: u8) -> Option<()> {
        let (&byte, rest) = self.0.split_first()?;
        (byte == expected).then(|| self.0 = rest)
    }
}
