//! Rule `import-circle`: sibling modules of a crate do not import each other in a circle.
//!
//! Siblings are modules with the same parent. Module A imports its sibling B if the code in A contains a path
//! into B. The code in A includes all modules inside A.
//!
//! An imported name can also lead into B. For example, if module `m` contains `use b::X;`, then
//! `use super::X;` in `m::a` is an import of `m::b`.
//!
//! A parent and its child modules may import each other. The rule does not check test code.

use std::collections::{BTreeMap, BTreeSet};

use super::crates::{Crate, ROOTS};
use super::finding::Finding;
use super::paths::{NamedPath, paths};
use super::rust::{Source, tokens};

const RULE: &str = "import-circle";

/// The paths that the code of each module contains, by the module's path in the crate.
type Modules<'a> = BTreeMap<Vec<&'a str>, Vec<NamedPath<'a>>>;

/// An import of the module `to` by its sibling `from`, or by a child module of `from`.
///
/// - `parent` is the path of the parent module of `from` and `to`.
/// - `file` is the path of the module that contains the import.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Import<'a> {
    parent: Vec<&'a str>,
    from: &'a str,
    to: &'a str,
    file: Vec<&'a str>,
    line: usize,
}

/// Returns a finding for each import circle in the crates that `sources` contain.
pub(super) fn check(sources: &[Source<'_>]) -> Vec<Finding> {
    Crate::all(sources).iter().flat_map(circles).collect()
}

/// Returns a finding for each import circle in a crate.
fn circles(krate: &Crate<'_>) -> Vec<Finding> {
    let sources: Vec<_> = krate
        .files
        .iter()
        .map(|(file, source)| (*file, source.production()))
        .collect();
    let mut modules = Modules::new();
    for (file, code) in &sources {
        let module = if ROOTS.contains(file) {
            Vec::new()
        } else {
            file.trim_end_matches(".rs").split('/').collect()
        };
        let named = paths(&tokens(code));
        modules.entry(module).or_default().extend(named);
    }
    let imports = imports(&modules);
    let mut reported = BTreeSet::new();
    let mut findings = Vec::new();
    for import in &imports {
        let circle = circle(&imports, import);
        if circle.is_empty() || !reported.insert((&import.parent, circle.clone())) {
            continue;
        }
        let names = circle.into_iter().collect::<Vec<_>>().join("`, `");
        let advice = format!(
            "`{names}` import each other in a circle; move what they share to a module of its own, or pass the value in"
        );
        let path = format!("{}/{}.rs", krate.folder, import.file.join("/"));
        findings.push(Finding::new(&path, import.line, RULE, advice));
    }
    findings
}

/// Returns all imports between sibling modules of a crate.
fn imports<'a>(modules: &Modules<'a>) -> BTreeSet<Import<'a>> {
    let mut imports = BTreeSet::new();
    for (file, named) in modules {
        for path in named {
            let Some(target) = path.resolve(file) else {
                continue;
            };
            let source = imported(modules, &target);
            for target in [Some(target), source].into_iter().flatten() {
                let shared = file.iter().zip(&target).take_while(|(a, b)| a == b).count();
                let (Some(from), Some(to)) = (file.get(shared), target.get(shared)) else {
                    continue;
                };
                if modules.contains_key(&target[..=shared]) {
                    imports.insert(Import {
                        parent: file[..shared].to_vec(),
                        from,
                        to,
                        file: file.clone(),
                        line: path.line,
                    });
                }
            }
        }
    }
    imports
}

/// Returns the path of the imported item, if `target` is a name that a `use` declaration imports.
///
/// If module `m` contains `use two::X;`, the result for `crate::m::X` is `crate::m::two::X`.
fn imported<'a>(modules: &Modules<'a>, target: &[&'a str]) -> Option<Vec<&'a str>> {
    let lengths = (0..target.len()).rev();
    let mut prefixes = lengths.map(|length| target.split_at(length));
    let (module, rest) = prefixes.find(|(module, _)| modules.contains_key(*module))?;
    let mut named = modules[module].iter();
    let import = named.find(|path| path.imported_as == rest.first().copied())?;
    Some(import.resolve_import(module))
}

/// Returns the modules of the import circle that contains `import`, including the two modules of `import`.
///
/// Returns an empty set if `import` is in no circle.
fn circle<'a>(imports: &BTreeSet<Import<'a>>, import: &Import<'a>) -> BTreeSet<&'a str> {
    let reachable = |start: &'a str| {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(from) = next.pop() {
            let beside = imports.iter().filter(|it| it.parent == import.parent);
            for it in beside.filter(|it| it.from == from) {
                if reached.insert(it.to) {
                    next.push(it.to);
                }
            }
        }
        reached
    };
    let reached = reachable(import.from);
    if !reachable(import.to).contains(import.from) {
        return BTreeSet::new();
    }
    reached
        .into_iter()
        .filter(|other| reachable(other).contains(import.from))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter().map(|(path, text)| Source::new(path, text));
        let found = check(&sources.collect::<Vec<_>>());
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_reported_once_with_all_its_modules() {
        let found = findings(&[
            ("a/src/main.rs", "mod one; mod two; mod three; mod four;"),
            ("a/src/one.rs", "use crate::two::X;"),
            ("a/src/one/deep.rs", "\nfn f() { super::super::two::g() }"),
            ("a/src/two.rs", "use super::three;"),
            ("a/src/three/deep.rs", "use crate::{one::A, four::B};"),
            ("a/src/three.rs", ""),
            ("a/src/four.rs", ""),
        ]);
        let advice = "`one`, `three`, `two` import each other in a circle; move what they share to a module of its own, or pass the value in";
        assert_eq!(found, [format!("a/src/one.rs:1: import-circle: {advice}")]);
    }

    #[test]
    fn modules_inside_a_module_are_checked_like_those_of_the_root() {
        let found = findings(&[
            ("a/src/lib.rs", "mod m;"),
            ("a/src/m.rs", "mod one; mod two;"),
            ("a/src/m/one.rs", "use super::two::X;"),
            ("a/src/m/two.rs", "use crate::m::one::Y;"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("a/src/m/one.rs:1: import-circle: `one`, `two`"));
    }

    #[test]
    fn a_re_export_of_the_parent_hides_no_circle() {
        for parent in ["pub use two::X;", "use self::two::{Z as X};"] {
            let found = findings(&[
                ("a/src/lib.rs", "mod m;"),
                ("a/src/m.rs", parent),
                ("a/src/m/one.rs", "use super::X;"),
                ("a/src/m/two.rs", "use super::one::Y;"),
            ]);
            assert_eq!(found.len(), 1, "{parent}");
        }
    }

    #[test]
    fn a_parent_its_modules_tests_and_other_crates_form_no_circle() {
        let found = findings(&[
            ("a/src/lib.rs", "mod one; mod two; use one::X;"),
            ("a/src/one.rs", "mod deep; use crate::X; use deep::Y;"),
            ("a/src/one/deep.rs", "use super::Z; use crate::two::W;"),
            (
                "a/src/two.rs",
                "#[cfg(test)]\nmod tests { use crate::one::X; }",
            ),
            ("a/src/two/tests.rs", "use crate::one::X;"),
            ("b/src/lib.rs", "mod one; mod two;"),
            ("b/src/one.rs", ""),
            ("b/src/two.rs", "use crate::one::X;"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
