//! Validates paths in volumes and containers.

use super::field::Field;
use super::report::{Path, Report};

/// Checks that a path is relative and has no part `..`. Errors have the path `at`.
pub(super) fn check_relative(path: &Field<'_, '_>, at: &Path<'_>, report: &mut Report) {
    if path.text().starts_with('/') {
        report.invalid(at, path.shown(), "must be a relative path");
    }
    check_no_backsteps(path, at, report);
}

/// Checks that a path has no part `..`.
pub(super) fn check_no_backsteps(path: &Field<'_, '_>, at: &Path<'_>, report: &mut Report) {
    if path.text().split('/').any(|part| part == "..") {
        report.invalid(at, path.shown(), "must not contain '..'");
    }
}

/// Checks that a path is relative and does not start with two dots (`ValidateLocalNonReservedPath`).
pub(super) fn check_not_reserved(path: &Field<'_, '_>, at: &Path<'_>, report: &mut Report) {
    check_relative(path, at, report);
    let is_step = path.text().starts_with("../");
    if path.text().starts_with("..") && !is_step {
        report.invalid(at, path.shown(), "must not start with '..'");
    }
}
