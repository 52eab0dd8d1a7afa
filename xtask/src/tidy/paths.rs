//! Extracts the paths from Rust code, such as `crate::queue::Queue`, and resolves them to modules.
//!
//! The module parses tokens, not syntax trees. It does not expand glob imports. It supports neither
//! `#[path]` attributes nor paths in macro patterns.

use super::rust::Token;

/// A path in Rust code, such as `crate::queue::Queue`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedPath<'a> {
    /// Segments of the path, including `crate`, `self` and `super`.
    names: Vec<&'a str>,
    /// Name that a `use` declaration imports: the name after `as`, or otherwise the last segment of the path.
    /// `None` if the path is not in a `use` declaration.
    pub(super) imported_as: Option<&'a str>,
    /// Line of the path in the file, counted from 1.
    pub(super) line: usize,
}

impl<'a> NamedPath<'a> {
    /// Returns the path from the crate root, for code in the module `own`.
    ///
    /// Returns `None` if the path does not start with `crate`, `self` or `super`, or leads above the crate
    /// root.
    pub(super) fn resolve(&self, own: &[&'a str]) -> Option<Vec<&'a str>> {
        let (mut absolute, mut rest) = match self.names.split_first()? {
            (&"crate", rest) => (Vec::new(), rest),
            (&"self", rest) => (own.to_vec(), rest),
            (&"super", _) => (own.to_vec(), &self.names[..]),
            _ => return None,
        };
        while let Some((&"super", deeper)) = rest.split_first() {
            absolute.pop()?;
            rest = deeper;
        }
        absolute.extend(rest);
        Some(absolute)
    }

    /// Returns the path from the crate root, for a `use` declaration in the module `own`.
    ///
    /// A path for which [`NamedPath::resolve`] returns `None` is treated as relative to `own`.
    pub(super) fn resolve_import(&self, own: &[&'a str]) -> Vec<&'a str> {
        self.resolve(own)
            .unwrap_or_else(|| [own, &self.names].concat())
    }
}

/// Returns the paths in `use` declarations, and all paths that start with `crate`, `self` or `super`.
pub(super) fn paths<'a>(tokens: &[Token<'a>]) -> Vec<NamedPath<'a>> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let (mut at, mut found) = (0, Vec::new());
    while at < tokens.len() {
        let before = found.len();
        let end = match text(at) {
            "use" => members(tokens, at + 1, &[], &mut found),
            "crate" | "self" | "super"
                if text(at + 1) == "::" && (at == 0 || !matches!(text(at - 1), "::" | "$")) =>
            {
                let end = members(tokens, at, &[], &mut found);
                for path in &mut found[before..] {
                    path.imported_as = None;
                }
                end
            }
            _ => at,
        };
        at = end.max(at + 1);
    }
    found
}

/// Adds the path at the token `at`, or each path of the group at `at`, to `found`. Each path starts with
/// `prefix`.
///
/// Returns the index of the first token after the path or the group.
fn members<'a>(
    tokens: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    found: &mut Vec<NamedPath<'a>>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut names = prefix.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | "") {
                    at = members(tokens, at, &names, found).max(at + 1);
                }
                return at + 1;
            }
            "self" if !names.is_empty() => {}
            name if name == "*" || name.starts_with(|c: char| c == '_' || c.is_alphabetic()) => {
                names.push(name);
            }
            _ => return at,
        }
        at += 1;
        if text(at) != "::" {
            let mut imported_as = names.last().copied();
            if text(at) == "as" {
                imported_as = Some(text(at + 1));
                at += 2;
            }
            found.push(NamedPath {
                names,
                imported_as,
                line: token.line,
            });
            return at;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::super::rust::tokens;
    use super::*;

    fn absolute(own: &[&str], code: &str) -> Vec<String> {
        let found = paths(&tokens(code)).into_iter();
        let found = found.filter_map(|path| Some((path.resolve(own)?.join("::"), path)));
        let shown = found.map(|(absolute, path)| match path.imported_as {
            Some(name) => format!("{absolute} as {name}, line {}", path.line),
            None => format!("{absolute}, line {}", path.line),
        });
        shown.collect()
    }

    #[test]
    fn each_member_of_a_group_is_a_path() {
        let code = "use crate::{a::{self, B as C},\n d::*};\npub(crate) use std::x;";
        assert_eq!(
            absolute(&["m"], code),
            ["a as a, line 1", "a::B as C, line 1", "d::* as *, line 2"]
        );
    }

    #[test]
    fn super_leads_to_the_parent_and_not_above_the_root() {
        assert_eq!(
            absolute(
                &["m", "n"],
                "super::a(super::super::b, self::c, super::super::super::d)"
            ),
            ["m::a, line 1", "b, line 1", "m::n::c, line 1"]
        );
    }

    #[test]
    fn the_middle_of_a_path_starts_no_path() {
        assert_eq!(
            absolute(&[], "$crate::a(b::crate::c); fn d(self) {}"),
            [""; 0]
        );
    }
}
