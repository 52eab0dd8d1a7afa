//! Validates the metadata of objects: names, labels, annotations, finalizers and owner references.
//!
//! Guarantees: the rules are those of Kubernetes' functions `ValidateObjectMeta` and
//! `ValidateObjectMetaUpdate`, and the messages are those of a 1.36 API server. Kubernetes validates the
//! metadata of an update several times, so an update may report the same error several times.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::field_validation::Warnings;
use crate::name_syntax::{NameRule, key_faults, value_faults};
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;

/// Maximum total size in bytes of the keys and values of an object's annotations.
///
/// The value is Kubernetes' `TotalAnnotationSizeLimitB`.
const ANNOTATIONS_MAX: usize = 256 * 1024;

/// Finalizers that Kubernetes defines, which are valid without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

const UNQUALIFIED: &str = "name is neither a standard finalizer name nor is it fully qualified";

/// Maximum number of errors about owner references with `controller: true` after the first such reference.
///
/// Each of these errors contains all owner references of the object, and a client can send 100,000
/// references. The limit therefore bounds the size of the response.
const CONFLICTS_MAX: usize = 10;

/// The metadata rules that differ between kinds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataRules {
    pub(crate) names: NameRule,
    /// Whether every finalizer except Kubernetes' own must contain a domain, as in `example.com/name`.
    pub(crate) qualified_finalizers: bool,
    /// Functions that validate the metadata of an update, after the functions in [`COMMON`].
    pub(crate) on_update: &'static [Function],
}

/// A function of Kubernetes that validates metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// `ValidateObjectMeta`.
    Object,
    /// `ValidateObjectMetaUpdate`.
    Update,
}

/// The functions with which Kubernetes validates the metadata of each updated object, regardless of its kind.
const COMMON: [Function; 2] = [Function::Object, Function::Update];

impl MetadataRules {
    /// Rules for custom resources, and for built-in kinds without special metadata validation in Kubernetes.
    pub(crate) const GENERIC: MetadataRules = MetadataRules {
        qualified_finalizers: false,
        on_update: &[Function::Update],
        ..MetadataRules::of(NameRule::Subdomain)
    };

    /// Returns the metadata rules of a built-in kind whose object names follow `names`.
    pub(crate) const fn of(names: NameRule) -> MetadataRules {
        MetadataRules {
            names,
            qualified_finalizers: true,
            on_update: &[Function::Update, Function::Object],
        }
    }

    pub(crate) fn check_update(self, old: &Object, new: &Object) -> Vec<FieldError> {
        let by = |function: Function, qualified: bool| {
            let mut errors = match function {
                Function::Object => check(new),
                Function::Update => check_change(old, new),
            };
            if qualified {
                errors.extend(unqualified(&new.finalizers(), "metadata.finalizers"));
            }
            errors
        };
        let common = COMMON.map(|function| by(function, false));
        if common.iter().all(Vec::is_empty) && !self.qualified_finalizers {
            return Vec::new();
        }
        let own = self.on_update.iter();
        let own = own.flat_map(|function| by(*function, self.qualified_finalizers));
        common.into_iter().flatten().chain(own).collect()
    }

    /// Validates the metadata of a new object, including `name` and `generateName`.
    pub(crate) fn check_new(self, object: &Object) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let base = object.text("generateName");
        if !base.is_empty() {
            let faults = self.names.prefix_faults(base);
            refuse(&mut errors, "metadata.generateName", base, faults);
        }
        match object.text("name") {
            "" if base.is_empty() => errors.push(FieldError::required(
                "metadata.name",
                "name or generateName is required",
            )),
            "" => {}
            name => refuse(&mut errors, "metadata.name", name, self.names.faults(name)),
        }
        errors.extend(check(object));
        if self.qualified_finalizers {
            errors.extend(unqualified(&object.finalizers(), "metadata.finalizers"));
        }
        errors
    }
}

