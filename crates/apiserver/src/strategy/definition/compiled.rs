//! Compiles the rules in CEL of a definition's schemas.
//!
//! Guarantees: the errors are those of Kubernetes. The estimated cost of a rule is not computed, so no rule is
//! rejected as too expensive.

use serde_json::Value;

use super::form::Spec;
use crate::schema::CelValidator;
use crate::strategy::report::{Path, Report};

/// Adds the errors of the rules that do not compile. Adds nothing to other errors, because the schema of such a
/// definition can have any form.
pub(super) fn check(spec: &Spec<'_>, report: &mut Report) {
    if report.found() > 0 {
        return;
    }
    if let Some(validation) = spec.common.validation {
        let path = "spec.validation.openAPIV3Schema";
        check_schema(&validation["openAPIV3Schema"], path, report);
    }
    for (at, version) in spec.versions.iter().enumerate() {
        if let Some(validation) = version.parts.validation {
            let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
            check_schema(&validation["openAPIV3Schema"], &path, report);
        }
    }
}

fn check_schema(schema: &Value, path: &str, report: &mut Report) {
    for problem in CelValidator::new(schema, true).problems(path) {
        report.invalid(&Path::root(&problem.path), problem.value, problem.message);
    }
}
