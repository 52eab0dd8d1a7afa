//! Records what is wrong with a value while it is decoded, and where.

use std::fmt;

use serde_json::Value;

use super::Decoded;
use crate::field_validation::{Complaints, Wrong};

/// A value of a wrong type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The message of Go's JSON decoder, as for bodies and most patches.
    pub(crate) message: String,
    /// The message of Kubernetes' converter, as for strategic merge patches.
    pub(crate) converted: String,
}

/// The JSON value that has a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    Bool,
    Text,
    /// An integer for another type.
    Integer,
    /// A number with a fraction or an exponent for another type.
    Float,
    /// A number that its type can't represent, as it was written.
    Unfit(&'a str),
    Array,
    Object,
}

/// What the type in Go is, as far as the messages of the converter depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Simple,
    /// A type with a decoder of its own.
    Own,
    List,
    Map,
    Struct,
}

/// The place of a field.
pub(super) struct Place {
    /// Name of the struct that has the field.
    pub(super) owner: &'static str,
    /// Names of the structs in it that are inlined and contain the field, in reverse order.
    pub(super) inlined: Vec<&'static str>,
    pub(super) name: &'static str,
}

/// How a value is decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// As by Go's JSON decoder.
    #[default]
    Json,
    /// As by Go's JSON decoder, but unknown fields are part of the result.
    WithUnknown,
    /// As by Kubernetes' converter, which also accepts other numbers.
    Convert,
}

/// Path of the current value, the complaints and the first fault so far.
#[derive(Default)]
pub(super) struct Trail {
    /// Path of the value in complaints, such as `spec.containers[0].image`.
    path: String,
    /// Names of the fields in which the value is, as in faults: lists and maps have no names.
    fields: Vec<&'static str>,
    /// Name of the struct with the last of `fields`.
    owner: Option<&'static str>,
    /// Whether the value is in one with a decoder of its own, which ignores unknown fields.
    is_silent: bool,
    pub(super) mode: Mode,
    /// Whether the value is in one that follows an earlier one of the same name. Nulls are then part of the result.
    pub(super) keeps_nulls: bool,
    complaints: Complaints,
    fault: Option<Recorded>,
}

/// A fault, and whether it ends the decoding in Go. Such a fault replaces an earlier one that does not.
struct Recorded {
    fault: Fault,
    is_final: bool,
}

impl Found<'_> {
    /// Returns Go's type of the value in a map without types.
    fn untyped(self) -> &'static str {
        match self {
            Found::Bool => "bool",
            Found::Text => "string",
            Found::Float => "float64",
            Found::Unfit(text) if text.contains(['.', 'e', 'E']) => "float64",
            Found::Integer | Found::Unfit(_) => "int64",
            Found::Array => "[]interface {}",
            Found::Object => "map[string]interface {}",
        }
    }

    /// Returns whether Go can convert a value in a map without types to a simple kind.
    fn converts_to(self, kind: &str) -> bool {
        match self.untyped() {
            "int64" => kind != "bool",
            "float64" => !matches!(kind, "bool" | "string"),
            _ => false,
        }
    }

    /// Returns Go's kind of the value in a map without types.
    fn kind(self) -> &'static str {
        match self {
            Found::Array => "slice",
            Found::Object => "map",
            other => other.untyped(),
        }
    }
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Bool => f.write_str("bool"),
            Found::Text => f.write_str("string"),
            Found::Integer | Found::Float => f.write_str("number"),
            Found::Unfit(text) => write!(f, "number {text}"),
            Found::Array => f.write_str("array"),
            Found::Object => f.write_str("object"),
        }
    }
}

impl Trail {
    pub(super) fn new(mode: Mode) -> Trail {
        Trail {
            mode,
            ..Trail::default()
        }
    }

    pub(super) fn decoded(self, value: Value) -> Decoded {
        Decoded {
            value,
            complaints: self.complaints,
            fault: self.fault.map(|recorded| recorded.fault),
        }
    }

