//! Errors of the parser, and the escapes that stand for one code point.

use super::class::RUNE_MAX;
use super::node::Limit;

/// Why a pattern does not parse.
#[derive(Debug)]
pub(super) enum Fault<'a> {
    /// Go's description, and the part of the pattern that it quotes.
    Syntax(&'static str, &'a str),
    Limit(Limit),
}

impl From<Limit> for Fault<'_> {
    fn from(limit: Limit) -> Self {
        Fault::Limit(limit)
    }
}

pub(super) const INVALID_CLASS_RANGE: &str = "invalid character class range";
const INVALID_ESCAPE: &str = "invalid escape sequence";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";

/// Returns the start of `text`, up to `rest`, which must be its end.
pub(super) fn up_to<'a>(text: &'a str, rest: &str) -> &'a str {
    &text[..text.len() - rest.len()]
}

/// Splits off the first code point. The code point of an empty text is U+FFFD, as in Go.
pub(super) fn next_rune(text: &str) -> (u32, &str) {
    let mut chars = text.chars();
    let first = chars.next().unwrap_or(char::REPLACEMENT_CHARACTER);
    (u32::from(first), chars.as_str())
}

/// Splits off an escape of one code point. `text` starts with the backslash.
pub(super) fn escape(text: &str) -> Result<(u32, &str), Fault<'_>> {
    let mut chars = text[1..].chars();
    let Some(letter) = chars.next() else {
        return Err(Fault::Syntax(TRAILING_BACKSLASH, ""));
    };
    let rest = chars.as_str();
    let rune = match letter {
        '1'..='7' if !rest.starts_with(is_octal) => None,
        '0'..='7' => return Ok(octal(&text[1..])),
        'x' => match hexadecimal(rest) {
            Ok(found) => return Ok(found),
            Err(rest) => return Err(Fault::Syntax(INVALID_ESCAPE, up_to(text, rest))),
        },
        'a' => Some('\u{7}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'v' => Some('\u{b}'),
        _ => Some(letter).filter(|letter| letter.is_ascii() && !letter.is_ascii_alphanumeric()),
    };
    match rune {
        Some(rune) => Ok((u32::from(rune), rest)),
        None => Err(Fault::Syntax(INVALID_ESCAPE, up_to(text, rest))),
    }
}

fn is_octal(letter: char) -> bool {
    matches!(letter, '0'..='7')
}

/// Reads up to three octal digits.
fn octal(text: &str) -> (u32, &str) {
    let digits = text
        .bytes()
        .take(3)
        .take_while(|byte| is_octal(char::from(*byte)));
    let (count, value) = digits.fold((0, 0), |(count, value), digit| {
        (count + 1, value * 8 + u32::from(digit - b'0'))
    });
    (value, &text[count..])
}

/// Reads two hexadecimal digits, or any number in braces. An error is the text after the invalid part.
fn hexadecimal(text: &str) -> Result<(u32, &str), &str> {
    let digit = |rune: u32| char::from_u32(rune).and_then(|letter| letter.to_digit(16));
    if text.is_empty() {
        return Err(text);
    }
    let (first, mut rest) = next_rune(text);
    if first != u32::from('{') {
        let (second, rest) = next_rune(rest);
        return match (digit(first), digit(second)) {
            (Some(high), Some(low)) => Ok((high * 16 + low, rest)),
            _ => Err(rest),
        };
    }
    let mut value = None;
    while !rest.is_empty() {
        let (rune, after) = next_rune(rest);
        rest = after;
        if rune == u32::from('}') {
            return value.map(|value| (value, rest)).ok_or(rest);
        }
        let Some(digit) = digit(rune) else {
            return Err(rest);
        };
        let longer = value.unwrap_or(0) * 16 + digit;
        if longer > RUNE_MAX {
            return Err(rest);
        }
        value = Some(longer);
    }
    Err(rest)
}
