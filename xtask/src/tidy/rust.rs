//! Separates the code, the comments and the tests of a Rust file.
//!
//! The module makes two copies of the file's text. In the copy [`Source::code`], spaces replace comments and
//! literals. In the copy [`Source::comments`], spaces replace code and literals. Byte offsets are the same in
//! the file and in both copies.

mod lexer;

use std::ops::Range;

use lexer::Class;

/// A Rust file, with copies of its code and of its comments, and the ranges of its tests.
pub(super) struct Source<'a> {
    /// Path of the file, relative to the workspace root, with `/` as separator.
    pub(super) path: &'a str,
    /// Complete text of the file.
    pub(super) text: &'a str,
    /// Copy of the text in which spaces replace comments and literals.
    pub(super) code: String,
    /// Copy of the text in which spaces replace everything except comments and doc comments.
    pub(super) comments: String,
    /// Byte ranges of the test code, in ascending order and without overlap.
    pub(super) tests: Vec<Range<usize>>,
}

/// A word, a number, a punctuation character, or one of `::`, `->`, `=>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    /// Line of the token, counted from 1.
    pub(super) line: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Source<'a> {
        let code = keep(text, Class::Code);
        let comments = keep(text, Class::Comment);
        let tests = if is_test_file(path) {
            std::iter::once(0..text.len()).collect()
        } else {
            test_items(&code)
        };
        Source {
            path,
            text,
            code,
            comments,
            tests,
        }
    }

    /// Returns whether the file is called `tests.rs` or is inside a folder called `tests`.
    pub(super) fn is_test_file(&self) -> bool {
        is_test_file(self.path)
    }

    /// Returns a copy of [`Source::code`] in which spaces replace the test code.
    pub(super) fn production(&self) -> String {
        let mut bytes = self.code.clone().into_bytes();
        for range in &self.tests {
            blank(&mut bytes[range.clone()]);
        }
        text(bytes)
    }

    /// Returns the line, counted from 1, that contains the byte at `offset`.
    pub(super) fn line(&self, offset: usize) -> usize {
        line_of(self.text, offset)
    }
}

/// Returns the number of the line, counted from 1, that contains the byte of `text` at `offset`.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

/// Returns whether a byte can be part of an identifier.
pub(super) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || !byte.is_ascii()
}

/// Splits `code` into tokens. The code must not contain comments or literals; see [`Source::code`].
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let bytes = code.as_bytes();
    let (mut at, mut line, mut tokens) = (0, 1, Vec::new());
    while at < bytes.len() {
        let length = match &bytes[at..] {
            [b'\n', ..] => {
                line += 1;
                at += 1;
                continue;
            }
            [space, ..] if space.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            [b':', b':', ..] | [b'-' | b'=', b'>', ..] => 2,
            rest => rest
                .iter()
                .take_while(|&&byte| is_word(byte))
                .count()
                .max(1),
        };
        tokens.push(Token {
            text: &code[at..at + length],
            line,
        });
        at += length;
    }
    tokens
}

/// Returns the byte offset after the bracket that closes the bracket at `open`.
pub(super) fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    parts.next() == Some("tests.rs") || parts.any(|folder| folder == "tests")
}

/// Returns the byte ranges of all items with `#[cfg(test)]`, including this attribute.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (start, attribute) in code.match_indices("#[cfg(test)]") {
        if ranges.last().is_none_or(|last| last.end <= start) {
            ranges.push(start..end_of_item(code, start + attribute.len()));
        }
    }
    ranges
}

/// Returns the byte offset after the item that starts at `start`. An item ends with `;` or a block `{…}`.
fn end_of_item(code: &str, start: usize) -> usize {
    let mut at = start;
    while let Some(&byte) = code.as_bytes().get(at) {
        match byte {
            b';' => return at + 1,
            b'{' => return closing(code, at),
            b'(' | b'[' => at = closing(code, at),
            _ => at += 1,
        }
    }
    code.len()
}

/// Returns a copy of `source` that keeps only the code, comments or literals.
///
/// `class` selects which of them to keep. A space replaces each byte of all other text, except line breaks.
fn keep(source: &str, class: Class) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for span in lexer::spans(source) {
        if span.class != class {
            blank(&mut bytes[span.range]);
        }
    }
    text(bytes)
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("only whole characters are blanked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_offsets_are_kept() {
        let text = "let a = \"//\"; // b\nlet c = 'x'; /* d /* e */ f */ let 'g;\n";
        let source = Source::new("src/a.rs", text);
        assert_eq!(
            source.code,
            "let a =     ;     \nlet c =    ;                   let 'g;\n"
        );
        assert_eq!(
            source.comments.trim(),
            "// b\n             /* d /* e */ f */"
        );
    }

    #[test]
    fn raw_strings_end_at_their_own_number_of_hashes() {
        let source = Source::new("src/a.rs", "r#\"a\"b\"#; br\"c\"; r#type; b'\\''; '\"'; x");
        let words: Vec<_> = tokens(&source.code)
            .into_iter()
            .map(|token| token.text)
            .collect();
        assert_eq!(words, [";", ";", "r", "#", "type", ";", "b", ";", ";", "x"]);
    }

    #[test]
    fn a_test_module_is_found_with_its_attributes_and_its_end() {
        let text = "fn a() {}\n#[cfg(test)]\n#[expect(x, reason = \"}\")]\nmod tests {\n fn b() { if c {} }\n}\nfn d() {}\n";
        let production = Source::new("src/a.rs", text).production();
        assert_eq!(
            production.split_whitespace().collect::<Vec<_>>(),
            ["fn", "a()", "{}", "fn", "d()", "{}"]
        );
    }

    #[test]
    fn the_declaration_of_a_test_file_is_a_test() {
        let source = Source::new("src/a.rs", "#[cfg(test)]\nmod tests;\nfn d() {}\n");
        assert_eq!(source.production().trim(), "fn d() {}");
        assert!(
            Source::new("src/a/tests.rs", "fn e() {}")
                .production()
                .trim()
                .is_empty()
        );
        assert!(
            Source::new("tests/it/main.rs", "fn e() {}")
                .production()
                .trim()
                .is_empty()
        );
    }
}
