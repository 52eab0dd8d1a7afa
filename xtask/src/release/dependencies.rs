//! Determines the packages from which a program is built, with `cargo tree` for one package and one target.
//!
//! `cargo metadata` is not sufficient, because it also lists packages that only other workspace members use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::packages::Id;
use super::process;

/// Map from each package to the packages that it directly depends on.
pub(super) type Tree = BTreeMap<Id, BTreeSet<Id>>;

/// The packages from which a program is built, and the dependencies of each package.
pub(super) struct Resolved {
    /// All packages that the build needs, including the package of the program.
    pub(super) built: Tree,
    /// Packages whose code the program contains, without build scripts and procedural macros.
    pub(super) linked: Tree,
}

/// Determines the packages that `package` needs in a build for the target triple `target`.
///
/// # Errors
///
/// Returns an error if Cargo fails or its output has an unknown format.
pub(super) fn resolve(root: &Path, package: &str, target: &str) -> Result<Resolved> {
    let tree = |edges: &str| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root).args(["tree", "--locked"]);
        cargo.args(["--package", package, "--target", target]);
        cargo.args(["--edges", edges, "--prefix", "depth"]);
        // The default format starts with the same text, but a later version of Cargo may change it.
        cargo.args(["--charset", "ascii", "--format", "\t{p}"]);
        parse(&process::output(&mut cargo)?)
    };
    Ok(Resolved {
        built: tree("normal,build")?,
        linked: tree("normal,no-proc-macro")?,
    })
}

/// Parses the output of `cargo tree`, and returns the dependencies of each package.
///
/// Each line contains the depth of a package in the tree, a tab, and the name and version of the package.
///
/// # Errors
///
/// Returns an error if a line has another format.
fn parse(text: &str) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut above: Vec<Id> = Vec::new();
    for line in text.lines() {
        let package = line.split_once('\t').and_then(|(depth, package)| {
            let mut words = package.split(' ');
            let name = words.next()?.to_owned();
            let version = words.next()?.strip_prefix('v')?.to_owned();
            Some((depth.parse::<usize>().ok()?, (name, version)))
        });
        let (depth, id) = package
            .filter(|(depth, _)| *depth <= above.len())
            .with_context(|| format!("the output of cargo tree has an unknown line: {line:?}"))?;
        above.truncate(depth);
        if let Some(parent) = above.last() {
            tree.entry(parent.clone()).or_default().insert(id.clone());
        }
        tree.entry(id.clone()).or_default();
        above.push(id);
    }
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        (name.to_owned(), "1.0.0".to_owned())
    }

    #[test]
    fn a_package_depends_on_the_next_deeper_ones_below_it() {
        let text = "0\ta v1.0.0 (/folder)\n1\tb v1.0.0 (proc-macro)\n2\tc v1.0.0\n1\td v1.0.0\n2\tc v1.0.0 (*)\n";
        let expected = [
            (id("a"), [id("b"), id("d")].into()),
            (id("b"), [id("c")].into()),
            (id("c"), [].into()),
            (id("d"), [id("c")].into()),
        ];
        assert_eq!(parse(text).unwrap(), Tree::from(expected));
    }

    #[test]
    fn an_unknown_line_is_an_error() {
        for text in ["[build-dependencies]\n", "2\ta v1.0.0\n", "0\ta 1.0.0\n"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
