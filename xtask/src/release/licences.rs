//! Creates one text with the licences of the third-party packages that `kubectl-informer` contains.
//!
//! Licences such as MIT and BSD require that each copy of a program includes the licence text. The release
//! archive therefore contains this text. If several packages have equal licence texts, the result contains
//! the text once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::packages::Package;

/// Prefixes, in upper case, of the names of licence and copyright files.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// Note after the name of a package that contains no licence file.
const NO_TEXT: &str = "; its package has no text of a licence";

/// Returns a list of the packages with their licences, followed by the licence texts.
///
/// # Errors
///
/// Returns an error if a folder or a file of a package can't be read.
pub(super) fn text(program: &str, packages: &[&Package]) -> Result<String> {
    let mut files = Vec::new();
    for package in packages {
        for (name, text) in read(package.folder())? {
            files.push((
                format!("{} {}: {name}", package.name, package.version),
                text,
            ));
        }
    }
    Ok(render(program, packages, &files))
}

/// Returns the content of each licence file in a package's folder, by file name.
fn read(folder: &Path) -> Result<BTreeMap<String, String>> {
    let failed = || format!("can't read the licences in {}", folder.display());
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let capitals = name.to_uppercase();
        if entry.path().is_file() && NAMES.iter().any(|start| capitals.starts_with(start)) {
            let bytes = std::fs::read(entry.path()).with_context(failed)?;
            files.insert(name, String::from_utf8_lossy(&bytes).trim().to_owned());
        }
    }
    Ok(files)
}

/// Formats the list of `packages`, and appends the licence texts.
///
/// Each entry of `files` is a title and the text of a licence file.
fn render(program: &str, packages: &[&Package], files: &[(String, String)]) -> String {
    let mut titles: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (title, text) in files {
        titles.entry(text).or_default().push(title);
    }
    let mut texts: Vec<_> = titles
        .into_iter()
        .map(|(text, titles)| (titles, text))
        .collect();
    texts.sort();
    let mut all = format!(
        "{program} contains code of these packages, under these licences.\nThe text of Apache-2.0 is in the file LICENSE.\n\n"
    );
    for package in packages {
        let licence = package.license.as_deref().unwrap_or("see below");
        let source = package.repository.as_deref().unwrap_or("crates.io");
        let (name, version) = (&package.name, &package.version);
        let start = format!("{name} {version}: ");
        let has_text = files.iter().any(|(title, _)| title.starts_with(&start));
        let note = if has_text { "" } else { NO_TEXT };
        // Writing to a String can't fail.
        let _ = writeln!(all, "{start}{licence} ({source}){note}");
    }
    for (titles, text) in texts {
        let line = "-".repeat(78);
        let _ = write!(all, "\n{line}\n{}\n\n{text}\n", titles.join("\n"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_listed_once_with_their_files() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            ..Package::default()
        };
        let file = |title: &str, text: &str| (title.to_owned(), text.to_owned());
        let files = [
            file("a 1.0.0: LICENSE", "One."),
            file("b 1.0.0: LICENSE", "Two."),
            file("c 1.0.0: COPYING", "One."),
        ];
        let packages = ["a", "b", "c", "d"].map(package);
        let text = render("tool", &packages.each_ref(), &files);
        assert!(text.contains("a 1.0.0: MIT (crates.io)\nb 1.0.0: MIT (crates.io)\n"));
        assert!(text.contains("d 1.0.0: MIT (crates.io); its package has no text"));
        assert_eq!(text.matches("One.").count(), 1);
        assert!(text.contains("a 1.0.0: LICENSE\nc 1.0.0: COPYING\n\nOne.\n"));
        assert!(text.ends_with("b 1.0.0: LICENSE\n\nTwo.\n"));
    }

    #[test]
    fn licences_are_found_by_their_name() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let files = read(root).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["LICENSE"]);
        assert!(files["LICENSE"].contains("Apache License"));
    }
}
