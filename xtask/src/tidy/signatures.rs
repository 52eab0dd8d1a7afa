//! Rule `foreign-type`: public signatures of the library use only the dependencies in [`ALLOWED`].
//!
//! The rule checks the signatures of `pub` items, and the headers of `From` and `TryFrom` impls. It does not
//! check `pub(crate)` items. In checked code, the rule reports the name of any other dependency, and each
//! name that the file imports from such a dependency.

mod items;

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::manifests;
use super::rust::{Source, Token, tokens};

/// Dependencies whose types may occur in public signatures of the library.
const ALLOWED: [&str; 7] = [
    "kube_core",
    "k8s_openapi",
    "futures_core",
    "bytes",
    "kube_client",
    "kube_runtime",
    "serde",
];

/// Returns the dependencies in `manifest` that public signatures must not contain, with `_` for `-`.
pub(super) fn foreign(manifest: &str) -> BTreeSet<String> {
    manifests::entries(manifest)
        .filter(|entry| entry.table == "dependencies")
        .filter_map(|entry| entry.key.split('.').next())
        .map(|name| name.trim_matches('"').replace('-', "_"))
        .filter(|name| !ALLOWED.contains(&name.as_str()))
        .collect()
}

/// Returns a finding for each name in a public signature that comes from a crate in `foreign`.
pub(super) fn check(source: &Source<'_>, foreign: &BTreeSet<String>) -> Vec<Finding> {
    let code = source.production();
    let tokens = items::without_attributes(&tokens(&code));
    let imported = imports(&tokens, foreign);
    let mut findings = Vec::new();
    for signature in items::public_signatures(&tokens) {
        let tokens = &tokens[signature];
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1).map_or("", |token| token.text);
            if at > 0 && tokens[at - 1].text == "::" {
                continue;
            }
            let named = if next == "::" || tokens[0].text == "use" {
                foreign.get(token.text)
            } else {
                None
            };
            let is_value = token.text.starts_with(|c: char| c.is_lowercase()) && next != "::";
            let through = imported.get(token.text).filter(|_| !is_value).copied();
            if let Some(krate) = named.map(String::as_str).or(through) {
                let advice = format!(
                    "`{}` makes `{krate}` part of the public API; wrap it or make the item private",
                    token.text
                );
                findings.push(Finding::new(
                    source.path,
                    token.line,
                    "foreign-type",
                    advice,
                ));
            }
        }
    }
    findings
}

/// Returns the names that `use` declarations import from crates in `foreign`, with their crates.
fn imports<'a>(tokens: &[Token<'_>], foreign: &'a BTreeSet<String>) -> BTreeMap<String, &'a str> {
    let mut names = BTreeMap::new();
    for (at, _) in tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.text == "use")
    {
        let tree = &tokens[at + 1..];
        let tree = &tree[..tree
            .iter()
            .position(|token| token.text == ";")
            .unwrap_or(tree.len())];
        let Some(krate) = tree
            .iter()
            .find(|token| token.text != "::")
            .and_then(|root| foreign.get(root.text))
        else {
            continue;
        };
        for name in items::bound_names(tree) {
            names.insert(name.to_owned(), krate.as_str());
        }
    }
    names
}

#[cfg(test)]
mod tests;
