//! [`CompactReader`]: reads members in place, of JSON as API servers write it.
//!
//! It accepts JSON without white space, and texts without escapes. Of a value that it passes over it follows
//! the structure alone, which takes less than half of a parser's time; whether that value is valid JSON is not
//! checked.

use memchr::memchr2;

use super::scanner::value_end;

/// The unread rest of a text. Every method removes what it reads, and returns `None` for input that it does not
/// accept; a parser has to read that.
pub(crate) struct CompactReader<'a>(&'a [u8]);

impl<'a> CompactReader<'a> {
    pub(crate) fn new(json: &'a [u8]) -> Self {
        Self(json)
    }

    /// Reads an object. `read` is called behind each key, and must read the value.
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

    /// A text without escapes.
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let end = memchr2(b'"', b'\\', self.0)?;
        let (text, rest) = self.0.split_at(end);
        // JSON has control characters as escapes only.
        if rest[0] == b'\\' || text.iter().any(|&byte| byte < b' ') {
            return None;
        }
        self.0 = &rest[1..];
        std::str::from_utf8(text).ok()
    }

    /// The bytes of an object or array.
    pub(crate) fn nested(&mut self) -> Option<&'a [u8]> {
        let value = self.value()?;
        matches!(value[0], b'{' | b'[').then_some(value)
    }

    /// The bytes of any value.
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
