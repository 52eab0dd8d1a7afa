//! Validates texts: their length, pattern and format.

use serde_json::Value;

use super::{Form, Validator};
use crate::schema::Schema;
use crate::schema::format::Format;
use crate::schema::outcome::Outcome;

impl Validator<'_, '_> {
    /// Checks the length and the pattern of a text. As in Kubernetes, only the first error is reported.
    pub(super) fn check_text(&self, schema: &Schema, value: &Value, text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let place = self.place();
        if schema.max_length.is_some() || schema.min_length.is_some() {
            let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if let Some(max) = schema.max_length.filter(|max| length > *max) {
                outcome.too_long(place, max);
                return outcome;
            }
            if let Some(min) = schema.min_length.filter(|min| length < *min) {
                outcome.invalid(
                    place,
                    value,
                    &format!("should be at least {min} chars long"),
                );
                return outcome;
            }
        }
        let pattern = &schema.pattern;
        if pattern.text.is_empty() {
            return outcome;
        }
        let shown = match pattern.compiled() {
            Ok(compiled) if compiled.is_match(text) => return outcome,
            Ok(_) => pattern.text.clone(),
            Err(why) => format!("{}, but pattern is invalid: {why}", pattern.text),
        };
        outcome.invalid(place, value, &format!("should match '{shown}'"));
        outcome
    }

    pub(super) fn check_format(&self, schema: &Schema, format: Format, text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        if !format.matches(text) {
            outcome.wrong_type(self.place(), &schema.format, text);
        }
        outcome
    }
}

impl Schema {
    /// Returns the value of `format`, or an empty text if the format is unknown for the type.
    pub(super) fn own_format(&self, form: Form) -> &str {
        if form == Form::Default {
            return &self.format;
        }
        let is_known = match self.sole_type() {
            "integer" => matches!(self.format.as_str(), "int32" | "int64"),
            "number" => matches!(self.format.as_str(), "float" | "double"),
            "string" | "" => Format::named(&self.format).is_some(),
            _ => false,
        };
        if is_known { &self.format } else { "" }
    }

    /// Returns the format of texts, if the schema has one.
    pub(super) fn text_format(&self, form: Form) -> Option<Format> {
        match self.sole_type() {
            _ if form == Form::Default => Format::named(&self.format),
            "string" | "" => Format::named(&self.format),
            _ => None,
        }
    }
}
