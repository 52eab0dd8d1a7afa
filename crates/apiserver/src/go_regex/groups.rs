//! The ASCII classes of Perl (`\d`) and POSIX (`[:alnum:]`).

use super::class::Range;

const ALNUM: &[Range] = &[(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)];
const DIGIT: &[Range] = &[(0x30, 0x39)];
const PUNCT: &[Range] = &[(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)];
const WORD: &[Range] = &[(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)];

/// A class, and whether it stands for the other code points.
pub(super) type Group = (&'static [Range], bool);

/// Returns the class of `\d` and similar escapes at the start of `text`. It has two bytes.
pub(super) fn perl(text: &str) -> Option<Group> {
    let [b'\\', letter, ..] = text.as_bytes() else {
        return None;
    };
    let class: &[Range] = match letter.to_ascii_lowercase() {
        b'd' => DIGIT,
        // Without the vertical tab.
        b's' => &[(0x9, 0xA), (0xC, 0xD), (0x20, 0x20)],
        b'w' => WORD,
        _ => return None,
    };
    Some((class, letter.is_ascii_uppercase()))
}

/// Returns the class with this name, the text in `[:…:]`.
pub(super) fn posix(name: &str) -> Option<Group> {
    let (name, is_negated) = match name.strip_prefix('^') {
        Some(name) => (name, true),
        None => (name, false),
    };
    let class: &[Range] = match name {
        "alnum" => ALNUM,
        "alpha" => &[(0x41, 0x5A), (0x61, 0x7A)],
        "ascii" => &[(0x0, 0x7F)],
        "blank" => &[(0x9, 0x9), (0x20, 0x20)],
        "cntrl" => &[(0x0, 0x1F), (0x7F, 0x7F)],
        "digit" => DIGIT,
        "graph" => &[(0x21, 0x7E)],
        "lower" => &[(0x61, 0x7A)],
        "print" => &[(0x20, 0x7E)],
        "punct" => PUNCT,
        "space" => &[(0x9, 0xD), (0x20, 0x20)],
        "upper" => &[(0x41, 0x5A)],
        "word" => WORD,
        "xdigit" => &[(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)],
        _ => return None,
    };
    Some((class, is_negated))
}
