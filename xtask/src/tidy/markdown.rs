//! Extracts prose, links and anchors from Markdown.
//!
//! The module supports inline links, images, link definitions (`[label]: target`), and headings that start
//! with `#`. It does not support HTML links and underlined headings.

use std::collections::{BTreeMap, BTreeSet};

/// A link in a Markdown document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Link<'a> {
    pub(super) line: usize,
    /// Path and anchor to which the link refers, without the title of the link.
    pub(super) target: &'a str,
}

/// Returns the document without fenced code and code spans, with unchanged line numbers.
pub(super) fn prose(markdown: &str) -> String {
    let mut kept = String::with_capacity(markdown.len());
    for line in unfenced(markdown) {
        kept.extend(line.split('`').step_by(2));
        kept.push('\n');
    }
    kept
}

/// Returns the links in a document from which [`prose`] has removed the code. Line numbers start at 1.
pub(super) fn links(prose: &str) -> Vec<Link<'_>> {
    let mut links = Vec::new();
    for (index, line) in prose.lines().enumerate() {
        let inline = line.split("](").skip(1).map(|rest| &rest[..closing(rest)]);
        for target in inline.chain(definition(line)) {
            let line = index + 1;
            let target = without_title(target);
            links.push(Link { line, target });
        }
    }
    links
}

/// Returns a document's anchors on GitHub: from headings, `<a id="…">` and `<a name="…">`.
pub(super) fn anchors(markdown: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut repeats = BTreeMap::new();
    for line in unfenced(markdown) {
        if let Some(heading) = heading(line) {
            let slug = slug(&heading);
            let repeat = repeats.entry(slug.clone()).or_insert(0_usize);
            anchors.insert(match *repeat {
                0 => slug,
                repeat => format!("{slug}-{repeat}"),
            });
            *repeat += 1;
        }
        for attribute in ["<a id=\"", "<a name=\""] {
            let ids = line.split(attribute).skip(1);
            anchors.extend(ids.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    anchors
}

/// Returns the lines of a document, with empty lines in place of fenced code.
fn unfenced(markdown: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    markdown.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence { "" } else { line }
    })
}

/// Returns the length in bytes of the link target at the start of `rest`.
fn closing(rest: &str) -> usize {
    let mut open = 0_usize;
    let end = rest.find(|c| match c {
        '(' => {
            open += 1;
            false
        }
        ')' if open > 0 => {
            open -= 1;
            false
        }
        c => c == ')',
    });
    end.unwrap_or(rest.len())
}

/// Returns the target of a link definition `[label]: target`, but not of a footnote.
fn definition(line: &str) -> Option<&str> {
    let (label, target) = line.strip_prefix('[')?.split_once("]: ")?;
    (!label.starts_with('^') && !label.contains(']')).then_some(target)
}

fn without_title(target: &str) -> &str {
    let target = target.trim();
    let path = target.split_whitespace().next().unwrap_or_default();
    path.trim_start_matches('<').trim_end_matches('>')
}

/// Returns the text of a heading, without link targets.
fn heading(line: &str) -> Option<String> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if !(1..=6).contains(&level) || !text.starts_with(' ') {
        return None;
    }
    let mut parts = text.trim().trim_end_matches('#').trim_end().split("](");
    let mut heading = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        heading += part.get(closing(part)..).unwrap_or_default();
    }
    Some(heading)
}

/// Returns the anchor that GitHub generates for a heading.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(markdown: &str) -> Vec<(usize, String)> {
        let prose = prose(markdown);
        let links = links(&prose);
        let targets = links.iter().map(|link| (link.line, link.target.to_owned()));
        targets.collect()
    }

    fn anchors_of(markdown: &str) -> Vec<String> {
        anchors(markdown).into_iter().collect()
    }

    #[test]
    fn links_images_and_definitions_are_read() {
        let text = "[a](b.md), ![c](d.svg \"title\")\n[`e`](<f.md#g>) [h](i_(j).md)\n\n[k]: l.md\n[^m]: A note.\n";
        let expected = [
            (1, "b.md"),
            (1, "d.svg"),
            (2, "f.md#g"),
            (2, "i_(j).md"),
            (4, "l.md"),
        ];
        assert_eq!(targets(text), expected.map(|(line, to)| (line, to.into())));
    }

    #[test]
    fn code_has_no_links() {
        assert_eq!(targets("`[a](b)`\n```text\n[a](b)\n```\n"), []);
        assert_eq!(targets("```\n```\n[a](b)"), [(3, "b".to_owned())]);
    }

    #[test]
    fn an_anchor_is_the_heading_in_lower_case_without_punctuation() {
        assert_eq!(
            anchors_of("# What's `FieldPath`, and why?\n## A — b\n### [Link](to.md) *here* ###\n"),
            ["a--b", "link-here", "whats-fieldpath-and-why"]
        );
        assert_eq!(anchors_of("#hashtag\n####### seven\ntext # no\n"), [""; 0]);
        assert_eq!(anchors_of("```sh\n# a comment\n```\n"), [""; 0]);
    }

    #[test]
    fn the_anchor_of_a_repeated_heading_has_a_number() {
        assert_eq!(anchors_of("# A\n# A\n## a!\n"), ["a", "a-1", "a-2"]);
    }

    #[test]
    fn an_anchor_can_be_given_by_hand() {
        assert_eq!(anchors_of("Text <a id=\"here\"></a>.\n"), ["here"]);
    }
}
