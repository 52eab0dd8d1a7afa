//! Defines how the objects of one version of a custom kind are decoded, read and validated.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::correlate::Correlated;
use super::embedded::{self, Malformed};
use super::shape::Unknown;
use super::validate::{CHECKS_MAX, Form, Validator};
use super::{Schema, cel, list_type};
use crate::selector::SelectableField;
use crate::status::FieldError;
use crate::typed::TooManyDefaults;

/// The rules of a definition for the objects of one version.
#[derive(Debug, PartialEq)]
pub(crate) struct Model {
    /// The schema of the version.
    schema: Arc<Schema>,
    stored: Stored,
    rules: Rules,
    /// Whether any part of an object is an embedded object.
    embeds: bool,
    /// The fields that field selectors can compare, except for name and namespace.
    pub(crate) selectable: Vec<SelectableField>,
}

/// The versions in which objects of a kind are stored.
#[derive(Debug, PartialEq)]
pub(crate) struct Stored {
    /// The version in which objects are written.
    pub(crate) version: String,
    /// The schemas of all versions in which objects may be stored, by version.
    pub(crate) schemas: BTreeMap<String, Arc<Schema>>,
    /// Whether a webhook converts objects between versions. This server calls none.
    pub(crate) by_webhook: bool,
}

/// The rules in CEL, which are compiled when the first object is validated.
#[derive(Debug)]
struct Rules {
    /// The schema with the rules, as the text of its JSON, which needs a fraction of the memory of its values. `None`
    /// if it has no rules.
    schema: Option<Box<str>>,
    compiled: OnceLock<cel::Validator>,
}

/// The reasons of errors that keep rules from being evaluated (`hasBlockingErr` in Kubernetes).
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

/// The reason why a request body can't be decoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Undecodable {
    Invalid(FieldError),
    TooManyDefaults,
}

