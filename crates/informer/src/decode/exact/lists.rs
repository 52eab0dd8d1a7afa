//! [`Lists`]: how long the lists of a text are.
//!
//! Guarantees: each byte is looked at once at most, and none outside of lists. A length is that of the
//! list that begins at the very place, if the text is valid JSON.

use memchr::memchr2;

/// The slot of whatever is no list.
const NO_LIST: usize = 0;

/// A pod has so many lists, about.
const LISTS: usize = 32;

/// The lists of the outermost one that was met last.
#[derive(Default)]
pub(super) struct Lists {
    /// Where each begins, and how many elements it has, in order.
    found: Vec<(usize, usize)>,
    /// Those before it have been asked for, or passed by.
    next: usize,
    /// The index behind the outermost one.
    end: usize,
}

impl Lists {
    /// How many elements the list has that begins here. Places must be asked for in order.
    pub(super) fn elements(&mut self, text: &[u8], at: usize) -> Option<usize> {
        if at >= self.end {
            self.end = self.scan(text, at).unwrap_or_else(|| {
                self.found.clear();
                text.len()
            });
        }
        while let Some(&(start, elements)) = self.found.get(self.next) {
            if start > at {
                return None;
            }
            self.next += 1;
            if start == at {
                return Some(elements);
            }
        }
        None
    }

    /// Counts all lists of the one that begins at this bracket; the index behind it, if it ends.
    fn scan(&mut self, text: &[u8], mut at: usize) -> Option<usize> {
        self.found.clear();
        self.found.reserve(LISTS);
        self.found.push((at, 0));
        self.next = 1;
        // Where commas are counted: in the slot of the innermost list, or nowhere.
        let mut slot = NO_LIST;
        let mut around = Vec::with_capacity(LISTS);
        loop {
            match *text.get(at)? {
                b'"' => {
                    at = behind_string(text, at + 1)?;
                    continue;
                }
                b'[' => {
                    around.push(slot);
                    slot = self.found.len();
                    let is_empty = text[at + 1..].trim_ascii_start().first() == Some(&b']');
                    self.found.push((at, usize::from(!is_empty)));
                }
                b'{' => {
                    around.push(slot);
                    slot = NO_LIST;
                }
                b']' | b'}' => {
                    slot = around.pop()?;
                    if around.is_empty() {
                        return Some(at + 1);
                    }
                }
                b',' => self.found[slot].1 += 1,
                _ => {}
            }
            at += 1;
        }
    }
}

/// The index behind the quotation mark that ends a string.
fn behind_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}
