//! Parses URLs as Go's `net/url` does.
//!
//! Guarantees: the accepted URLs and the messages are those of Go 1.26, with one exception: Go reports which part
//! of an IPv6 address is invalid, and this module does not.

use std::net::Ipv6Addr;

use crate::quote::{Quoted, quoted_bytes};

/// The parts of a URL that definitions need.
#[derive(Debug)]
pub(super) struct Url {
    /// The scheme in lower case.
    pub(super) scheme: String,
    /// The escaped name and password, if there are any.
    pub(super) user: Option<String>,
    /// The host with the port, without escapes.
    pub(super) host: Vec<u8>,
    pub(super) query: String,
    /// The text after `#`, without escapes.
    pub(super) fragment: Vec<u8>,
}

/// The part of a URL that a text comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    User,
    Host,
    /// The zone of an IPv6 address.
    Zone,
    Fragment,
}

/// Where a URL comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Text,
    /// A URL in the first line of an HTTP request, which must be absolute.
    Request,
}

impl Url {
    /// Parses a text as Go's `url.Parse` does.
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let (url, fragment) = text.split_once('#').unwrap_or((text, ""));
        let refused = |text, why| format!("parse {}: {why}", Quoted(text));
        let mut parsed = parse(url, Source::Text).map_err(|why| refused(url, why))?;
        parsed.fragment = unescape(fragment, Part::Fragment).map_err(|why| refused(text, why))?;
        Ok(parsed)
    }

    /// Parses an absolute URL or path as Go's `url.ParseRequestURI` does. Returns `None` if it is invalid.
    pub(super) fn parse_request(text: &str) -> Option<Url> {
        parse(text, Source::Request).ok()
    }
}

fn parse(text: &str, source: Source) -> Result<Url, String> {
    let mut url = Url {
        scheme: String::new(),
        user: None,
        host: Vec::new(),
        query: String::new(),
        fragment: Vec::new(),
    };
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && source == Source::Request {
        return Err("empty url".to_owned());
    }
    if text == "*" {
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if source == Source::Request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !scheme.is_empty() || (source == Source::Text && !rest.starts_with("///"));
    let mut path = rest;
    if may_have_host && let Some(rest) = rest.strip_prefix("//") {
        let (authority, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        path = below;
        (url.user, url.host) = parse_authority(&url.scheme, authority)?;
    }
    unescape(path, Part::Path)?;
    Ok(url)
}

/// Returns the scheme, which is empty if there is none, and the rest.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(scheme: &str, authority: &str) -> Result<(Option<String>, Vec<u8>), String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, host)?;
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_valid) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let mut parts = user.splitn(2, ':').map(|part| {
        let part = unescape(part, Part::User)?;
        Ok(escape(&part))
    });
    let parts: Result<Vec<String>, String> = parts.by_ref().collect();
    Ok((Some(parts?.join(":")), host))
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let port = match host.rfind('[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None if matches!(scheme, "http" | "https") => host.find(':'),
        None => host.rfind(':'),
    };
    check_port(port.map_or("", |at| &host[at..]))?;
    unescape(host, Part::Host)
}

fn check_port(text: &str) -> Result<(), String> {
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty() || text.strip_prefix(':').is_some_and(is_port) {
        return Ok(());
    }
    Err(format!("invalid port {} after host", Quoted(text)))
}

/// Parses a host that starts with a bracket, such as `[::1]:80`.
fn parse_ip_literal(host: &str) -> Result<Vec<u8>, String> {
    let (inside, port) = host
        .rsplit_once(']')
        .ok_or_else(|| "missing ']' in host".to_owned())?;
    check_port(port)?;
    let inside = &inside[1..];
    let (address, zone) = inside.split_at(inside.find("%25").unwrap_or(inside.len()));
    let mut name = unescape(address, Part::Host)?;
    name.extend(unescape(zone, Part::Zone)?);
    let text = String::from_utf8_lossy(&name).into_owned();
    let (address, zone) = text.split_once('%').unwrap_or((&text, "-"));
    if address.parse::<std::net::Ipv4Addr>().is_ok() {
        return Err("invalid IP-literal".to_owned());
    }
    if zone.is_empty() || address.parse::<Ipv6Addr>().is_err() {
        let name = quoted_bytes(&name);
        return Err(format!(
            "invalid host: ParseAddr({name}): unable to parse IP"
        ));
    }
    Ok([b"[", name.as_slice(), b"]", port.as_bytes()].concat())
}

