//! Splits a Rust file into code, comments and literals.

use std::ops::Range;

/// Kind of the text in a byte range of a Rust file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Code,
    /// `//` to the end of the line, or `/* … */` with nested comments.
    Comment,
    /// A string, character or byte literal, including its quotes.
    Literal,
}

pub(super) struct Span {
    pub(super) range: Range<usize>,
    pub(super) class: Class,
}

/// Splits `text` into adjacent spans. Each comment and each literal is one span.
pub(super) fn spans(text: &str) -> Vec<Span> {
    let bytes = text.as_bytes();
    let (mut at, mut spans) = (0, Vec::new());
    while at < bytes.len() {
        let (class, length) = next(&bytes[at..]);
        spans.push(Span {
            range: at..at + length,
            class,
        });
        at += length;
    }
    spans
}

fn next(rest: &[u8]) -> (Class, usize) {
    match rest {
        [b'/', b'/', ..] => {
            let line = rest.iter().take_while(|&&byte| byte != b'\n').count();
            (Class::Comment, line)
        }
        [b'/', b'*', ..] => (Class::Comment, block_comment(rest)),
        [b'"', ..] => (Class::Literal, quoted(rest, b'"')),
        [b'\'', ..] => match character(rest) {
            Some(length) => (Class::Literal, length),
            None => (Class::Code, 1),
        },
        [b'r' | b'b' | b'c', ..] => match raw_string(rest) {
            Some(length) => (Class::Literal, length),
            None => (Class::Code, 1),
        },
        _ => (Class::Code, 1),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length in bytes of the quoted literal at the start of `rest`, with its quotes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length in bytes of the character literal at the start of `rest`, or `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    match rest {
        [_, b'\\', ..] => Some(quoted(rest, b'\'')),
        [_, first, ..] => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xE0 => 2,
                0xE0..0xF0 => 3,
                0xF0.. => 4,
            };
            (rest.get(1 + width) == Some(&b'\'')).then_some(width + 2)
        }
        _ => None,
    }
}

/// Returns the length in bytes of the raw string literal, such as `r#"…"#`, at the start of `rest`, if any.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = match rest {
        [b'r', ..] => 1,
        [b'b' | b'c', b'r', ..] => 2,
        _ => return None,
    };
    let hashes = rest[prefix..]
        .iter()
        .take_while(|&&byte| byte == b'#')
        .count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'#'; hashes + 1];
    end[0] = b'"';
    let body = &rest[open + 1..];
    let length = body.windows(end.len()).position(|window| window == end);
    Some(length.map_or(rest.len(), |length| open + 1 + length + end.len()))
}
