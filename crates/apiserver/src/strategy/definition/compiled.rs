//! Compiles the rules in CEL of a definition's schemas.
//!
//! Guarantees: the errors are those of Kubernetes, also about rules that could cost too much.

use std::collections::BTreeSet;

use serde_json::Value;

use super::form::{Spec, Version};
use super::member::{Form, SCHEMA};
use crate::schema::CelValidator;
use crate::strategy::report::{Path, Report};

/// Adds the errors of the rules that do not compile or could cost too much. Adds nothing to other errors, because
/// the schema of such a definition can have any form.
///
/// As in Kubernetes, one rule of a version in `unchanged` can cost any amount, but not all rules together.
pub(super) fn check(spec: &Spec<'_>, unchanged: &BTreeSet<&str>, report: &mut Report) {
    if report.found() > 0 {
        return;
    }
    if let Some(validation) = spec.common.validation {
        let path = "spec.validation.openAPIV3Schema";
        // In Kubernetes' internal form, the definition has the name of the first version.
        let first = spec.versions.first().map_or("", Version::name);
        let is_unchanged = unchanged.contains(first);
        check_schema(&validation["openAPIV3Schema"], path, is_unchanged, report);
    }
    for (at, version) in spec.versions.iter().enumerate() {
        if let Some(validation) = version.parts.validation {
            let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
            let is_unchanged = unchanged.contains(version.name());
            check_schema(&validation["openAPIV3Schema"], &path, is_unchanged, report);
        }
    }
}

fn check_schema(schema: &Value, path: &str, is_unchanged: bool, report: &mut Report) {
    for problem in CelValidator::new(schema, true).problems(path, is_unchanged) {
        let path = Path::root(&problem.path);
        match problem.value {
            Some(value) => report.invalid(&path, value, problem.message),
            None => report.forbidden(&path, problem.message),
        }
    }
}

/// Returns the names of the versions whose schemas are those of `old`.
pub(super) fn unchanged<'a>(old: &Spec<'_>, new: &Spec<'a>) -> BTreeSet<&'a str> {
    let names = new.versions.iter().map(Version::name);
    let is_unchanged = |name: &&str| {
        let schemas = schema(old, name).zip(schema(new, name));
        schemas.is_some_and(|(old, new)| Form::Object(&SCHEMA).equal(Some(old), Some(new)))
    };
    names.filter(is_unchanged).collect()
}

/// Returns the schema of a version, which is null if it has none. Returns `None` if there is no such version.
///
/// As in Kubernetes, any version has the schema that all versions have in common.
fn schema<'a>(spec: &Spec<'a>, version: &str) -> Option<&'a Value> {
    let mut versions = spec.versions.iter();
    let is_common = versions.all(|version| version.parts.validation.is_none());
    let parts = if is_common {
        spec.common
    } else {
        let mut versions = spec.versions.iter();
        versions.find(|known| known.name() == version)?.parts
    };
    let schema = parts
        .validation
        .map(|validation| &validation["openAPIV3Schema"]);
    Some(schema.unwrap_or(&Value::Null))
}
