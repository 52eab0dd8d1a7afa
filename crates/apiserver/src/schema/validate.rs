//! Validates values against a schema, like kube-openapi's `validate.SchemaValidator`.
//!
//! Guarantees:
//! - errors are those of Kubernetes, in the same order, except that members are visited by name;
//! - an update does not report the errors of a value that it does not change.

mod alternatives;
mod number;
mod text;

use serde_json::{Map, Value};

use super::correlate::{Correlated, OldItems};
use super::number::{Number, is_whole, whole_part};
use super::outcome::{Outcome, Place};
use super::{Additional, Schema};

/// Validates the values of one object.
pub(super) struct Validator<'p, 'l> {
    /// Path of the validated part, such as `status`. Empty for a whole object.
    part: &'p str,
    /// Path of the current value below the part.
    path: String,
    /// Number of checks that are left.
    left: &'l mut usize,
    form: Form,
}

/// The form into which Kubernetes converts a schema for the validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// The schema of objects. A format that is unknown for the type has no effect.
    Object,
    /// The schema of a default. Each known format applies to texts, an unknown format to other values, and an integer
    /// or string has no type.
    Default,
}

/// Maximum number of checks of one object: of values, each with one node of a schema, and of the values of `enum` and
/// `required`. A check with errors also counts their bytes, divided by [`ERROR_BYTES`].
///
/// Kubernetes has no such limit. With it, an object of 3 MiB can't occupy a thread for hours, if the alternatives of
/// its schema are many.
pub(super) const CHECKS_MAX: usize = 5_000_000;

/// Size in bytes of errors that take about as long to build as one check.
const ERROR_BYTES: usize = 256;

impl<'p, 'l> Validator<'p, 'l> {
    /// `part` is the path of the validated value, such as `status`. The number of checks is taken from `left`.
    pub(super) fn new(part: &'p str, form: Form, left: &'l mut usize) -> Self {
        Validator {
            part,
            path: String::new(),
            left,
            form,
        }
    }

    /// Validates a value of an object. For an update, `old` has the old value.
    pub(super) fn validate(
        mut self,
        schema: &Schema,
        value: &Value,
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let outcome = self.check(schema, value, old);
        if *self.left > 0 {
            return outcome;
        }
        let mut outcome = Outcome::default();
        let why = format!("the schema requires more than {CHECKS_MAX} checks of the object");
        outcome.general(self.place(), why);
        outcome
    }

    fn spend(&mut self, checks: usize) {
        *self.left = self.left.saturating_sub(checks);
    }