impl Model {
    /// Creates the model of a version with the schema `schema`, whose JSON is `json`.
    pub(crate) fn new(
        schema: Arc<Schema>,
        json: &Value,
        stored: Stored,
        selectable: Vec<SelectableField>,
    ) -> Model {
        let embeds = stored
            .schemas
            .values()
            .chain([&schema])
            .any(|schema| schema.any(&|node| node.embeds));
        let rules = Rules {
            schema: schema.has_rules().then(|| json.to_string().into()),
            compiled: OnceLock::new(),
        };
        Model {
            schema,
            stored,
            rules,
            embeds,
            selectable,
        }
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Prepares an object from a request: removes unknown members and nulls, and sets defaults.
    ///
    /// Returns the paths of at most 100 removed members, such as `spec.unknown`.
    ///
    /// # Errors
    ///
    /// Returns an error if the type or the metadata of an embedded object has a wrong JSON type, or if the
    /// defaults are too large.
    pub(crate) fn decode(
        &self,
        object: &mut Map<String, Value>,
    ) -> Result<Vec<String>, Undecodable> {
        let unknown = self.shape(&self.schema, object, Malformed::Reject);
        let unknown = unknown.map_err(Undecodable::Invalid)?;
        let defaulted = self.schema.set_defaults(object);
        defaulted.map_err(|TooManyDefaults| Undecodable::TooManyDefaults)?;
        Ok(unknown)
    }

    /// Returns the version in which objects are written.
    pub(crate) fn stored_version(&self) -> &str {
        &self.stored.version
    }

    /// Returns whether the definition has a webhook that converts objects.
    pub(crate) fn needs_webhook(&self) -> bool {
        self.stored.by_webhook
    }

    /// Changes an object that is stored in `version`, or that is to be stored, to what a reader sees.
    ///
    /// As in Kubernetes, the schema of the stored version sets the defaults, and both schemas remove members.
    /// Defaults that would be too large are left out. If the definition no longer has the stored version, only
    /// the schema of the reader's version applies.
    pub(crate) fn show(&self, version: &str, object: &mut Map<String, Value>) {
        let stored = self.stored.schemas.get(version).unwrap_or(&self.schema);
        // Malformed members are dropped, so nothing is rejected.
        let _ = self.shape(stored, object, Malformed::Drop);
        if stored.set_defaults(object).is_err() {
            tracing::warn!("the defaults of a custom object are too large, so some are not set");
        }
        if !Arc::ptr_eq(stored, &self.schema) {
            let _ = self.shape(&self.schema, object, Malformed::Drop);
        }
    }

    /// Validates an object against the schema. For an update, `old` has the stored object.
    pub(crate) fn check(&self, old: Option<&Value>, new: &Value) -> Vec<FieldError> {
        let old = old.map(|old| Correlated::new(&self.schema, new, old));
        let mut left = CHECKS_MAX;
        let validator = Validator::new("", Form::Object, &mut left);
        validator.validate(&self.schema, new, old).into_errors()
    }

    /// Validates an update of the subresource `status` against the schema of the member `status`.
    pub(crate) fn check_status(
        &self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Vec<FieldError> {
        let schema = self.schema.properties.get("status");
        let (Some(status), Some(schema)) = (new.get("status"), schema) else {
            return Vec::new();
        };
        let old = old.get("status");
        let old = old.map(|old| Correlated::new(schema, status, old));
        let mut left = CHECKS_MAX;
        let validator = Validator::new("status", Form::Object, &mut left);
        validator.validate(schema, status, old).into_errors()
    }

    /// Validates the types and the metadata of embedded objects.
    pub(crate) fn check_embedded(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        if !self.embeds {
            return Vec::new();
        }
        embedded::validate(&self.schema, object)
    }

    /// Evaluates the rules in CEL. For an update, `old` has the stored object. Calls `warn` with the errors of
    /// unchanged values.
    ///
    /// `errors` has the errors that were found before. If one of them has a blocking reason, such as a missing
    /// field, the rules are not evaluated, and one error says so.
    pub(crate) fn check_rules(
        &self,
        old: Option<&Value>,
        new: &Value,
        errors: &[FieldError],
        warn: &mut dyn FnMut(String),
    ) -> Vec<FieldError> {
        let Some(schema) = &self.rules.schema else {
            return Vec::new();
        };
        if errors.iter().any(|error| BLOCKING.contains(&error.reason)) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            return vec![FieldError::invalid("<nil>", "null", why)];
        }
        let compile = || {
            let schema = serde_json::from_str(schema).expect("the text was written from JSON");
            cel::Validator::new(&schema, true)
        };
        let rules = self.rules.compiled.get_or_init(compile);
        let outcome = rules.validate(new, old);
        outcome.warnings.into_iter().for_each(warn);
        outcome.errors
    }

    /// Returns the errors about repeated items of lists that are sets or maps.
    ///
    /// As in Kubernetes, an update reports none if the stored object has such errors.
    pub(crate) fn check_lists(
        &self,
        old: Option<&Map<String, Value>>,
        new: &Map<String, Value>,
    ) -> Vec<FieldError> {
        let errors = list_type::duplicates(&self.schema, new);
        let is_old = |old| !list_type::duplicates(&self.schema, old).is_empty();
        if !errors.is_empty() && old.is_some_and(is_old) {
            return Vec::new();
        }
        errors
    }

    /// Removes what a schema does not allow, and returns the paths of removed members.
    fn shape(
        &self,
        schema: &Schema,
        object: &mut Map<String, Value>,
        malformed: Malformed,
    ) -> Result<Vec<String>, FieldError> {
        let mut pruned = Unknown::default();
        schema.prune(object, &mut pruned);
        schema.drop_nulls(object);
        pruned.found.sort();
        if self.embeds {
            let mut coerced = embedded::coerce(schema, object, false, malformed)?;
            coerced.sort();
            pruned.found.append(&mut coerced);
        }
        Ok(pruned.found)
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Rules) -> bool {
        self.schema == other.schema
    }
}
