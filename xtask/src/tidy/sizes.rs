//! Rule `size`: a file fits a sitting.
//!
//! Functions are clippy's (`too_many_lines`); files are counted here, without their tests.

use super::finding::Finding;
use super::rust::{Source, line_of};

/// Lines of a file without its tests; the median is meant to be far below.
const FILE_MAX: usize = 500;

/// Lines of a file of tests, which reads as a list and may be longer.
const TEST_FILE_MAX: usize = 900;

/// Lines of tests at the end of a file, beyond which they hide what the file is about.
const INLINE_TESTS_MAX: usize = 150;

/// Reports a file, or the tests inside it, over its ceiling.
pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let lines = source.text.lines().count();
    let finding = |advice: String| Finding::new(source.path, 1, "size", advice);
    if source.is_test_file() {
        let over = lines > TEST_FILE_MAX;
        let advice =
            || format!("{lines} lines of tests, at most {TEST_FILE_MAX}: split by subject");
        return over.then(|| finding(advice())).into_iter().collect();
    }
    let tests: usize = source
        .tests
        .iter()
        .map(|range| 1 + line_of(source.text, range.end) - line_of(source.text, range.start))
        .sum();
    let rest = lines.saturating_sub(tests);
    let mut findings = Vec::new();
    if rest > FILE_MAX {
        findings.push(finding(format!(
            "{rest} lines without tests, at most {FILE_MAX}: split by noun"
        )));
    }
    if tests > INLINE_TESTS_MAX {
        findings.push(finding(format!(
            "{tests} lines of tests inside, at most {INLINE_TESTS_MAX}: move them to a `tests.rs` of the module"
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
    fn tests_do_not_count_towards_the_ceiling_of_a_file() {
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
            ["501 lines without tests, at most 500: split by noun"]
        );
    }

    #[test]
    fn many_tests_move_to_their_own_file() {
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
    fn a_file_of_tests_has_its_own_ceiling() {
        let tests = "fn b() {}\n".repeat(901);
        let found = "901 lines of tests, at most 900: split by subject";
        assert_eq!(advice("src/a/tests.rs", &tests), [found]);
        assert_eq!(
            advice("crates/informer/tests/it/relist.rs", &tests),
            [found]
        );
        assert_eq!(
            advice("src/a/tests.rs", &"fn b() {}\n".repeat(900)),
            [""; 0]
        );
    }
}
