//! Validates numbers and names of ports.

use super::field::Field;
use super::report::Report;

pub(super) fn check_port_number(port: &Field<'_, '_>, report: &mut Report) {
    if !(1..=65_535).contains(&port.number()) {
        port.invalid(report, "must be between 1 and 65535, inclusive");
    }
}

/// Returns Kubernetes' messages about the name of a port (`IsValidPortName`).
pub(super) fn port_name_faults(name: &str) -> Vec<String> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let checks = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            !name.is_empty() && name.bytes().all(is_allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (
            !name.starts_with('-') && !name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let faults = checks.into_iter().filter(|(is_met, _)| !is_met);
    faults.map(|(_, fault)| fault.to_owned()).collect()
}