    /// Appends `step`, such as `[0]`, to the path, runs `go`, and removes `step` again.
    pub(super) fn below<T>(
        &mut self,
        step: fmt::Arguments<'_>,
        go: impl FnOnce(&mut Trail) -> T,
    ) -> T {
        let length = self.path.len();
        let _ = fmt::Write::write_fmt(&mut self.path, step);
        let done = go(self);
        self.path.truncate(length);
        done
    }

    pub(super) fn member<T>(&mut self, name: &str, go: impl FnOnce(&mut Trail) -> T) -> T {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.below(format_args!("{dot}{name}"), go)
    }

    /// Runs `go` for the value of a field.
    pub(super) fn field<T>(&mut self, place: &Place, go: impl FnOnce(&mut Trail) -> T) -> T {
        let outer = self.owner;
        if !self.is_silent {
            self.owner = Some(place.owner);
        }
        let length = self.fields.len();
        self.fields.extend(place.inlined.iter().rev());
        self.fields.push(place.name);
        let done = go(self);
        self.fields.truncate(length);
        self.owner = outer;
        done
    }

    /// Runs `go` for a value with a decoder of its own, whose faults end the decoding in Go.
    pub(super) fn silently<T>(&mut self, go: impl FnOnce(&mut Trail) -> T) -> T {
        let is_silent = std::mem::replace(&mut self.is_silent, true);
        let fault = self.fault.take();
        let done = go(self);
        let inner = std::mem::replace(&mut self.fault, fault);
        self.is_silent = is_silent;
        if let Some(inner) = inner {
            self.record(inner.fault, true);
        }
        done
    }

    pub(super) fn complain(&mut self, wrong: Wrong) {
        if !self.is_silent {
            self.complaints.add(wrong, &self.path);
        }
    }

    /// Records that a value is not of the Go type `expected`.
    pub(super) fn mismatch(&mut self, found: Found<'_>, expected: &str, family: Family) {
        let is_final = family == Family::Own;
        if self.keeps_fault(is_final) {
            return;
        }
        let place = match self.owner {
            Some(owner) => format!("struct field {owner}.{}", self.fields.join(".")),
            None => "value".to_owned(),
        };
        let unmarshal = |place: &str| {
            format!("json: cannot unmarshal {found} into Go {place} of type {expected}")
        };
        let (kind, message) = (found.kind(), unmarshal(&place));
        let converted = match family {
            Family::Own => unmarshal("value"),
            Family::List => format!("cannot restore slice from {kind}"),
            Family::Map => format!("cannot restore map from {kind}"),
            Family::Struct => format!("cannot restore struct from: {kind}"),
            Family::Simple if found.converts_to(go_kind(expected)) => {
                format!("cannot convert {} to {expected}", found.untyped())
            }
            Family::Simple => format!("unrecognized type: {}", go_kind(expected)),
        };
        self.record(Fault { message, converted }, is_final);
    }

    /// Records an error of the decoder of a type, which ends the decoding in Go and does not name the place of the
    /// value.
    pub(super) fn malformed(&mut self, message: String) {
        let converted = message.clone();
        self.record(Fault { message, converted }, true);
    }

    /// Records that a text is not Base64.
    pub(super) fn not_base64(&mut self, message: String) {
        let converted = format!("error decoding from json: {message}");
        self.record(Fault { message, converted }, false);
    }

    fn record(&mut self, fault: Fault, is_final: bool) {
        if !self.keeps_fault(is_final) {
            self.fault = Some(Recorded { fault, is_final });
        }
    }

    /// Returns whether an earlier fault is the one to report.
    fn keeps_fault(&self, is_final: bool) -> bool {
        let earlier = self.fault.as_ref();
        earlier.is_some_and(|earlier| earlier.is_final || !is_final)
    }
}

/// Returns Go's kind of a simple type, such as `string` of `v1.Protocol`.
fn go_kind(go_type: &str) -> &str {
    // The only types with a name of their own are texts.
    if go_type.contains('.') {
        "string"
    } else {
        go_type
    }
}
