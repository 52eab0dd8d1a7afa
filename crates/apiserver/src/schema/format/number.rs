//! Checks numbers of books, credit cards and persons.

/// Returns whether `text` is an ISBN of 10 characters. Spaces and dashes are ignored.
///
/// The check digit 10 is an uppercase `X`.
pub(super) fn is_isbn10(text: &str) -> bool {
    let characters: Vec<u8> = significant(text).collect();
    let [digits @ .., check] = characters.as_slice() else {
        return false;
    };
    let check = match check {
        b'X' => 10,
        _ => u32::from(check.wrapping_sub(b'0')),
    };
    if digits.len() != 9 || !digits.iter().all(u8::is_ascii_digit) || check > 10 {
        return false;
    }
    let weighted = (1..)
        .zip(digits)
        .map(|(weight, digit)| weight * value(*digit));
    (weighted.sum::<u32>() + 10 * check).is_multiple_of(11)
}

/// Returns whether `text` is an ISBN of 13 digits. Spaces and dashes are ignored.
pub(super) fn is_isbn13(text: &str) -> bool {
    let digits: Vec<u8> = significant(text).collect();
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let weighted = weights
        .zip(&digits)
        .map(|(weight, digit)| weight * value(*digit));
    weighted.sum::<u32>().is_multiple_of(10)
}

/// Returns the bytes of an ISBN without spaces and dashes.
fn significant(text: &str) -> impl Iterator<Item = u8> {
    let ignored = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c' | b'-');
    text.bytes().filter(move |byte| !ignored(byte))
}

/// Returns whether the ASCII digits of `text` are the number of a credit card.
///
/// All other characters are ignored.
pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).collect();
    let length = digits.len();
    let known_issuer = match digits.as_slice() {
        [b'4', ..] => matches!(length, 13 | 16),
        [b'5', b'1'..=b'5', ..] | [b'6', b'0', b'1', b'1', ..] | [b'6' | b'3', b'5', ..] => {
            length == 16
        }
        [b'3', b'4' | b'7', ..] | [b'2', b'1', b'3', b'1', ..] | [b'1', b'8', b'0', b'0', ..] => {
            length == 15
        }
        [b'3', b'0', b'0'..=b'5', ..] | [b'3', b'6' | b'8', ..] => length == 14,
        _ => false,
    };
    known_issuer && has_luhn_check_digit(&digits)
}

/// Returns whether the last digit is the check digit of the Luhn algorithm.
fn has_luhn_check_digit(digits: &[u8]) -> bool {
    let weights = [1, 2].into_iter().cycle();
    let weighted = weights.zip(digits.iter().rev()).map(|(weight, digit)| {
        let product: u32 = weight * value(*digit);
        product / 10 + product % 10
    });
    weighted.sum::<u32>().is_multiple_of(10)
}

/// Returns whether `text` is a U.S. social security number. Each separator is a dash or a space.
pub(super) fn is_ssn(text: &str) -> bool {
    let separators = [3, 6];
    text.len() == 11
        && text.bytes().enumerate().all(|(index, byte)| {
            if separators.contains(&index) {
                matches!(byte, b'-' | b' ')
            } else {
                byte.is_ascii_digit()
            }
        })
}

/// Returns the value of an ASCII digit.
fn value(digit: u8) -> u32 {
    u32::from(digit.wrapping_sub(b'0'))
}
