//! Sorts the keys of a mapping as `go.yaml.in/yaml/v2` does in `sorter.go`.
//!
//! Numbers in keys are compared by their value, so `a2` precedes `a10`, and other characters precede letters.
//!
//! Guarantees: the order is Go's wherever Go's comparison is an order. Go compares some keys in a circle. The
//! order of such keys is random in Go, and fixed here.

use std::sync::LazyLock;

use crate::go_regex::Pattern;

/// Matches the letters of Go's `unicode.IsLetter`.
static LETTER: LazyLock<Pattern> = LazyLock::new(|| class(r"^\pL$"));

/// Matches the digits of Go's `unicode.IsDigit`.
static DIGIT: LazyLock<Pattern> = LazyLock::new(|| class(r"^\p{Nd}$"));

fn class(pattern: &str) -> Pattern {
    Pattern::compile(pattern).expect("the pattern is valid")
}

/// Sorts keys by merging.
///
/// The sort of the standard library can panic if the comparison is not an order.
pub(super) fn sort<T>(items: Vec<T>, key: impl Fn(&T) -> &str + Copy) -> Vec<T> {
    if items.len() < 2 {
        return items;
    }
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    let mut left = sort(left, key).into_iter().peekable();
    let mut right = sort(right, key).into_iter().peekable();
    let mut sorted = Vec::with_capacity(left.len() + right.len());
    while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
        let next = if precedes(key(other), key(one)) {
            right.next()
        } else {
            left.next()
        };
        sorted.extend(next);
    }
    sorted.extend(left.chain(right));
    sorted
}

/// Returns the result of Go's `keyList.Less` for two texts.
fn precedes(one: &str, other: &str) -> bool {
    let common = one.chars().zip(other.chars());
    let same: usize = common
        .take_while(|(a, b)| a == b)
        .map(|(letter, _)| letter.len_utf8())
        .sum();
    let (mut a_rest, mut b_rest) = (one[same..].chars(), other[same..].chars());
    let (Some(a), Some(b)) = (a_rest.next(), b_rest.next()) else {
        return one.len() == same && other.len() > same;
    };
    match (is_letter(a), is_letter(b)) {
        (true, true) => return a < b,
        (false, false) => {}
        (_, b_is_letter) => return b_is_letter,
    }
    // A zero does not lead a number if another digit precedes it.
    let before = one[..same].chars().rev();
    let mut digits = before.take_while(|letter| is_digit(*letter));
    let within = (a == '0' || b == '0') && digits.any(|digit| digit != '0');
    let start = i64::from(within);
    let (a_number, a_length) = number(&one[same..], start);
    let (b_number, b_length) = number(&other[same..], start);
    if a_number != b_number {
        return a_number < b_number;
    }
    if a_length != b_length {
        return a_length < b_length;
    }
    a < b
}

/// Returns the number at the start of a text, after the digit `start`, and its count of digits.
///
/// As in Go, digits of other scripts count with the distance of their code points from `0`, and a long number
/// wraps.
fn number(text: &str, start: i64) -> (i64, usize) {
    let digits = text.chars().take_while(|letter| is_digit(*letter));
    digits.fold((start, 0), |(number, length), digit| {
        let value = i64::from(u32::from(digit)) - i64::from(b'0');
        (number.wrapping_mul(10).wrapping_add(value), length + 1)
    })
}

fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphabetic();
    }
    LETTER.is_match(letter.encode_utf8(&mut [0; 4]))
}

fn is_digit(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_digit();
    }
    DIGIT.is_match(letter.encode_utf8(&mut [0; 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is that of `go.yaml.in/yaml/v2` 2.4.3.
    #[test]
    fn keys_are_in_gos_order() {
        let sorted = [
            "", "-", "0", "00", "1", "2", "10", "A", "a", "a.b", "a-", "a2", "a02", "a10", "ab",
            "b",
        ];
        for (at, one) in sorted.iter().enumerate() {
            assert!(!precedes(one, one), "{one}");
            for other in &sorted[at + 1..] {
                assert!(
                    precedes(one, other) != precedes(other, one),
                    "{one} {other}"
                );
            }
        }
        let keys: Vec<&str> = sort(vec!["a10", "b", "a2", "-", "10", "2"], |key| key);
        assert_eq!(keys, ["-", "2", "10", "a2", "a10", "b"]);
    }

    #[test]
    fn keys_in_a_circle_do_not_panic() {
        let keys: Vec<String> = (0..2000)
            .map(|nth| format!("{}\u{660}{}", nth % 7, nth % 13))
            .collect();
        assert_eq!(sort(keys, |key| key).len(), 2000);
    }
}
