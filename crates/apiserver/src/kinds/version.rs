//! Orders the versions of an API group by their names.
//!
//! Guarantees: the order is that of `CompareKubeAwareVersionStrings` in Kubernetes' `util/version`.

use std::cmp::{Ordering, Reverse};

/// How stable a version is, most stable first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Stable,
    Beta,
    Alpha,
}

/// Compares two versions. The preferred version is less: `v2`, `v1`, `v2beta1`, `v2alpha1`, `x`, `y`.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    match (parts(one), parts(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// Returns the parts of a version such as `v1beta2`, or `None` for a version of another form.
fn parts(version: &str) -> Option<(Stage, Reverse<u64>, Reverse<u64>)> {
    let rest = version.strip_prefix('v')?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let (major, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let (stage, minor) = if let Some(minor) = rest.strip_prefix("beta") {
        (Stage::Beta, minor)
    } else if let Some(minor) = rest.strip_prefix("alpha") {
        (Stage::Alpha, minor)
    } else if rest.is_empty() {
        (Stage::Stable, "0")
    } else {
        return None;
    };
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number).map(Reverse)
    };
    Some((stage, number(major)?, number(minor)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stable_versions_are_first_and_other_names_last() {
        // The example of Kubernetes' documentation of `CompareKubeAwareVersionStrings`.
        let ordered = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "foo1",
            "foo10",
            "v1beta",
            "v1x",
        ];
        let mut sorted = ordered;
        sorted.reverse();
        sorted.sort_by(|one, other| compare(one, other));
        assert_eq!(sorted, ordered);
    }
}