/// Returns whether a byte must be escaped in a host, or in a name or password.
fn must_escape(byte: u8, part: Part) -> bool {
    let others: &[u8] = match part {
        Part::Host | Part::Zone => b"-_.~!$&'()*+,;=:[]<>\"",
        _ => b"-_.~$&+,;=",
    };
    !byte.is_ascii_alphanumeric() && !others.contains(&byte)
}

/// Decodes the escapes in a part of a URL.
fn unescape(text: &str, part: Part) -> Result<Vec<u8>, String> {
    let is_host = matches!(part, Part::Host | Part::Zone);
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, below)) = rest.split_first() {
        if *first != b'%' {
            if is_host && first.is_ascii() && must_escape(*first, part) {
                let shown = quoted_bytes(&[*first]);
                return Err(format!("invalid character {shown} in host name"));
            }
            decoded.push(*first);
            rest = below;
            continue;
        }
        let refused = || {
            let shown = quoted_bytes(&rest[..rest.len().min(3)]);
            format!("invalid URL escape {shown}")
        };
        let digit = |at: usize| char::from(*rest.get(at)?).to_digit(16);
        let (Some(high), Some(low)) = (digit(1), digit(2)) else {
            return Err(refused());
        };
        let byte = u8::try_from(high * 16 + low).unwrap_or_default();
        let is_refused = match part {
            Part::Host => high < 8,
            Part::Zone => byte != b' ' && must_escape(byte, Part::Host),
            _ => false,
        };
        if is_refused && byte != b'%' {
            return Err(refused());
        }
        decoded.push(byte);
        rest = &rest[3..];
    }
    Ok(decoded)
}

/// Escapes a name or password.
fn escape(text: &[u8]) -> String {
    let escaped = text.iter().map(|byte| {
        if must_escape(*byte, Part::User) {
            format!("%{byte:02X}")
        } else {
            char::from(*byte).to_string()
        }
    });
    escaped.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// URLs, and the scheme, user, host, query and fragment that Go 1.26 finds, or its error.
    #[test]
    fn urls_are_parsed_as_by_go() {
        for (text, expected) in [
            ("https://a.b/c", "https||a.b||"),
            ("HTTPS://u:p@a:1/?q#f%20", "https|u:p|a:1|q|f "),
            ("https:opaque", "https||||"),
            ("https://a!:%41@h", "https|a%21:A|h||"),
            ("https://[::1%25a]:1/", "https||[::1%a]:1||"),
            ("a/b:c", "||||"),
            ("a:b/c:d:", "a||||"),
            (":a", "parse \":a\": missing protocol scheme"),
            (
                "1:a",
                "parse \"1:a\": first path segment in URL cannot contain colon",
            ),
            (
                "https://a:b/#x",
                "parse \"https://a:b/\": invalid port \":b\" after host",
            ),
            (
                "https://a b/",
                "parse \"https://a b/\": invalid character \" \" in host name",
            ),
            (
                "https://a%41/",
                "parse \"https://a%41/\": invalid URL escape \"%41\"",
            ),
            ("/%zz#a", "parse \"/%zz\": invalid URL escape \"%zz\""),
            ("/#%1", "parse \"/#%1\": invalid URL escape \"%1\""),
            (
                "https://a\u{1}",
                "parse \"https://a\\x01\": net/url: invalid control character in URL",
            ),
            (
                "https://ä@b",
                "parse \"https://ä@b\": net/url: invalid userinfo",
            ),
            (
                "https://a[::1]",
                "parse \"https://a[::1]\": invalid IP-literal",
            ),
            (
                "https://[::1",
                "parse \"https://[::1\": missing ']' in host",
            ),
            (
                "https://[1.2.3.4]",
                "parse \"https://[1.2.3.4]\": invalid IP-literal",
            ),
        ] {
            let found = Url::parse(text).map_or_else(
                |why| why,
                |url| {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    [
                        url.scheme,
                        url.user.unwrap_or_default(),
                        text(&url.host),
                        url.query,
                        text(&url.fragment),
                    ]
                    .join("|")
                },
            );
            assert_eq!(found, expected, "{text}");
        }
    }
}
