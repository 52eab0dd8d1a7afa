//! The sizes that the values of a schema can have in one request, for the estimate of a rule's cost.
//!
//! The sizes are those of `SchemaDeclType` in Kubernetes: a limit of the schema, or else what fits into a request.

use std::collections::BTreeMap;

use super::escape::escape;
use super::structural::Schema;

/// Maximum size of a request in Kubernetes.
const REQUEST_BYTES: i64 = 3 * 1024 * 1024;

/// Maximum length of a text without a limit: a request without the quotation marks.
const TEXT_MAX: i64 = REQUEST_BYTES - 2;

/// Maximum length of a duration or point in time.
const TIME_MAX: i64 = 32;

/// Length of a date with its quotation marks.
const DATE_BYTES: i64 = 12;

/// The sizes of the values that a schema describes.
#[derive(Clone, Debug, Default)]
pub(super) struct Declared {
    /// Maximum count of items or entries, or of bytes of a text. Zero for other values.
    pub(super) max_elements: u64,
    /// Minimum size of a value in JSON.
    min_bytes: i64,
    /// By escaped name.
    fields: BTreeMap<String, Declared>,
    /// The sizes of items, or of the values of a map.
    elements: Option<Box<Declared>>,
    /// The sizes of the keys of a map.
    keys: Option<Box<Declared>>,
}

impl Declared {
    /// Returns the sizes of a schema's values, or `None` if rules can't access them.
    pub(super) fn of_schema(schema: &Schema, is_resource: bool) -> Option<Declared> {
        let limits = &schema.limits;
        if schema.extensions.int_or_string {
            let max = limits.max_length.map_or(TEXT_MAX, bytes_of_letters);
            return Some(Declared::scalar(1, max));
        }
        if is_resource {
            return Declared::of_schema(&schema.with_type_and_object_meta(), false);
        }
        let nested = |one: &Schema| Declared::of_schema(one, one.extensions.embedded_resource);
        match schema.kind.as_str() {
            "array" => {
                let items = nested(schema.items.as_ref()?)?;
                let max = limits.max_items.map(not_negative);
                let max = max.unwrap_or_else(|| TEXT_MAX / (items.min_bytes + 1));
                Some(Declared {
                    elements: Some(Box::new(items)),
                    ..Declared::scalar(2, max)
                })
            }
            "object" => match &schema.additional {
                Some(additional) => {
                    let values = nested(additional)?;
                    let max = limits.max_properties.map(not_negative);
                    // Each entry also has a key, quotation marks, a colon and a comma.
                    let max = max.unwrap_or_else(|| TEXT_MAX / (values.min_bytes + 6));
                    Some(Declared {
                        elements: Some(Box::new(values)),
                        keys: Some(Box::default()),
                        ..Declared::scalar(2, max)
                    })
                }
                None => Some(Declared::object(schema, nested)),
            },
            "string" => Some(text(schema)),
            "boolean" => Some(Declared::scalar(4, 0)),
            "number" | "integer" => Some(Declared::scalar(1, 0)),
            _ => None,
        }
    }

    fn scalar(min_bytes: i64, max_elements: i64) -> Declared {
        Declared {
            max_elements: max_elements.cast_unsigned(),
            min_bytes,
            ..Declared::default()
        }
    }

    fn object(schema: &Schema, nested: impl Fn(&Schema) -> Option<Declared>) -> Declared {
        let mut object = Declared::scalar(2, 0);
        for (name, property) in schema.properties.iter().flatten() {
            let Some(field) = nested(property) else {
                continue;
            };
            if schema.limits.required.contains(name) && !property.limits.has_default {
                let name_bytes = i64::try_from(name.len()).unwrap_or(i64::MAX);
                object.min_bytes += name_bytes + field.min_bytes + 4;
            }
            if let Some(identifier) = escape(name) {
                object.fields.insert(identifier, field);
            }
        }
        object
    }

    /// Returns how often values of this schema fit into one request.
    pub(super) fn max_count(&self) -> u64 {
        (REQUEST_BYTES / (self.min_bytes + 1)).cast_unsigned()
    }

    pub(super) fn field(&self, identifier: &str) -> Option<&Declared> {
        self.fields.get(identifier)
    }

    pub(super) fn elements(&self) -> Option<&Declared> {
        self.elements.as_deref()
    }

    /// Returns the sizes below a step of a path.
    pub(super) fn step(&self, step: &str) -> Option<&Declared> {
        match step {
            "@items" | "@values" => self.elements(),
            "@keys" => self.keys.as_deref(),
            field => self.field(field),
        }
    }
}

fn text(schema: &Schema) -> Declared {
    let limits = &schema.limits;
    match schema.format.as_str() {
        "byte" => Declared::scalar(2, limits.max_length.map_or(TEXT_MAX, not_negative)),
        "duration" => Declared::scalar(3, TIME_MAX),
        "date" => Declared::scalar(DATE_BYTES, DATE_BYTES),
        "date-time" => Declared::scalar(21, TIME_MAX),
        _ => {
            let longest = limits.longest_enum.unwrap_or(TEXT_MAX);
            Declared::scalar(2, limits.max_length.map_or(longest, bytes_of_letters))
        }
    }
}

fn not_negative(limit: i64) -> i64 {
    limit.max(0)
}

/// Returns the maximum size of a text with at most this many letters. It can overflow, as in Kubernetes.
fn bytes_of_letters(limit: i64) -> i64 {
    not_negative(limit).wrapping_mul(4)
}
