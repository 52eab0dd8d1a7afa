//! Rules `unfinished` and `narration`: texts contain no unfinished work and no description of history.
//!
//! Both rules check Markdown files, except for code spans and fenced code blocks. Both rules also check the
//! comments of Rust files. In addition, `unfinished` checks Rust code for macros such as `todo!`.

use super::finding::Finding;
use super::markdown;
use super::rust::{Source, is_word};

/// Words that mark unfinished work; allowed in a line with an issue number.
const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Macros that panic because the code is not written yet.
const STUBS: [&str; 2] = ["todo!", "unimplemented!"];

/// Phrases that describe the history instead of the current state.
const NARRATION: [&str; 6] = [
    "previously we",
    "as requested",
    "used to be",
    "no longer needed",
    "now we",
    "we now",
];

/// Checks a Rust file, and returns the findings.
///
/// The rules `unfinished` and `narration` apply to the comments. The code must not contain [`STUBS`].
pub(super) fn code(source: &Source<'_>) -> Vec<Finding> {
    let mut findings = text(source.path, &source.comments);
    for stub in STUBS {
        for at in words(&source.code, stub) {
            let advice = format!("`{stub}` panics; write the code or return an error");
            findings.push(Finding::new(
                source.path,
                source.line(at),
                "unfinished",
                advice,
            ));
        }
    }
    findings
}

/// Checks a Markdown file with the rules `unfinished` and `narration`, and returns the findings.
pub(super) fn markdown(path: &str, markdown: &str) -> Vec<Finding> {
    text(path, &markdown::prose(markdown))
}

fn text(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(mark) = MARKS.iter().find(|mark| words(line, mark).next().is_some())
            && !names_issue(line)
        {
            let advice = format!("finish it, or add the issue to {mark} (`#123`)");
            findings.push(Finding::new(path, index + 1, "unfinished", advice));
        }
        let lower = line.to_lowercase();
        if let Some(narration) = NARRATION
            .iter()
            .find(|it| words(&lower, it).next().is_some())
        {
            let advice = format!("{narration:?} describes history; describe the current state");
            findings.push(Finding::new(path, index + 1, "narration", advice));
        }
    }
    findings
}

/// Returns the byte offsets at which `text` contains `word` as a whole word.
pub(super) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let after = bytes.get(at + word.len());
            (at == 0 || !is_word(bytes[at - 1])) && after.is_none_or(|&byte| !is_word(byte))
        })
}

fn names_issue(line: &str) -> bool {
    let digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    line.split('#').skip(1).any(digit) || line.split("/issues/").skip(1).any(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_rust(text: &str) -> Vec<(usize, &'static str)> {
        let findings = code(&Source::new("src/a.rs", text));
        findings
            .iter()
            .map(|finding| (finding.line, finding.rule))
            .collect()
    }

    #[test]
    fn unfinished_work_needs_an_issue() {
        assert_eq!(
            in_rust("// TODO: later\nfn a() {} // FIXME"),
            [(1, "unfinished"), (2, "unfinished")]
        );
        assert_eq!(
            in_rust("// TODO(#12): later\n// see TODOS and issue lists"),
            []
        );
        assert_eq!(in_rust("let a = \"TODO\";"), []);
    }

    #[test]
    fn a_stub_is_unfinished_work() {
        assert_eq!(in_rust("fn a() {\n todo!() }"), [(2, "unfinished")]);
    }

    #[test]
    fn narration_is_reported_in_comments_and_in_markdown() {
        assert_eq!(in_rust("//! Previously we did this.\n"), [(1, "narration")]);
        let findings = markdown("README.md", "Fine.\nIt used to be slow.\n");
        assert_eq!(
            findings[0].to_string(),
            "README.md:2: narration: \"used to be\" describes history; describe the current state"
        );
    }

    #[test]
    fn a_quoted_word_is_not_reported() {
        let text = "No `TODO` without an issue.\n```text\nTODO\n```\n";
        assert_eq!(markdown("CONTRIBUTING.md", text), []);
    }
}
