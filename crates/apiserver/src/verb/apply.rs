//! Handles a PATCH with an applied configuration (server-side apply), which updates an object or creates it.
//!
//! Guarantees: the result is merged from the newest state of the object, and merged again if another write comes first.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::create;
use super::ownership::Ownership;
use super::update::{change, check_path};
use super::write::{How, Subject, Tracking};
use crate::apply::{Force, kind_text, object_text};
use crate::field_validation::{Directive, Warnings};
use crate::metadata::merge_owners;
use crate::object::Object;
use crate::request_body::{Unreadable, yaml_to_json};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::Part;
use crate::typed::{self, Decoded};

/// The parsed body of an apply.
pub(crate) struct Applied {
    /// The configuration, exactly as the client has sent it.
    pub(crate) value: Value,
    /// Text about members that occur twice.
    repeated: Option<String>,
}

/// Parameters of an apply.
#[derive(Clone, Copy)]
pub(crate) struct Apply<'a> {
    pub(crate) manager: &'a str,
    pub(crate) force: Force,
    pub(crate) directive: Directive,
    pub(crate) warnings: &'a Warnings,
}

impl Applied {
    /// Parses a configuration in YAML or JSON.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if the text is invalid, or no object.
    pub(crate) fn parse(body: &[u8]) -> Result<Applied, ApiError> {
        let invalid = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
        let of_yaml = |why: String| invalid(format!("error converting YAML to JSON: {why}"));
        let (json, repeated) = yaml_to_json(body).map_err(|error| match error {
            Unreadable::Syntax(why) => of_yaml(why),
            Unreadable::Other(error) => error,
        })?;
        let value: Value = serde_json::from_slice(&json)
            .map_err(|error| invalid(format!("error unmarshaling JSON: {error}")))?;
        let value = match value {
            Value::Null => json!({}),
            value @ Value::Object(_) => value,
            other => {
                let what = crate::object::json_type(&other);
                return Err(invalid(format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
                )));
            }
        };
        Ok(Applied { value, repeated })
    }
}

/// Applies a configuration to an object, or creates the object. Returns whether the object was created.
///
/// # Errors
///
/// Returns an error if the apply fails, or if `may_create` fails. `may_create` is called only before a creation.
pub(crate) fn apply(
    shared: &Shared,
    subject: Subject<'_>,
    (applied, options): (&Applied, Apply<'_>),
    how: How<'_>,
    may_create: impl Fn() -> Result<(), ApiError>,
) -> Result<(Arc<Entry>, bool), ApiError> {
    let how = How {
        tracking: Tracking::Done,
        ..how
    };
    let merge = |live: Option<&Object>| merged(shared, subject, (applied, options), (live, how));
    loop {
        match change(shared, subject, how, |live| merge(Some(live))) {
            // A subresource creates no object.
            Err(error) if error.code() == 404 && how.part == Part::Main => {}
            updated => return updated.map(|entry| (entry, false)),
        }
        may_create()?;
        let mut new = merge(None)?;
        check_path(subject, &new)?;
        if !how.dry_run {
            new.set_meta("resourceVersion", None);
        }
        match create(shared, subject.resource, subject.namespace, new, how) {
            // Another client has created the object, so the loop updates it.
            Err(error) if error.reason() == "AlreadyExists" => {}
            created => return created.map(|entry| (entry, true)),
        }
    }
}

/// Returns the object after an apply, with defaults.
fn merged(
    shared: &Shared,
    subject: Subject<'_>,
    (applied, options): (&Applied, Apply<'_>),
    (live, how): (Option<&Object>, How<'_>),
) -> Result<Object, ApiError> {
    let resource = subject.resource;
    let owners = Ownership::new(shared, resource, how.part);
    let stored = live.map(|live| live.clone().into_value());
    let (patch, manager) = (&applied.value, options.manager);
    let value = owners.after_apply(stored.as_ref(), patch, manager, options.force)?;
    options.judge(applied)?;
    let (of, kind) = (object_text(&value), kind_text(&value));
    let unfit = |why: String| {
        ApiError::unexplained(&format!(
            "failed to convert new object ({of}) to proper version: unable to convert unstructured object to {kind}: {why}"
        ))
    };
    let Decoded { value, fault, .. } = typed::convert(value, resource.value_type());
    if let Some(fault) = fault {
        return Err(unfit(fault.message));
    }
    let object = Object::of(&resource.kind, value, None);
    let mut object = object.map_err(|error| unfit(error.why()))?;
    // Unlike the body of another write, the result keeps a null, which is what is left of an object without members.
    let defaulted = resource.set_defaults(&mut object);
    defaulted.map_err(|error| unfit(error.why()))?;
    let uid = object.text("uid");
    if live.is_none() && !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(ApiError::conflict(&resource.kind, subject.name, &why));
    }
    merge_owners(
        &mut object,
        " after mutating admission happens",
        options.warnings,
    );
    Ok(object)
}

impl Apply<'_> {
    /// Reports members that occur twice, as `fieldValidation` requires.
    pub(super) fn judge(&self, applied: &Applied) -> Result<(), ApiError> {
        let Some(why) = &applied.repeated else {
            return Ok(());
        };
        match self.directive {
            Directive::Strict => {
                return Err(ApiError::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {why}"
                )));
            }
            // The first line says that errors follow.
            Directive::Warn => {
                let lines = why.lines().skip(1);
                lines.for_each(|line| self.warnings.add(line.trim().to_owned()));
            }
            Directive::Ignore => {}
        }
        Ok(())
    }
}
