//! Rule `import-order`: a module imports only modules that the crate root declares above the module.
//!
//! The rule checks paths that start with `crate::`, and `super::` paths that lead to the crate root. A module
//! must not import an item that the crate root itself defines or re-exports.
//!
//! If a crate has two roots, `lib.rs` and `main.rs`, the root that declares a module determines the order for
//! that module.
//!
//! The rule does not check crate roots, test code, or paths that start with the name of a crate.

use super::crates::{Crate, ROOTS};
use super::finding::Finding;
use super::paths::paths;
use super::rust::{Source, tokens};

const RULE: &str = "import-order";

/// Folder of a crate's additional programs. The rule `import-order` does not check these programs.
const PROGRAMS: &str = "bin/";

/// The top-level modules of a crate, in the order in which a crate root declares them.
struct Order<'a> {
    /// File name of the crate root: `lib.rs` or `main.rs`.
    root: &'a str,
    modules: Vec<String>,
}

impl Order<'_> {
    /// Reads the order of the modules from the text of a crate root.
    fn of<'a>(root: &'a str, source: &Source<'_>) -> Order<'a> {
        let code = source.production();
        let tokens = tokens(&code);
        let modules = tokens.windows(3).filter_map(|window| match window {
            [keyword, name, end] if keyword.text == "mod" && end.text == ";" => {
                Some(name.text.to_owned())
            }
            _ => None,
        });
        Order {
            root,
            modules: modules.collect(),
        }
    }

    fn position(&self, module: &str) -> Option<usize> {
        self.modules.iter().position(|known| known == module)
    }
}

/// Returns a finding for each import that violates the rule `import-order`.
///
/// Also returns a finding for each file whose top-level module no crate root declares.
pub(super) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    Crate::all(sources)
        .iter()
        .flat_map(crate_findings)
        .collect()
}

fn crate_findings(krate: &Crate<'_>) -> Vec<Finding> {
    let roots = ROOTS
        .into_iter()
        .filter_map(|root| Some((root, krate.file(root)?)));
    let orders: Vec<_> = roots
        .map(|(root, source)| Order::of(root, source))
        .collect();
    let files = krate.files.iter();
    files
        .filter(|(file, _)| !ROOTS.contains(file) && !file.starts_with(PROGRAMS))
        .flat_map(|(file, source)| file_findings(file, source, &orders))
        .collect()
}