    fn place(&self) -> Place<'_> {
        Place {
            part: self.part,
            path: &self.path,
        }
    }

    fn check(&mut self, schema: &Schema, value: &Value, old: Option<Correlated<'_>>) -> Outcome {
        self.spend(1 + schema.allowed.len() + schema.required.len());
        if *self.left == 0 {
            return Outcome::default();
        }
        let outcome = self.check_value(schema, value, old);
        self.spend(outcome.bytes / ERROR_BYTES);
        match old {
            Some(old) if !outcome.is_valid() && old.is_unchanged() => outcome.forgiven(),
            _ => outcome,
        }
    }

    fn check_value(
        &mut self,
        schema: &Schema,
        value: &Value,
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let types = schema.types(self.form);
        let is_typed = !types.is_empty() || !schema.own_format(self.form).is_empty();
        if value.is_null() || is_typed {
            outcome.merge(self.check_type(schema, value));
        }
        if value.is_null() {
            outcome.merge(self.check_allowed(schema, value));
            return outcome;
        }
        // Each kind of check that applies to a value counts as a match of its own.
        outcome.matches += usize::from(is_typed);
        outcome.merge(self.check_alternatives(schema, value));
        outcome.matches += 1;
        match value {
            Value::String(text) => {
                outcome.merge(self.check_text(schema, value, text));
                outcome.matches += 1;
                if let Some(format) = schema.text_format(self.form) {
                    outcome.merge(self.check_format(schema, format, text));
                    outcome.matches += 1;
                }
            }
            Value::Number(number) => {
                let place = self.place();
                outcome.merge(schema.check_number(place, Number::of(number)));
                outcome.matches += 1;
            }
            Value::Array(items) => {
                outcome.merge(self.check_items(schema, items, old));
                outcome.matches += 1;
            }
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
        outcome.merge(self.check_allowed(schema, value));
        outcome.matches += 1;
        if let Value::Object(members) = value {
            outcome.merge(self.check_members(schema, members, old));
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn check_type(&self, schema: &Schema, value: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        let (types, format) = (schema.types(self.form), schema.own_format(self.form));
        let number = match value {
            Value::Number(number) => Some(Number::of(number)),
            _ => None,
        };
        let (found, found_format) = match (value, number) {
            (Value::Null, _) => ("null", ""),
            (Value::Bool(_), _) => ("boolean", ""),
            (Value::String(_), _) => ("string", ""),
            (Value::Array(_), _) => ("array", ""),
            (Value::Object(_), _) => ("object", ""),
            (_, Some(Number::Integer(_))) => ("integer", "int64"),
            _ => ("number", "float64"),
        };
        if value.is_null() {
            if !types.is_empty() && !schema.nullable {
                outcome.wrong_type(self.place(), &types.join(","), found);
                return outcome;
            }
            return Outcome::MATCH;
        }
        let accepts_numbers = types.contains(&"number") || types.contains(&"integer");
        let converts = match number {
            Some(Number::Float(float)) => types.contains(&"integer") && is_whole(float),
            Some(Number::Integer(_)) => types.contains(&"number"),
            None => false,
        };
        let fits = types.contains(&found) || converts;
        let may_have_format = matches!(value, Value::String(_) | Value::Array(_));
        if !format.is_empty() {
            if !may_have_format && !fits && found_format != format {
                outcome.wrong_type(self.place(), format, found_format);
                return outcome;
            }
            if may_have_format && !accepts_numbers {
                return Outcome::MATCH;
            }
        }
        if !fits {
            outcome.wrong_type(self.place(), &types.join(","), found);
            return outcome;
        }
        Outcome::MATCH
    }

    /// Checks a value against `enum`.
    fn check_allowed(&self, schema: &Schema, value: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        let allowed = &schema.allowed;
        if !allowed.is_empty() && !allowed.iter().any(|one| is_equal(value, one)) {
            outcome.unsupported(self.place(), value, allowed);
        }
        outcome
    }

    fn check_items(
        &mut self,
        schema: &Schema,
        items: &[Value],
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(below) = &schema.items {
            let old_items = old.and_then(Correlated::items);
            let keys = old.map_or(&[][..], Correlated::keys);
            let old_of = |item| {
                let items: &OldItems<'_> = old_items.as_ref()?;
                items.get(item, keys)
            };
            for (at, item) in items.iter().enumerate() {
                let step = format!("[{at}]");
                outcome.merge(self.below(&step, |this| this.check(below, item, old_of(item))));
            }
        }
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_items.filter(|min| count < *min) {
            let rule = format!("should have at least {min} items");
            outcome.invalid(self.place(), &Value::from(count), &rule);
        }
        if let Some(max) = schema.max_items.filter(|max| count > *max) {
            outcome.too_many(self.place(), items.len(), max, "items");
        }
        outcome.matches += 1;
        outcome
    }

    fn check_members(
        &mut self,
        schema: &Schema,
        members: &Map<String, Value>,
        old: Option<Correlated<'_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
        if let Some(min) = schema.min_properties.filter(|min| count < *min) {
            let rule = format!("should have at least {min} properties");
            outcome.invalid(self.place(), &Value::from(count), &rule);
        }
        if let Some(max) = schema.max_properties.filter(|max| count > *max) {
            outcome.too_many(self.place(), members.len(), max, "properties");
        }
        let is_root = self.path.is_empty();
        let old_of = |name: &str| {
            // The old object has been converted to the same type.
            let is_type = is_root && matches!(name, "apiVersion" | "kind");
            old.filter(|_| !is_type)?.member(name)
        };
        if let Some(Additional::Schema(below)) = &schema.additional_properties {
            for (name, value) in members {
                if !schema.properties.contains_key(name) {
                    let step = format!(".{name}");
                    let old = old_of(name);
                    outcome.merge(self.below(&step, |this| this.check(below, value, old)));
                }
            }
        }
        // A schema can have many more properties than an object has members.
        for (name, value) in members {
            if let Some(below) = schema.properties.get(name) {
                let dot = if self.path.is_empty() { "" } else { "." };
                let step = format!("{dot}{name}");
                let old = old_of(name);
                outcome.merge(self.below(&step, |this| this.check(below, value, old)));
            }
        }
        for name in &schema.required {
            if !members.contains_key(name) {
                outcome.required(self.place(), name);
            }
        }
        outcome
    }

    /// Runs `go` with the path of a value below the current value.
    fn below(&mut self, step: &str, go: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        let length = self.path.len();
        self.path.push_str(step);
        let outcome = go(self);
        self.path.truncate(length);
        outcome
    }
}

impl Schema {
    /// Returns the names of the accepted JSON types; none if every type is accepted.
    fn types(&self, form: Form) -> &[&str] {
        if self.is_int_or_string && form == Form::Object {
            return &["integer", "string"];
        }
        match self.type_name.as_str() {
            "object" => &["object"],
            "array" => &["array"],
            "string" => &["string"],
            "integer" => &["integer"],
            "number" => &["number"],
            "boolean" => &["boolean"],
            "null" => &["null"],
            _ => &[],
        }
    }

    /// Returns the accepted JSON type. Returns an empty text if several types are accepted.
    pub(super) fn sole_type(&self) -> &str {
        match self.types(Form::Object) {
            [only] => only,
            _ => "",
        }
    }
}

/// Returns whether a value equals a value of `enum`.
///
/// As in Kubernetes, an integer equals a number or a character with the same value, and a number equals the
/// integer that remains without the fraction.
fn is_equal(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Number(value), Value::Number(allowed)) => {
            is_equal_number(Number::of(value), Number::of(allowed))
        }
        (Value::Number(value), Value::String(allowed)) => value.as_i64().is_some_and(|value| {
            let letter = u32::try_from(value).ok().and_then(char::from_u32);
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            allowed.strip_prefix(letter) == Some("")
        }),
        (Value::Null, _) => false,
        (value, allowed) => value == allowed,
    }
}

#[expect(clippy::cast_precision_loss, clippy::float_cmp, reason = "as in Go")]
fn is_equal_number(value: Number, allowed: Number) -> bool {
    match (value, allowed) {
        (Number::Integer(value), Number::Integer(allowed)) => value == allowed,
        (Number::Integer(value), Number::Float(allowed)) => value as f64 == allowed,
        (Number::Float(value), Number::Integer(allowed)) => whole_part(value) == allowed,
        (Number::Float(value), Number::Float(allowed)) => value == allowed,
    }
}
