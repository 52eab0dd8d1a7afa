//! Rule `size`: files and the tests inside them do not exceed a maximum number of lines.
//!
//! The tests inside a file of production code do not count towards the maximum of the file. The rule does not
//! check the length of functions. The clippy lint `too_many_lines` checks it.

use super::finding::Finding;
use super::rust::{Source, line_of};

/// Maximum number of lines of a file; tests inside production code do not count.
const FILE_MAX: usize = 500;

/// Maximum number of lines of the tests inside a file of production code.
const INLINE_TESTS_MAX: usize = 150;

/// Returns a finding for each exceeded maximum: [`FILE_MAX`] and [`INLINE_TESTS_MAX`].
pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let finding = |advice: String| Finding::new(source.path, 1, "size", advice);
    let inline_tests = if source.is_test_file() {
        0
    } else {
        let ranges = source.tests.iter();
        ranges
            .map(|range| 1 + line_of(source.text, range.end) - line_of(source.text, range.start))
            .sum()
    };
    let rest = source.text.lines().count().saturating_sub(inline_tests);
    let mut findings = Vec::new();
    if rest > FILE_MAX {
        findings.push(finding(format!(
            "{rest} lines without inline tests, at most {FILE_MAX}: split by subject"
        )));
    }
    if inline_tests > INLINE_TESTS_MAX {
        findings.push(finding(format!(
            "{inline_tests} lines of tests inside, at most {INLINE_TESTS_MAX}: move them to a `tests.rs` of the module"
        )));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(path: &str, text: &str) -> Vec<String> {
        check(&Source::new(path, text))
            .into_iter()
            .map(|finding| finding.advice)
            .collect()
    }

    #[test]
    fn inline_tests_do_not_count_towards_the_limit_of_a_file() {
        let code = "fn a() {}\n".repeat(500);
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "fn b() {}\n".repeat(147)
        );
        assert_eq!(advice("src/a.rs", &format!("{code}{tests}")), [""; 0]);
        assert_eq!(
            advice(
                "src/a.rs",
                &format!("{code}fn one_too_many() {{}}\n{tests}")
            ),
            ["501 lines without inline tests, at most 500: split by subject"]
        );
    }

    #[test]
    fn long_inline_tests_are_reported() {
        let tests = format!(
            "#[cfg(test)]\nmod tests {{\n{}}}\n",
            "fn b() {}\n".repeat(148)
        );
        assert_eq!(
            advice("src/a.rs", &tests),
            ["151 lines of tests inside, at most 150: move them to a `tests.rs` of the module"]
        );
    }

    #[test]
    fn a_test_file_has_the_same_limit() {
        let tests = "fn b() {}\n".repeat(501);
        let found = "501 lines without inline tests, at most 500: split by subject";
        assert_eq!(advice("src/a/tests.rs", &tests), [found]);
        assert_eq!(
            advice("crates/informer/tests/it/relist.rs", &tests),
            [found]
        );
        assert_eq!(
            advice("src/a/tests.rs", &"fn b() {}\n".repeat(500)),
            [""; 0]
        );
    }
}
