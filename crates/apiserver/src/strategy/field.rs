//! Reads the fields of an object for validation, with their paths.
//!
//! Guarantees: a path is built only for an error. A value of a wrong type counts as absent: the objects of requests were
//! decoded before.

use std::fmt::Display;

use serde_json::Value;

use super::report::{Path, Report};
use crate::go_json::to_text;
use crate::object::Object;
use crate::quote::Quoted;

/// A value in an object, with its path. An absent one is null.
#[derive(Clone, Copy)]
pub(super) struct Field<'p, 'v> {
    pub(super) path: Path<'p>,
    pub(super) value: &'v Value,
}

/// The error of a change of an immutable field.
pub(super) const IMMUTABLE: &str = "field is immutable";

impl<'p, 'v> Field<'p, 'v> {
    pub(super) fn of(object: &'v Object, name: &'p str) -> Field<'p, 'v> {
        Field {
            path: Path::root(name),
            value: object.get(name).unwrap_or(&Value::Null),
        }
    }

    pub(super) fn at<'b>(&'b self, name: &'b str) -> Field<'b, 'v> {
        let value: &'v Value = self.value;
        Field {
            path: self.path.child(name),
            value: &value[name],
        }
    }

    /// Returns the items of a list.
    pub(super) fn items<'b>(&'b self) -> impl Iterator<Item = Field<'b, 'v>> {
        let value: &'v Value = self.value;
        let items = value.as_array().into_iter().flatten().enumerate();
        items.map(|(at, value)| Field {
            path: self.path.index(at),
            value,
        })
    }

    /// Returns the entries of a map, with their keys.
    pub(super) fn entries<'b>(&'b self) -> impl Iterator<Item = (&'v str, Field<'b, 'v>)> {
        let value: &'v Value = self.value;
        let entries = value.as_object().into_iter().flatten();
        entries.map(|(key, value)| {
            let path = self.path.key(key);
            (key.as_str(), Field { path, value })
        })
    }

    pub(super) fn exists(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns whether a text, list or map has no value.
    pub(super) fn is_empty(&self) -> bool {
        match self.value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            value => value.is_null(),
        }
    }

    /// Returns the text, or an empty one.
    pub(super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the number, or 0.
    pub(super) fn number(&self) -> i64 {
        self.value.as_i64().unwrap_or(0)
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.value == text
    }

    /// Returns the value as error messages show it.
    pub(super) fn shown(&self) -> String {
        match self.value {
            Value::String(text) => Quoted(text).to_string(),
            value => to_text(value),
        }
    }

    pub(super) fn invalid(&self, report: &mut Report, why: impl Display) {
        report.invalid(&self.path, self.shown(), why);
    }

    /// Adds an error for each message about the text.
    pub(super) fn check_text(&self, report: &mut Report, faults: impl Fn(&str) -> Vec<String>) {
        for fault in faults(self.text()) {
            self.invalid(report, fault);
        }
    }

    pub(super) fn required(&self, report: &mut Report) {
        report.required(&self.path, "");
    }

    pub(super) fn forbidden(&self, report: &mut Report, why: impl Display) {
        report.forbidden(&self.path, why);
    }

    pub(super) fn duplicate(&self, report: &mut Report) {
        report.duplicate(&self.path, self.shown());
    }

    pub(super) fn unsupported(&self, report: &mut Report, supported: &[&str]) {
        report.unsupported(&self.path, Quoted(self.text()), supported);
    }

    /// Checks that the text is one of those that are supported.
    pub(super) fn check_one_of(&self, report: &mut Report, supported: &[&str]) {
        if !supported.contains(&self.text()) {
            self.unsupported(report, supported);
        }
    }

    /// Checks that there is a text, and that it is one of those that are supported.
    pub(super) fn check_required_one_of(&self, report: &mut Report, supported: &[&str]) {
        if self.is_empty() {
            self.required(report);
        } else {
            self.check_one_of(report, supported);
        }
    }

    /// Checks that the number, if there is one, is not negative.
    pub(super) fn check_not_negative(&self, report: &mut Report) {
        if self.number() < 0 {
            self.invalid(report, "must be greater than or equal to 0");
        }
    }

    /// Checks that the value does not differ from an old one.
    pub(super) fn check_unchanged(&self, report: &mut Report, old: &Field<'_, '_>) {
        if self.value != old.value {
            self.invalid(report, IMMUTABLE);
        }
    }
}
