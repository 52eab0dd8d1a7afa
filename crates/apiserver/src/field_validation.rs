//! Finds unknown fields and duplicate members in request bodies.
//!
//! A complaint is the message about one unknown field or duplicate member. The query parameter
//! `fieldValidation` selects how the module reports complaints.
//!
//! Guarantees:
//! - for a custom kind, only the fields inside `metadata` are checked for unknown fields. All other fields
//!   are stored;
//! - unknown fields in the checked parts of a body are never stored, whatever the value of `fieldValidation`;
//! - of several duplicate members, the last one is stored;
//! - a null is stored as in Kubernetes: as a missing field, or as an empty string in a list or map of strings;
//! - complaints have Kubernetes' wording and order. As in Kubernetes, the number of complaints is limited;
//! - `Strict` returns the complaints as one error, `Warn` (the default) sends them as warnings, and `Ignore`
//!   drops them.

mod known;
mod warnings;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::status::ApiError;

pub(crate) use known::Known;
pub(crate) use warnings::Warnings;

/// Maximum number of complaints about a request body, as in `sigs.k8s.io/json` (`saveStrictError`).
const COMPLAINTS_MAX: usize = 100;

/// Maximum length in bytes of a field's path in a message about the field; longer paths are truncated.
const PATH_SHOWN_MAX: usize = 4 * 1024;

/// Start of the complaint about an unknown field.
const UNKNOWN: &str = "unknown";

/// Value of the query parameter `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    Ignore,
    Warn,
    Strict,
}

/// Distinct messages about the unknown and duplicate fields of a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Complaints(Vec<String>);

/// Deserializes a JSON value without its unknown members, and records complaints about members.
struct Reader<'a> {
    known: Known,
    trail: &'a mut Trail,
}

/// Path of the current value in a request body, and the complaints so far.
#[derive(Default)]
struct Trail {
    /// Path of the value that is being read, such as `spec.containers[0].image`.
    path: String,
    complaints: Complaints,
}

/// Parses a JSON request body, and drops its unknown fields.
///
/// Returns the parsed value, and complaints about unknown fields and duplicate members.
///
/// # Errors
///
/// Returns an error if the body is not JSON.
pub(crate) fn read(body: &[u8], known: Known) -> serde_json::Result<(Value, Complaints)> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut trail = Trail::default();
    let reader = Reader {
        known,
        trail: &mut trail,
    };
    let value = reader.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, trail.complaints))
}

/// Returns `value` without its unknown fields, and a complaint about each removed field.
pub(crate) fn prune(value: Value, known: Known) -> (Value, Complaints) {
    let mut trail = Trail::default();
    let reader = Reader {
        known,
        trail: &mut trail,
    };
    let pruned = reader.deserialize(value);
    let pruned = pruned.expect("a value that was read once can be read again");
    (pruned, trail.complaints)
}

// === impl Directive ===

impl Directive {
    /// Parses the query parameter `fieldValidation`; the default is [`Directive::Warn`].
    pub(crate) fn of(text: Option<&str>) -> Directive {
        match text {
            Some("Ignore") => Directive::Ignore,
            Some("Strict") => Directive::Strict,
            _ => Directive::Warn,
        }
    }

    /// Ignores the complaints (`Ignore`), adds them to `warnings` (`Warn`), or rejects the request
    /// (`Strict`).
    ///
    /// # Errors
    ///
    /// `Strict` returns a 400 error that contains all complaints, if there are any.
    pub(crate) fn judge(self, complaints: Complaints, warnings: &Warnings) -> Result<(), ApiError> {
        match self {
            _ if complaints.0.is_empty() => Ok(()),
            Directive::Ignore => Ok(()),
            Directive::Strict => Err(ApiError::bad_request(format!(
                "strict decoding error: {}",
                complaints.0.join(", ")
            ))),
            Directive::Warn => {
                complaints.0.into_iter().for_each(|text| warnings.add(text));
                Ok(())
            }
        }
    }
}

// === impl Complaints ===

impl Complaints {
    fn add(&mut self, text: String) {
        if self.0.len() < COMPLAINTS_MAX && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a complaint about each unknown field, given by its path.
    pub(crate) fn add_unknown(&mut self, paths: &[String]) {
        for path in paths {
            self.add(about(UNKNOWN, path));
        }
    }

    /// Returns the paths of the unknown fields.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|text| {
            let path = text.strip_prefix(UNKNOWN)?;
            path.strip_prefix(" field \"")?.strip_suffix('"')
        })
    }

    /// Appends the complaints in `found` that `old` does not contain, and returns the result.
    pub(crate) fn and_new(mut self, found: Complaints, old: &Complaints) -> Complaints {
        let new = found.0.into_iter().filter(|text| !old.0.contains(text));
        self.0.extend(new);
        self
    }

    /// Returns the complaints with the prefix `what`, such as `json patch`, before each message.
    pub(crate) fn about(self, what: &str) -> Complaints {
        Complaints(self.0.iter().map(|text| format!("{what} {text}")).collect())
    }
}

// === impl Trail ===

impl Trail {
    /// Appends `step`, such as `.spec`, to the path, runs `go`, and removes `step` again.
    fn below<T>(&mut self, step: fmt::Arguments<'_>, go: impl FnOnce(&mut Trail) -> T) -> T {
        let length = self.path.len();
        let _ = fmt::Write::write_fmt(&mut self.path, step);
        let done = go(self);
        self.path.truncate(length);
        done
    }

    fn member<T>(&mut self, name: &str, go: impl FnOnce(&mut Trail) -> T) -> T {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.below(format_args!("{dot}{name}"), go)
    }

    fn complain(&mut self, what: &str) {
        self.complaints.add(about(what, &self.path));
    }
}

/// Returns the message about a field, which `what` describes.
fn about(what: &str, path: &str) -> String {
    let mut shown = path.len().min(PATH_SHOWN_MAX);
    while !path.is_char_boundary(shown) {
        shown -= 1;
    }
    let (path, rest) = path.split_at(shown);
    let dots = if rest.is_empty() { "" } else { "..." };
    format!("{what} field \"{path}{dots}\"")
}

// === impl Reader ===

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(match self.known {
            Known::Text => Value::String(String::new()),
            _ => Value::Null,
        })
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let known = self.known.item();
        let mut items = Vec::new();
        loop {
            let step = format_args!("[{}]", items.len());
            let next = self
                .trail
                .below(step, |trail| seq.next_element_seed(Reader { known, trail }))?;
            match next {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let omits_nulls = self.known.omits_nulls();
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let known = self.known.member(&name);
            let is_second = members.contains_key(&name);
            let value = self.trail.member(&name, |trail| {
                let Some(known) = known else {
                    trail.complain(UNKNOWN);
                    map.next_value::<IgnoredAny>()?;
                    return Ok(None);
                };
                if is_second {
                    trail.complain("duplicate");
                }
                map.next_value_seed(Reader { known, trail }).map(Some)
            })?;
            match value {
                // Go does not assign a null, so an earlier duplicate of the member stays.
                Some(Value::Null) if omits_nulls => {}
                Some(value) => drop(members.insert(name, value)),
                None => {}
            }
        }
        Ok(Value::Object(members))
    }
}
