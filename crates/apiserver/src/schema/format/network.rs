//! Checks IP addresses, blocks of IP addresses, and MAC addresses.
//!
//! The formats `ipv4` and `cidr` allow leading zeros, unlike `ipv6`.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Returns whether `text` is an IPv4 address, or an IPv6 address that ends in one.
///
/// An example of the latter is `::ffff:192.0.2.1`. Leading zeros are ignored: `010` is 10.
pub(super) fn is_ipv4(text: &str) -> bool {
    let address = without_leading_zeros(text);
    text.contains('.') && (address.parse::<Ipv4Addr>().is_ok() || is_ipv6(&address))
}

/// Returns whether `text` is an IPv6 address without a zone.
///
/// Go's `netip.ParseAddr` and Rust accept the same addresses, apart from zones.
pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// Returns whether `text` is an IP address, a slash, and the length of a prefix.
///
/// Leading zeros are ignored in both parts. The address can have bits after the prefix.
pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let address = without_leading_zeros(address);
    let length_max = if address.parse::<Ipv4Addr>().is_ok() {
        32
    } else if is_ipv6(&address) {
        128
    } else {
        return false;
    };
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && length
            .parse::<u8>()
            .is_ok_and(|length| length <= length_max)
}

/// Returns `text` without the zeros at the start of each number.
///
/// A number is a sequence of hexadecimal digits. Its last digit is kept.
fn without_leading_zeros(text: &str) -> String {
    let mut shortened = String::new();
    let mut in_number = false;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next_is_digit = characters.peek().is_some_and(char::is_ascii_hexdigit);
        if character == '0' && !in_number && next_is_digit {
            continue;
        }
        in_number = character.is_ascii_hexdigit();
        shortened.push(character);
    }
    shortened
}

/// Returns whether `text` is a hardware address of 6, 8 or 20 bytes.
///
/// The digits are separated by colons or dashes after each byte, by dots after each second byte, or not at
/// all.
pub(super) fn is_mac(text: &str) -> bool {
    let text = text.as_bytes();
    let (separator, group) = match (text.get(2), text.get(4)) {
        (Some(separator @ (b':' | b'-')), _) => (*separator, 3),
        (_, Some(b'.')) => (b'.', 5),
        // Without separators, the one group is longer than the text.
        _ => (0, text.len() + 1),
    };
    let is_digit_or_separator = |(index, byte): (usize, &u8)| {
        if index % group == group - 1 {
            *byte == separator
        } else {
            byte.is_ascii_hexdigit()
        }
    };
    let digits = text.len() - text.len() / group;
    let ends_in_group = (text.len() + 1).is_multiple_of(group) || separator == 0;
    ends_in_group
        && matches!(digits, 12 | 16 | 40)
        && text.iter().enumerate().all(is_digit_or_separator)
}
