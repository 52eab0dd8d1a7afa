//! Validates numbers that can be percentages, such as `maxSurge`.

use super::field::Field;
use super::report::Report;

/// Kubernetes' message about a text that is no percentage.
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/// Checks that a field is a percentage, or a number that is not negative (`ValidatePositiveIntOrPercent`).
pub(super) fn check(field: &Field<'_, '_>, report: &mut Report) {
    if field.value.is_string() {
        if percent(field).is_none() {
            field.invalid(report, PERCENT);
        }
    } else {
        field.check_not_negative(report);
    }
}

/// Checks that a percentage is at most 100.
pub(super) fn check_at_most_all(field: &Field<'_, '_>, report: &mut Report) {
    if percent(field).is_some_and(|percent| percent > 100) {
        field.invalid(report, "must not be greater than 100%");
    }
}

/// Returns whether a field is absent, 0 or 0 %. As in Go, another text than a percentage is the number in it.
pub(super) fn is_zero(field: &Field<'_, '_>) -> bool {
    match percent(field) {
        Some(percent) => percent == 0,
        None => field.number() == 0 && field.text().parse().unwrap_or(0) == 0,
    }
}

fn percent(field: &Field<'_, '_>) -> Option<u64> {
    let digits = field.text().strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // As `strconv.Atoi`, which returns the greatest number for one that is out of range.
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}
