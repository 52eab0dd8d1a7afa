//! Checks URIs as Go's `url.ParseRequestURI` does.
//!
//! - The text is an absolute path, a scheme with anything after it, or `*`.
//! - ASCII control characters are forbidden. Spaces are allowed outside the authority, and characters outside
//!   ASCII everywhere except in the scheme and the user.
//! - Percent signs are checked in the authority and in the path, and not in the query.
//! - A fragment is part of the path or of the query.

use super::network::is_ipv6;

/// Returns whether `text` is a URI.
pub(super) fn is_uri(text: &str) -> bool {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let (scheme, rest) = split_scheme(text);
    if scheme.is_some_and(str::is_empty) {
        return false;
    }
    let path = rest.split('?').next().unwrap_or_default();
    if !path.starts_with('/') {
        return scheme.is_some();
    }
    match (scheme, path.strip_prefix("//")) {
        (Some(scheme), Some(rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            is_authority(scheme, authority) && has_valid_escapes(path)
        }
        _ => has_valid_escapes(path),
    }
}

/// Splits off the scheme. A colon without a scheme before it is an empty scheme.
fn split_scheme(text: &str) -> (Option<&str>, &str) {
    let end = text.find(|next: char| !next.is_ascii_alphanumeric() && !"+-.".contains(next));
    let (scheme, rest) = text.split_at(end.unwrap_or(text.len()));
    let starts_well =
        |scheme: &str| scheme.is_empty() || scheme.starts_with(|it: char| it.is_ascii_alphabetic());
    match rest.strip_prefix(':') {
        Some(rest) if starts_well(scheme) => (Some(scheme), rest),
        _ => (None, text),
    }
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    match authority.rsplit_once('@') {
        None => is_host(scheme, authority),
        Some((user, host)) => is_host(scheme, host) && is_user(user),
    }
}

/// Returns whether `text` is a user, or a user and a password.
fn is_user(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    text.bytes().all(is_allowed) && has_valid_escapes(text)
}

/// Returns whether `text` is a host, or a host and a port.
fn is_host(scheme: &str, text: &str) -> bool {
    match text.rfind('[') {
        Some(0) => return is_ip_literal(&text[1..]),
        Some(_) => return false,
        None => {}
    }
    // Some databases have URIs with several hosts, as in `postgres://a:1,b:2`.
    // For these, Go checks only the last port.
    let strict = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let port = if strict {
        text.find(':')
    } else {
        text.rfind(':')
    };
    port.is_none_or(|port| is_port(&text[port..])) && escapes(text, is_host_byte, is_host_escape)
}

/// Returns whether `text`, which follows a `[`, is an IPv6 address and a `]`, with or without a port.
///
/// The address can have a zone after `%25`.
fn is_ip_literal(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(']') else {
        return false;
    };
    let (address, zone_is_valid) = match host.split_once("%25") {
        None => (host, true),
        Some((address, zone)) => (
            address,
            !zone.is_empty() && escapes(zone, is_host_byte, is_zone_escape),
        ),
    };
    zone_is_valid && is_ipv6(address) && (port.is_empty() || is_port(port))
}

/// Returns whether `text` is a colon and digits. The digits can be missing.
fn is_port(text: &str) -> bool {
    let digits = text.strip_prefix(':');
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns whether Go allows an unescaped byte in a host.
fn is_host_byte(byte: u8) -> bool {
    !byte.is_ascii() || is_ascii_host_byte(byte)
}

fn is_ascii_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Returns whether Go allows the escape of a byte in a host: only bytes outside ASCII, and the percent sign.
fn is_host_escape(byte: u8) -> bool {
    !byte.is_ascii() || byte == b'%'
}

/// Returns whether Go allows the escape of a byte in the zone of an IPv6 address.
fn is_zone_escape(byte: u8) -> bool {
    is_ascii_host_byte(byte) || matches!(byte, b' ' | b'%')
}

/// Returns whether each percent sign in `text` starts an escape.
fn has_valid_escapes(text: &str) -> bool {
    escapes(text, |_| true, |_| true)
}

/// Returns whether `text` consists of bytes and escapes that the two functions accept.
///
/// `is_plain` decides about an unescaped byte, `is_escape` about the byte that an escape stands for.
fn escapes(text: &str, is_plain: fn(u8) -> bool, is_escape: fn(u8) -> bool) -> bool {
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return true,
            [b'%', high, low, rest @ ..] => match escaped(*high, *low) {
                Some(byte) if is_escape(byte) => rest,
                _ => return false,
            },
            [b'%', ..] => return false,
            [byte, rest @ ..] if is_plain(*byte) => rest,
            _ => return false,
        };
    }
}

/// Returns the byte that two hexadecimal digits stand for.
fn escaped(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}