/// Validates the metadata of `new` as Kubernetes' `ValidateObjectMeta` does for an object of a core kind.
///
/// Returns no errors if `old` has the same metadata.
///
/// For some kinds, Kubernetes runs `ValidateObjectMeta` only after other checks. The
/// [`Hooks::validate_update`] of such a kind calls this function.
///
/// [`Hooks::validate_update`]: crate::strategy::Hooks::validate_update
pub(crate) fn check_changed(old: &Object, new: &Object) -> Vec<FieldError> {
    if new.get("metadata") == old.get("metadata") {
        return Vec::new();
    }
    let mut errors = check(new);
    errors.extend(unqualified(&new.finalizers(), "metadata.finalizers"));
    errors
}

/// Validates the metadata of an object with the rules of Kubernetes' function `ValidateObjectMeta`.
///
/// Does not validate `name` and `generateName`.
fn check(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(generation) = object.number("generation").filter(|number| *number < 0) {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid("metadata.generation", generation, why));
    }
    check_maps(object, &mut errors);
    for finalizer in object.finalizers() {
        let faults = key_faults(finalizer);
        refuse(&mut errors, "metadata.finalizers", finalizer, faults);
    }
    let finalizers = object.finalizers();
    if ["orphan", "foregroundDeletion"]
        .iter()
        .all(|one| finalizers.contains(one))
    {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        let all = json!(finalizers);
        errors.push(FieldError::invalid("metadata.finalizers", all, why));
    }
    errors
}

/// Validates a change of the metadata, as `ValidateObjectMetaUpdate` does.
fn check_change(old: &Object, new: &Object) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = new_finalizers(old, new).into_iter().collect();
    for member in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        let value = new.meta(member);
        if value != old.meta(member) {
            let field = format!("metadata.{member}");
            let value = value.unwrap_or(&Value::Null);
            errors.push(FieldError::invalid(field, value, "field is immutable"));
        }
    }
    check_maps(new, &mut errors);
    errors
}

/// Validates labels, annotations and owner references.
fn check_maps(object: &Object, errors: &mut Vec<FieldError>) {
    for (key, value) in texts(object, "labels") {
        refuse(errors, "metadata.labels", key, key_faults(key));
        refuse(errors, "metadata.labels", value, value_faults(value));
    }
    let mut size = 0;
    for (key, value) in texts(object, "annotations") {
        size += key.len() + value.len();
        let faults = key_faults(&key.to_lowercase());
        refuse(errors, "metadata.annotations", key, faults);
    }
    if size > ANNOTATIONS_MAX {
        errors.push(FieldError::too_long(
            "metadata.annotations",
            ANNOTATIONS_MAX,
        ));
    }
    errors.extend(owner_errors(object));
}

/// Returns an error if `new` has additional finalizers and the object is being deleted.
fn new_finalizers(old: &Object, new: &Object) -> Option<FieldError> {
    if !old.is_deleting() {
        return None;
    }
    let known: BTreeSet<&str> = old.finalizers().into_iter().collect();
    let added: BTreeSet<&str> = new.finalizers().into_iter().collect();
    let added: Vec<&str> = added.difference(&known).copied().collect();
    if added.is_empty() {
        return None;
    }
    let added: Vec<String> = added
        .into_iter()
        .map(|one| Quoted(one).to_string())
        .collect();
    let body = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Some(FieldError::forbidden("metadata.finalizers", &body))
}

/// Removes duplicate owner references, and adds a warning about the removed references.
///
/// `when` is a part of the warning's text.
pub(crate) fn merge_owners(object: &mut Object, when: &str, warnings: &Warnings) {
    let removed = remove_equal_owners(object);
    if !removed.is_empty() {
        warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            removed.join(", ")
        ));
    }
}

