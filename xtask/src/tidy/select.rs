//! Rule `biased-select`: every `select!` starts with `biased;`.
//!
//! Without `biased;`, tokio polls the branches in a random order. Two test runs with the same seed could then
//! differ.

use super::finding::Finding;
use super::rust::{Source, is_word};

/// Returns a finding for each `select!` that does not start with `biased;`, also in test code.
pub(super) fn check(source: &Source<'_>) -> Vec<Finding> {
    let code = &source.code;
    code.match_indices("select!")
        .filter(|(at, _)| *at == 0 || !is_word(code.as_bytes()[at - 1]))
        .filter(|(at, name)| !opens_biased(&code[at + name.len()..]))
        .map(|(at, _)| {
            let advice = "start it with `biased;`, so that a seed can be replayed";
            Finding::new(source.path, source.line(at), "biased-select", advice)
        })
        .collect()
}

fn opens_biased(rest: &str) -> bool {
    let body = rest
        .trim_start()
        .strip_prefix(['{', '(', '['])
        .unwrap_or(rest);
    body.trim_start()
        .strip_prefix("biased")
        .is_some_and(|after| after.trim_start().starts_with(';'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Source::new("src/a.rs", text))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn an_unbiased_select_is_reported_in_tests_too() {
        let text = "tokio::select! {\n a = b => {}\n}\n#[cfg(test)]\nmod tests { fn f() { select!{ x => {} } } }";
        assert_eq!(lines(text), [1, 5]);
    }

    #[test]
    fn a_biased_select_is_fine_even_behind_a_comment() {
        let text = "tokio::select! {\n // order: shutdown first\n biased;\n a = b => {}\n}";
        assert_eq!(lines(text), [0; 0]);
    }

    #[test]
    fn a_word_about_select_is_not_a_select() {
        assert_eq!(
            lines("// select! { a => b }\nlet a = \"select! {}\"; my_select! {}"),
            [0; 0]
        );
    }
}
