//! Checks colors.

/// Returns whether `text` is three or six hexadecimal digits, with or without `#` before them.
pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether `text` is a color such as `rgb(255, 255, 255)`.
///
/// Spaces are allowed around the numbers, and nowhere else.
pub(super) fn is_rgb_color(text: &str) -> bool {
    let numbers = text
        .strip_prefix("rgb(")
        .and_then(|rest| rest.strip_suffix(')'));
    let Some(numbers) = numbers else {
        return false;
    };
    let mut count = 0;
    let valid = numbers.split(',').all(|number| {
        count += 1;
        count <= 3 && is_channel(number.trim_matches([' ', '\t', '\n', '\r', '\x0c']))
    });
    valid && count == 3
}

/// Returns whether `number` is between 0 and 255, without leading zeros.
fn is_channel(number: &str) -> bool {
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let padded = number.len() > 1 && number.starts_with('0');
    digits && !padded && number.parse::<u8>().is_ok()
}