/// Removes each owner reference that equals an earlier one. Returns the uids of the removed references.
fn remove_equal_owners(object: &mut Object) -> Vec<String> {
    let Some(Value::Array(owners)) = object.meta("ownerReferences") else {
        return Vec::new();
    };
    let (mut seen, mut kept, mut removed) = (BTreeSet::new(), Vec::new(), Vec::new());
    for owner in owners {
        if seen.insert(owner.to_string()) {
            kept.push(owner.clone());
        } else {
            removed.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    if !removed.is_empty() {
        object.set_meta("ownerReferences", Some(Value::Array(kept)));
    }
    removed
}

/// Returns an error for each finalizer that has no domain and is not defined by Kubernetes.
pub(crate) fn unqualified(finalizers: &[&str], field: &str) -> Vec<FieldError> {
    let all = finalizers.iter().enumerate();
    let bad = all.filter(|(_, name)| is_unqualified(name));
    let error = |(at, name): (usize, &&str)| {
        FieldError::invalid(
            format!("{field}[{at}]"),
            Quoted(name).to_string(),
            UNQUALIFIED,
        )
    };
    bad.map(error).collect()
}

pub(crate) fn check_namespace_finalizers(finalizers: &[String]) -> Vec<FieldError> {
    const FIELD: &str = "spec.finalizers";
    let mut errors = Vec::new();
    for finalizer in finalizers {
        refuse(&mut errors, FIELD, finalizer, key_faults(finalizer));
        if is_unqualified(finalizer) {
            let faults = vec![UNQUALIFIED.to_owned()];
            refuse(&mut errors, FIELD, finalizer, faults);
        }
    }
    errors
}

fn is_unqualified(finalizer: &str) -> bool {
    !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer)
}

fn refuse(errors: &mut Vec<FieldError>, field: &'static str, value: &str, faults: Vec<String>) {
    let faults = faults.into_iter();
    errors.extend(faults.map(|why| FieldError::invalid(field, Quoted(value).to_string(), &why)));
}

fn texts<'a>(object: &'a Object, member: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.meta(member).and_then(Value::as_object);
    let pairs = map.into_iter().flatten();
    pairs.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn owner_errors(object: &Object) -> Vec<FieldError> {
    const FIELD: &str = "metadata.ownerReferences";
    let list = object.meta("ownerReferences").and_then(Value::as_array);
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    let mut conflicts = 0;
    for owner in list.into_iter().flatten() {
        let text = |member: &str| owner[member].as_str().unwrap_or_default();
        for member in ["apiVersion", "kind", "name", "uid"] {
            let why = match member {
                "apiVersion" if !names_version(text(member)) => "version must not be empty",
                "kind" | "name" | "uid" if text(member).is_empty() => "must not be empty",
                _ => continue,
            };
            let value = format!("{:?}", text(member));
            errors.push(FieldError::invalid(format!("{FIELD}.{member}"), value, why));
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(FIELD, owner_text(owner), why));
        }
        if owner["controller"] == true {
            let name = format!("{}/{}", text("kind"), text("name"));
            if let Some(first) = &controller {
                conflicts += 1;
                if conflicts > CONFLICTS_MAX {
                    continue;
                }
                let all: Vec<String> = list.into_iter().flatten().map(owner_text).collect();
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let all = format!("[{}]", all.join(","));
                errors.push(FieldError::invalid(FIELD, all, &why));
            } else {
                controller = Some(name);
            }
        }
    }
    errors
}

/// Returns whether Kubernetes' function `ParseGroupVersion` finds a version in `api_version`.
fn names_version(api_version: &str) -> bool {
    let version = match api_version.split_once('/') {
        Some((_, version)) => version,
        None => api_version,
    };
    !version.is_empty() && !version.contains('/')
}

/// Formats an owner reference for an error message, as Kubernetes does.
fn owner_text(owner: &Value) -> String {
    const MEMBERS: [&str; 6] = [
        "apiVersion",
        "kind",
        "name",
        "uid",
        "controller",
        "blockOwnerDeletion",
    ];
    let members = MEMBERS.into_iter().filter_map(|member| {
        let value = owner.get(member).filter(|value| !value.is_null())?;
        Some(format!("{member:?}:{value}"))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
