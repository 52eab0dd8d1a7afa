//! Finds where one JSON value ends, over any number of chunks.

use memchr::memchr2;

/// Follows one JSON value from its first byte to its last.
///
/// It looks at structure alone: strings, nesting, and where a bare scalar stops. Whether the value
/// is valid JSON is the decoder's business.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    scalar: bool,
    /// How many objects and arrays have begun.
    opened: usize,
    /// How often a value directly inside the outermost object or array was closed by a bracket.
    pub(super) closed_inside: u32,
}

/// How many objects and arrays a value consists of.
pub(crate) fn parts(value: &[u8]) -> usize {
    let mut scanner = ValueScanner::default();
    scanner.scan(value);
    scanner.opened
}

impl ValueScanner {
    /// Goes on with `bytes`; the index behind the value's last byte, once it is reached.
    pub(super) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at = self.skip_string(bytes, at)?;
                if self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match bytes[at] {
                b'"' if !self.scalar => self.in_string = true,
                b'{' | b'[' if !self.scalar => {
                    self.depth += 1;
                    self.opened += 1;
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    match self.depth {
                        0 => return Some(at + 1),
                        1 => self.closed_inside += 1,
                        _ => {}
                    }
                }
                // The comma or bracket that ends a bare scalar belongs to what surrounds it.
                b',' | b'}' | b']' | b':' | b' ' | b'\n' | b'\r' | b'\t' if self.depth == 0 => {
                    return Some(at);
                }
                _ if self.depth == 0 => self.scalar = true,
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// The index behind the closing quote, or `None` when the string goes on in the next chunk.
    fn skip_string(&mut self, bytes: &[u8], mut at: usize) -> Option<usize> {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += found;
            if bytes[at] == b'"' {
                self.in_string = false;
                return Some(at + 1);
            }
            if at + 1 == bytes.len() {
                self.escaped = true;
                return None;
            }
            at += 2;
        }
        None
    }

    /// Whether the value has begun and could end with the body, as a bare number can.
    pub(super) fn is_nested(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}