fn file_findings(file: &str, source: &Source<'_>, orders: &[Order<'_>]) -> Vec<Finding> {
    let module: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    let own = module[0];
    let declaring = orders.iter();
    let declaring = declaring.filter_map(|order| Some((order, order.position(own)?)));
    let declaring: Vec<_> = declaring.collect();
    if declaring.is_empty() {
        let roots: Vec<_> = orders.iter().map(|order| order.root).collect();
        let advice = format!(
            "declare `mod {own};` in {}, at its place in the pipeline",
            roots.join(" or ")
        );
        return vec![Finding::new(source.path, 1, RULE, advice)];
    }
    let code = source.production();
    let mut findings = Vec::new();
    for path in paths(&tokens(&code)) {
        let Some(&named) = path.resolve(&module).as_deref().and_then(<[_]>::first) else {
            continue;
        };
        for &(order, position) in &declaring {
            let root = order.root;
            let advice = match order.position(named) {
                Some(other) if other > position => format!(
                    "`{named}` is declared below `{own}` in {root}; let `{own}` own the type, or pass the value in"
                ),
                Some(_) => continue,
                None => format!("name `{named}` by its module, not through {root}"),
            };
            findings.push(Finding::new(source.path, path.line, RULE, advice));
        }
    }
    findings.dedup();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "pub mod object;\n\nmod queue; // a comment\n\npub(crate) mod indexer;\npub use indexer::Indexer;\n#[cfg(test)]\nmod tests;";

    fn findings(path: &str, text: &str) -> Vec<String> {
        workspace(&[("crates/informer/src/lib.rs", ROOT), (path, text)])
    }

    fn workspace(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| Source::new(path, text));
        let found = check(&sources.collect::<Vec<_>>());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_module_may_import_modules_declared_above_it() {
        let text = "use crate::object::Object;\nuse crate::{object, queue::Queue};\nuse crate::indexer::x;";
        assert_eq!(findings("crates/informer/src/indexer.rs", text), [""; 0]);
    }

    #[test]
    fn an_import_against_the_order_is_reported_in_any_place() {
        let text = "use crate::{object::{A, B}, indexer::C};\nfn f() { crate::indexer::g() }";
        let advice = "`indexer` is declared below `queue` in lib.rs; let `queue` own the type, or pass the value in";
        assert_eq!(
            findings("crates/informer/src/queue/in_order.rs", text),
            [1, 2].map(|line| format!(
                "crates/informer/src/queue/in_order.rs:{line}: import-order: {advice}"
            ))
        );
    }

    #[test]
    fn a_path_through_super_to_the_root_is_checked() {
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
    fn a_re_export_of_the_root_may_not_be_imported() {
        let found = findings("crates/informer/src/queue.rs", "use crate::Indexer;");
        assert_eq!(
            found,
            [
                "crates/informer/src/queue.rs:1: import-order: name `Indexer` by its module, not through lib.rs"
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
    fn an_undeclared_file_is_reported() {
        let found = findings("crates/informer/src/stray.rs", "");
        assert!(found[0].contains("declare `mod stray;`"), "{found:?}");
    }

    #[test]
    fn every_crate_has_its_own_order() {
        let found = workspace(&[
            ("a/src/lib.rs", "mod one; mod two;"),
            ("a/src/one.rs", "use crate::two;"),
            ("a/src/two.rs", "use crate::one;"),
            ("b/examples/c/main.rs", "mod two; mod one;"),
            ("b/examples/c/one.rs", "use super::two;"),
            ("b/examples/c/two.rs", "use super::one;"),
            ("b/examples/single.rs", ""),
        ]);
        let advice = "own the type, or pass the value in";
        assert_eq!(
            found,
            [
                format!(
                    "a/src/one.rs:1: import-order: `two` is declared below `one` in lib.rs; let `one` {advice}"
                ),
                format!(
                    "b/examples/c/two.rs:1: import-order: `one` is declared below `two` in main.rs; let `two` {advice}"
                ),
            ]
        );
    }

    #[test]
    fn a_module_belongs_to_the_root_that_declares_it() {
        let library = ("a/src/lib.rs", "mod one; mod two;");
        let program = ("a/src/main.rs", "use a::one::X; mod three; mod four;");
        let found = workspace(&[
            library,
            program,
            ("a/src/one.rs", ""),
            ("a/src/two.rs", "use crate::one;"),
            ("a/src/three.rs", "use crate::four; use a::two::Y;"),
            ("a/src/four.rs", "use crate::three;"),
            ("a/src/five.rs", ""),
            ("a/src/bin/six.rs", "fn main() { a::run() }"),
        ]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("`four` is declared below `three` in main.rs"));
        assert!(found[1].starts_with("a/src/five.rs:1: import-order: declare `mod five;`"));
        assert!(found[1].contains("in lib.rs or main.rs"));
    }

    #[test]
    fn a_module_of_both_roots_keeps_the_order_of_each() {
        let found = workspace(&[
            ("a/src/lib.rs", "mod one; mod two;"),
            ("a/src/main.rs", "mod two; mod one;"),
            ("a/src/one.rs", "use crate::two;"),
            ("a/src/two.rs", ""),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`two` is declared below `one` in lib.rs"));
    }

    #[test]
    fn an_item_of_the_root_of_a_program_may_not_be_imported() {
        let found = workspace(&[
            ("a/src/main.rs", "mod one; fn say() {}"),
            ("a/src/one.rs", "fn f() { crate::say() }"),
        ]);
        let advice = "name `say` by its module, not through main.rs";
        assert_eq!(found, [format!("a/src/one.rs:1: import-order: {advice}")]);
    }
}
