//! URLs, as Go's `net/url` parses them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::quote::Quoted;

/// A parsed URL.
#[derive(Debug, PartialEq)]
pub(super) struct Url {
    pub(super) scheme: String,
    pub(super) host: String,
    pub(super) escaped_path: String,
    query: String,
}

/// Parses an absolute URL or path, and then its fragment, as Kubernetes does.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    check_request_uri(text)?;
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let parsed = parse_parts(before, false);
    let parsed = parsed.and_then(|url| unescape(fragment, false).map(|_| url));
    parsed.map_err(|error| message(text, &error))
}

/// Returns the message of Go's `url.ParseRequestURI` for texts that it rejects.
pub(super) fn check_request_uri(text: &str) -> Result<(), String> {
    let parsed = parse_parts(text, true);
    parsed.map(|_| ()).map_err(|error| message(text, &error))
}

fn message(text: &str, error: &str) -> String {
    format!("parse {}: {error}", Quoted(text))
}

impl Url {
    pub(super) fn host_name(&self) -> &str {
        let host = self.without_port();
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        bracketed.unwrap_or(host)
    }

    pub(super) fn port(&self) -> &str {
        let port = &self.host[self.without_port().len()..];
        port.strip_prefix(':').unwrap_or(port)
    }

    fn without_port(&self) -> &str {
        match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => &self.host[..colon],
            _ => &self.host,
        }
    }

    /// Returns the values of each key of the query. Parts that can't be decoded are left out.
    pub(super) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in self
            .query
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.contains(';'))
        {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let (Ok(key), Ok(value)) = (unescape(key, true), unescape(value, true)) {
                values.entry(key).or_default().push(value);
            }
        }
        values
    }
}

fn parse_parts(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|one| one < b' ' || one == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url {
        scheme: String::new(),
        host: String::new(),
        escaped_path: String::new(),
        query: String::new(),
    };
    if text == "*" {
        "*".clone_into(&mut url.escaped_path);
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    query.clone_into(&mut url.query);
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let mut path = rest;
    let has_authority = !scheme.is_empty() || (!is_request && !rest.starts_with("///"));
    if has_authority && let Some(authority) = rest.strip_prefix("//") {
        let end = authority.find('/').unwrap_or(authority.len());
        url.host = parse_authority(&authority[..end])?;
        path = &authority[end..];
    }
    let decoded = unescape_bytes(path, Mode::Path)?;
    url.escaped_path = if is_valid_path(path) {
        path.to_owned()
    } else {
        escape_path(&decoded)
    };
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (place, letter) in text.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if place > 0 => {}
            ':' if place == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => return Ok((&text[..place], &text[place + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_authority(authority: &str) -> Result<String, String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = parse_host(host)?;
    if let Some(user) = user {
        let is_valid =
            |one: char| one.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(one);
        if !user.chars().all(is_valid) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        unescape(user, false)?;
    }
    Ok(host)
}

fn parse_host(host: &str) -> Result<String, String> {
    let port = if host.starts_with('[') {
        let end = host
            .rfind(']')
            .ok_or_else(|| "missing ']' in host".to_owned())?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    if !is_port(port) {
        return Err(format!("invalid port {} after host", Quoted(port)));
    }
    let bytes = unescape_bytes(host, Mode::Host)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_port(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|one| one.is_ascii_digit()))
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Host,
    Path,
    Query,
}

fn unescape(text: &str, is_query: bool) -> Result<String, String> {
    let mode = if is_query { Mode::Query } else { Mode::Path };
    let bytes = unescape_bytes(text, mode)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unescape_bytes(text: &str, mode: Mode) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'%' => {
                let digits = after
                    .get(..2)
                    .and_then(|digits| std::str::from_utf8(digits).ok());
                let is_hex = |digits: &&str| digits.bytes().all(|one| one.is_ascii_hexdigit());
                let byte = digits
                    .filter(is_hex)
                    .and_then(|one| u8::from_str_radix(one, 16).ok());
                // Only bytes that are not ASCII can be escaped in a host, and the sign itself.
                let byte = byte.filter(|byte| mode != Mode::Host || *byte >= 0x80 || *byte == b'%');
                let Some(byte) = byte else {
                    let length = after.len().min(2);
                    let shown = String::from_utf8_lossy(&after[..length]).into_owned();
                    return Err(format!(
                        "invalid URL escape {}",
                        Quoted(&format!("%{shown}"))
                    ));
                };
                bytes.push(byte);
                rest = &after[2..];
            }
            b'+' if mode == Mode::Query => bytes.push(b' '),
            other if mode == Mode::Host && other.is_ascii() && !is_host_byte(*other) => {
                let shown = char::from(*other).to_string();
                return Err(format!("invalid character {} in host name", Quoted(&shown)));
            }
            other => bytes.push(*other),
        }
    }
    Ok(bytes)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

fn is_host_byte(byte: u8) -> bool {
    is_unreserved(byte) || b"!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// Returns whether a path contains only characters that need no escaping, and escape sequences.
fn is_valid_path(path: &str) -> bool {
    path.bytes()
        .all(|byte| is_unreserved(byte) || b"!$&'()*+,;=:@[]%/".contains(&byte))
}

fn escape_path(path: &[u8]) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path {
        match byte {
            byte if is_unreserved(*byte) || b"$&+,/:;=@".contains(byte) => {
                escaped.push(char::from(*byte));
            }
            byte => {
                let _ = write!(escaped, "%{byte:02X}");
            }
        }
    }
    escaped
}
