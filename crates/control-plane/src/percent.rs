//! Resolves settings that are a number of pods or a percentage.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Whether a fraction of a pod counts as a pod, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Up,
    Down,
}

/// Returns a number of pods, or a percentage of `total` in pods; 0 if there is no value.
pub(super) fn pods_of(value: Option<&IntOrString>, total: i32, round: Round) -> i32 {
    match value {
        None => 0,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(text)) => {
            let percent = text
                .strip_suffix('%')
                .and_then(|text| text.parse::<i64>().ok());
            // The server has rejected any other text.
            let hundredths = percent.unwrap_or(0).saturating_mul(i64::from(total));
            let rounded = match round {
                Round::Up => hundredths.saturating_add(99),
                Round::Down => hundredths,
            };
            i32::try_from(rounded / 100).unwrap_or(i32::MAX)
        }
    }
}
