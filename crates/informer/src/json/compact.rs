//! [`CompactReader`] reads the members of JSON objects in place, without a parser.
//!
//! The reader accepts the JSON that API servers write: without white space, and without escapes in the
//! strings that it returns. It skips other values by their structure, which takes less than half of a
//! parser's time, and does not check that a skipped value is valid JSON.

use memchr::memchr2;

use super::scanner::value_end;

/// Reads JSON without white space from the front of a text; it holds the rest that is not read yet.
///
/// Every method removes what it reads, and returns `None` for unsupported input; the caller then uses a parser.
pub(crate) struct CompactReader<'a>(&'a [u8]);

impl<'a> CompactReader<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Self(json)
    }

    /// Reads a JSON object, and calls `read` with each key and the rest after it; `read` must consume the
    /// value.
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

    /// Reads a string without escapes.
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

    /// Reads any value, and returns its bytes.
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
