//! Finds the path of the value at which decoding failed, from the position in a `serde_json` error.
//!
//! A deserializer that records paths, such as `serde_path_to_error`, is not used. It would double the
//! compiled decoding code of each type.

use std::fmt::Write;

/// An array or object that encloses the error, and the index or key that leads to the error.
enum Container<'a> {
    /// The index, or `None` before the first item.
    Array(Option<usize>),
    /// The key with its quotes, or `None` before a key.
    Object(Option<&'a [u8]>),
}

/// Returns the path of the value at the position of `error`, such as `spec.ports[0].port`.
///
/// For a missing field, returns the path of the object that lacks the field.
pub(crate) fn failed_path(json: &[u8], error: &serde_json::Error) -> String {
    let containers = containers(json, offset(json, error));
    let mut path = String::new();
    for container in containers {
        match container {
            Container::Array(Some(item)) => drop(write!(path, "[{item}]")),
            Container::Array(None) | Container::Object(None) => {}
            Container::Object(Some(key)) => {
                let key = serde_json::from_slice(key);
                let separator = if path.is_empty() { "" } else { "." };
                path.extend([separator, &key.unwrap_or_else(|_| "?".to_owned())]);
            }
        }
    }
    if path.is_empty() {
        ".".to_owned()
    } else {
        path
    }
}

/// Returns the number of bytes before the position of `error`, or 0 if `error` has no position.
fn offset(json: &[u8], error: &serde_json::Error) -> usize {
    let Some(lines_before) = error.line().checked_sub(1) else {
        return 0;
    };
    let lines = json.split_inclusive(|&byte| byte == b'\n');
    let before: usize = lines.take(lines_before).map(<[u8]>::len).sum();
    json.len().min(before + error.column())
}

/// Returns the arrays and objects that are open at the byte position `end`.
fn containers(json: &[u8], end: usize) -> Vec<Container<'_>> {
    let mut containers = Vec::new();
    let mut at = 0;
    while at < end {
        let byte = json[at];
        if let Some(Container::Array(item @ None)) = containers.last_mut()
            && !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b']')
        {
            *item = Some(0);
        }
        match (byte, containers.last_mut()) {
            (b'{', _) => containers.push(Container::Object(None)),
            (b'[', _) => containers.push(Container::Array(None)),
            (b'}' | b']', _) => drop(containers.pop()),
            (b',', Some(Container::Array(Some(item)))) => *item += 1,
            (b',', Some(Container::Object(key))) => *key = None,
            (b'"', container) => {
                let length = string_length(&json[at..end]);
                if let Some(Container::Object(key @ None)) = container {
                    *key = Some(&json[at..at + length]);
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    containers
}

/// Returns the length in bytes of the string at the start of `json`, including its quotes.
fn string_length(json: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = json.iter().skip(1).position(|&byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
mod tests;
