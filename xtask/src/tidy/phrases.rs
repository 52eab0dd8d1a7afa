//! Rule `phrase`: Markdown files and comments do not contain the vague phrases in [`PHRASES`].
//!
//! The rule skips Rust code, code spans and fenced code blocks.

use super::finding::Finding;
use super::markdown;
use super::prose::words;
use super::rust::Source;

/// A vague phrase, and advice on the words that replace it.
type Phrase = (&'static str, &'static str);

const PHRASES: [Phrase; 8] = [
    ("whoever", "name the caller, the client or the reader"),
    (
        "nobody",
        "say what does not happen: \"no handler receives it\"",
    ),
    ("somebody", "name the caller, the client or the user"),
    ("lest", "write \"so that … not\""),
    ("so many", "name the number, the limit or the rate"),
    ("at one go", "write \"at once\" or \"in one batch\""),
    ("who asks", "write \"the caller\" or \"the client\""),
    (
        "what is told",
        "write \"what is delivered\" or \"reported\"",
    ),
];

/// Returns a finding for each vague phrase in the comments of a Rust file.
pub(super) fn code(source: &Source<'_>) -> Vec<Finding> {
    check(source.path, &source.comments)
}

/// Returns a finding for each vague phrase in `markdown`, the text of the file `path`.
pub(super) fn check(path: &str, markdown: &str) -> Vec<Finding> {
    let prose = markdown::prose(markdown).to_lowercase();
    let mut findings = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let used = PHRASES
            .iter()
            .filter(|(phrase, _)| words(line, phrase).next().is_some());
        findings.extend(used.map(|(phrase, instead)| {
            let advice = format!("{phrase:?} is vague; {instead}");
            Finding::new(path, index + 1, "phrase", advice)
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let findings = check("README.md", text);
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_phrase_is_reported_in_any_case_with_its_replacement() {
        for (phrase, instead) in PHRASES {
            let capital = phrase[..1].to_uppercase() + &phrase[1..];
            let findings = check("README.md", &format!("Fine.\n{capital}'s turn.\n"));
            assert_eq!(findings.len(), 1, "{phrase}");
            assert_eq!(findings[0].line, 2);
            assert!(findings[0].advice.ends_with(instead), "{phrase}");
        }
    }

    #[test]
    fn parts_of_words_and_code_are_not_reported() {
        assert_eq!(lines("The least: celestial.\n"), [0; 0]);
        assert_eq!(lines("`nobody`\n```text\nsomebody\n```\nwhoever\n"), [5]);
    }

    #[test]
    fn comments_are_checked_and_code_is_not() {
        let text =
            "//! For whoever reads.\nlet a = \"nobody\"; // lest\n/// `nobody`\nfn somebody() {}\n";
        let source = Source::new("xtask/src/tidy/links.rs", text);
        let findings = code(&source);
        let at: Vec<_> = findings.iter().map(|finding| finding.line).collect();
        assert_eq!(at, [1, 2]);
    }
}
