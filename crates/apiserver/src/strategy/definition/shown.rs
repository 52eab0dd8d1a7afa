//! Writes values in error messages as Go's `encoding/json` writes them.
//!
//! Kubernetes validates an internal form of a definition whose types have no JSON tags. An error message that
//! contains a part of it, such as `spec.versions`, has the Go names of all members, also of absent ones.
//!
//! Guarantees: a value is cut after [`VALUE_BYTES_MAX`].

use std::fmt::{self, Display, Formatter};

use serde_json::Value;

use super::member::{Form, Member, SCHEMA, VERSION, items, sorted};
use crate::go_json::{float_text, to_text};

/// Maximum size in bytes of one value in an error message. Kubernetes has no such limit.
///
/// A schema without members takes 7 bytes in a request, and 800 bytes in a message.
pub(super) const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// A value in an error message, as Go's `encoding/json` writes it.
pub(super) struct Shown<'a> {
    pub(super) value: Option<&'a Value>,
    pub(super) form: Form,
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        shown(f, |out| out.value(self.form, self.value))
    }
}

/// The versions of a definition in an error message.
pub(super) struct ShownVersions<'a> {
    pub(super) versions: Option<&'a [Value]>,
    /// JSON names of members that all versions have in common.
    ///
    /// In Kubernetes' internal form, such members belong to the definition and are absent in the versions.
    pub(super) hidden: &'a [&'static str],
}

impl Display for ShownVersions<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        shown(f, |out| match self.versions {
            None => out.text("null"),
            Some(versions) => out.list(versions, |out, version| {
                out.members(&VERSION, version, self.hidden)
            }),
        })
    }
}

/// A JSON string in an error message.
pub(super) struct JsonText<'a>(pub(super) &'a str);

impl Display for JsonText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        shown(f, |out| out.text(&to_text(self.0)))
    }
}

fn shown(f: &mut Formatter<'_>, write: impl Fn(&mut Capped<'_, '_>) -> fmt::Result) -> fmt::Result {
    let left = VALUE_BYTES_MAX;
    let mut out = Capped { f, left };
    let written = write(&mut out);
    if out.left == 0 {
        return f.write_str("...");
    }
    written
}

/// A formatter that accepts a limited number of bytes.
struct Capped<'a, 'f> {
    f: &'a mut Formatter<'f>,
    /// Number of bytes that can still be written; 0 after text was cut.
    left: usize,
}

impl Capped<'_, '_> {
    /// Writes a text.
    ///
    /// # Errors
    ///
    /// Returns an error if the text did not fit, so that callers stop.
    fn text(&mut self, text: &str) -> fmt::Result {
        if text.len() < self.left {
            self.left -= text.len();
            return self.f.write_str(text);
        }
        let mut end = self.left;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.left = 0;
        self.f.write_str(&text[..end])?;
        Err(fmt::Error)
    }

    fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Self, T) -> fmt::Result,
    ) -> fmt::Result {
        self.text("[")?;
        for (at, item) in items.into_iter().enumerate() {
            self.text(if at == 0 { "" } else { "," })?;
            write(self, item)?;
        }
        self.text("]")
    }

    fn map<'v>(
        &mut self,
        members: Vec<(&'v str, &'v Value)>,
        write: impl Fn(&mut Self, &'v Value) -> fmt::Result,
    ) -> fmt::Result {
        self.text("{")?;
        for (at, (name, value)) in members.into_iter().enumerate() {
            self.text(if at == 0 { "" } else { "," })?;
            self.text(&to_text(name))?;
            self.text(":")?;
            write(self, value)?;
        }
        self.text("}")
    }

    fn members(&mut self, members: &[Member], value: &Value, hidden: &[&str]) -> fmt::Result {
        self.text("{")?;
        for (at, member) in members.iter().enumerate() {
            self.text(if at == 0 { "\"" } else { ",\"" })?;
            self.text(member.go)?;
            self.text("\":")?;
            let value = value.get(member.json);
            let value = value.filter(|_| !hidden.contains(&member.json));
            self.value(member.form, value)?;
        }
        self.text("}")
    }

    fn value(&mut self, form: Form, value: Option<&Value>) -> fmt::Result {
        let Some(value) = form.present(value) else {
            return self.text(match form {
                Form::Text => "\"\"",
                Form::Flag => "false",
                Form::Count => "0",
                _ => "null",
            });
        };
        match form {
            Form::Number => self.text(&float_text(value.as_f64().unwrap_or_default())),
            Form::Object(members) => self.members(members, value, &[]),
            Form::Objects(members) => self.list(items(Some(value)), |out, item| {
                out.members(members, item, &[])
            }),
            Form::Map(members) => self.map(sorted(Some(value)), |out, item| {
                out.members(members, item, &[])
            }),
            Form::Texts => self.list(items(Some(value)), |out, item| {
                out.value(Form::Text, Some(item))
            }),
            Form::OrBool => {
                let allows = if *value == false { "false" } else { "true" };
                self.text(&format!("{{\"Allows\":{allows},\"Schema\":"))?;
                self.value(Form::Object(&SCHEMA), Some(value))?;
                self.text("}")
            }
            Form::OrArray => {
                self.text("{\"Schema\":")?;
                self.value(Form::Object(&SCHEMA), Some(value))?;
                self.text(",\"JSONSchemas\":")?;
                self.value(Form::Objects(&SCHEMA), Some(value))?;
                self.text("}")
            }
            Form::Dependencies => self.map(sorted(Some(value)), |out, item| {
                out.text("{\"Schema\":")?;
                out.value(Form::Object(&SCHEMA), Some(item))?;
                out.text(",\"Property\":")?;
                out.value(Form::Texts, Some(item))?;
                out.text("}")
            }),
            _ => self.json(value),
        }
    }

    /// Writes a value of any form. As in Go, a number is an `int64` if possible, and otherwise a `float64`.
    fn json(&mut self, value: &Value) -> fmt::Result {
        match value {
            Value::Null => self.text("null"),
            Value::Bool(flag) => self.text(if *flag { "true" } else { "false" }),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (None, Some(float)) => self.text(&float_text(float)),
                _ => self.text(&number.to_string()),
            },
            Value::String(text) => self.text(&to_text(text)),
            Value::Array(items) => self.list(items, Self::json),
            Value::Object(_) => self.map(sorted(Some(value)), Self::json),
        }
    }
}
