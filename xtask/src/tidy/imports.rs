//! Rule `import-order`: the module list of a crate is its pipeline.
//!
//! A module may name (`crate::x`, or `super::` up to the root) only modules declared above its own in `lib.rs`, so data flows one way and a reader learns the machine from the list.
//! `lib.rs` itself (`main.rs` of a program), with its re-exports, and tests are exempt.

use super::finding::Finding;
use super::paths::paths;
use super::rust::{Source, tokens};

const RULE: &str = "import-order";

/// The modules of a crate, in the order of its root.
pub(super) struct Order {
    /// `lib.rs` or `main.rs`.
    root: String,
    modules: Vec<String>,
}

impl Order {
    /// Reads the `mod` lines of a crate root.
    pub(super) fn of(root: &Source<'_>) -> Order {
        let code = root.production();
        let tokens = tokens(&code);
        let modules = tokens.windows(3).filter_map(|window| match window {
            [keyword, name, end] if keyword.text == "mod" && end.text == ";" => {
                Some(name.text.to_owned())
            }
            _ => None,
        });
        Order {
            root: root.path.rsplit('/').next().unwrap_or_default().to_owned(),
            modules: modules.collect(),
        }
    }

    fn position(&self, module: &str) -> Option<usize> {
        self.modules.iter().position(|known| known == module)
    }
}

/// Reports what a file of the crate below `folder` imports against the order.
pub(super) fn check(source: &Source<'_>, folder: &str, order: &Order) -> Vec<Finding> {
    let Some(inside) = source.path.strip_prefix(folder) else {
        return Vec::new();
    };
    let root = &order.root;
    if inside == root || source.is_test_file() {
        return Vec::new();
    }
    let module: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
    let own = module[0];
    let Some(position) = order.position(own) else {
        let advice = format!("declare `mod {own};` in {root}, at its place in the pipeline");
        return vec![Finding::new(source.path, 1, RULE, advice)];
    };
    let code = source.production();
    let mut findings = Vec::new();
    for path in paths(&tokens(&code)) {
        let Some(&named) = path.resolve(&module).as_deref().and_then(<[_]>::first) else {
            continue;
        };
        let advice = match order.position(named) {
            Some(other) if other > position => format!(
                "`{named}` stands below `{own}` in {root}; let `{own}` own the type, or pass the value in"
            ),
            Some(_) => continue,
            None => format!("name `{named}` by its module, not by {root}'s re-export"),
        };
        findings.push(Finding::new(source.path, path.line, RULE, advice));
    }
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "pub mod object;\n\nmod queue; // a comment\n\npub(crate) mod indexer;\npub use indexer::Indexer;\n#[cfg(test)]\nmod tests;";

    fn findings(path: &str, text: &str) -> Vec<String> {
        let order = Order::of(&Source::new("crates/informer/src/lib.rs", ROOT));
        let findings = check(&Source::new(path, text), "crates/informer/src/", &order);
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_module_may_import_what_stands_above_it() {
        let text = "use crate::object::Object;\nuse crate::{object, queue::Queue};\nuse crate::indexer::x;";
        assert_eq!(findings("crates/informer/src/indexer.rs", text), [""; 0]);
    }

    #[test]
    fn a_back_edge_is_reported_wherever_the_path_stands() {
        let text = "use crate::{object::{A, B}, indexer::C};\nfn f() { crate::indexer::g() }";
        let advice = "`indexer` stands below `queue` in lib.rs; let `queue` own the type, or pass the value in";
        assert_eq!(
            findings("crates/informer/src/queue/in_order.rs", text),
            [1, 2].map(|line| format!(
                "crates/informer/src/queue/in_order.rs:{line}: import-order: {advice}"
            ))
        );
    }

    #[test]
    fn climbing_to_the_root_counts_as_naming_it() {
        let text = "use super::super::indexer;\nuse super::Queue;";
        let found = findings("crates/informer/src/queue/in_order.rs", text);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/informer/src/queue/in_order.rs:1: import-order"));
        assert_eq!(
            findings("crates/informer/src/queue.rs", "use super::indexer;").len(),
            1
        );
    }

    #[test]
    fn a_re_export_of_the_root_is_no_way_around_the_order() {
        let found = findings("crates/informer/src/queue.rs", "use crate::Indexer;");
        assert_eq!(
            found,
            [
                "crates/informer/src/queue.rs:1: import-order: name `Indexer` by its module, not by lib.rs's re-export"
            ]
        );
    }

    #[test]
    fn tests_and_comments_may_name_anything() {
        let text = "//! See crate::indexer.\n#[cfg(test)]\nmod tests { use crate::indexer; }";
        assert_eq!(findings("crates/informer/src/queue.rs", text), [""; 0]);
        for path in [
            "crates/informer/src/queue/tests.rs",
            "crates/informer/src/tests.rs",
        ] {
            assert_eq!(findings(path, "use crate::indexer;"), [""; 0]);
        }
    }

    #[test]
    fn a_file_that_no_mod_line_names_is_reported() {
        let found = findings("crates/informer/src/stray.rs", "");
        assert!(found[0].contains("declare `mod stray;`"), "{found:?}");
    }
}
