//! Writes the release archive of `kubectl-informer`: one folder in a `.tar.gz` file.
//!
//! The same files and the same modification time produce the same bytes: the entries of the archive are
//! sorted, and their owner is always root. The module requires GNU tar and gzip.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::process;

/// A file that is copied into the archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Path of the file on disk.
    pub(super) source: PathBuf,
    /// File name inside the folder of the archive.
    pub(super) name: &'static str,
}

pub(super) fn entries(program: &Path, package: &Path, licences: &Path, sbom: &Path) -> [Entry; 5] {
    let entry = |source: PathBuf, name| Entry { source, name };
    [
        entry(program.to_owned(), "kubectl-informer"),
        entry(package.join("README.md"), "README.md"),
        entry(package.join("LICENSE"), "LICENSE"),
        entry(licences.to_owned(), "THIRD-PARTY-LICENSES.txt"),
        entry(sbom.to_owned(), "kubectl-informer.cdx.json"),
    ]
}

/// Returns the name of the archive without `.tar.gz`, which is also the name of its folder.
pub(super) fn name(program: &str, version: &str, target: &str) -> String {
    format!("{program}-{version}-{target}")
}

/// Writes `entries` to the archive `name.tar.gz` in `folder`, and returns the path of the archive.
///
/// `seconds` is the modification time of all files, in seconds since 1970.
///
/// # Errors
///
/// Returns an error if a file can't be copied or the archive can't be written correctly.
pub(super) fn write(
    folder: &Path,
    name: &str,
    entries: &[Entry],
    seconds: &str,
) -> Result<PathBuf> {
    let staged = folder.join(name);
    fs::create_dir_all(&staged).with_context(|| format!("can't create {}", staged.display()))?;
    for entry in entries {
        let (from, to) = (&entry.source, staged.join(entry.name));
        fs::copy(from, to).with_context(|| format!("can't copy {}", from.display()))?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.current_dir(folder)
        .args(["--create", "--format=ustar", "--sort=name"])
        .args(["--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mode=u+rw,go+r,go-w", &format!("--mtime=@{seconds}")])
        .args(["--use-compress-program", "gzip -9n", "--file"]);
    process::run(
        tar.arg(&archive).arg(name),
        "the archive needs GNU tar and gzip, and space on the disk",
    )?;
    fs::remove_dir_all(&staged).with_context(|| format!("can't remove {}", staged.display()))?;
    let listed = process::output(
        Command::new("tar")
            .arg("--list")
            .arg("--file")
            .arg(&archive),
    )?;
    let mut expected: Vec<_> = entries
        .iter()
        .map(|entry| format!("{name}/{}", entry.name))
        .collect();
    expected.push(format!("{name}/"));
    let mut present: Vec<_> = listed.lines().collect();
    present.sort_unstable();
    expected.sort_unstable();
    ensure!(
        present == expected,
        "{} has {present:?} instead of {expected:?}; remove it and try again",
        archive.display()
    );
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_the_program_its_readme_licences_and_sbom() {
        let entries = entries(
            Path::new("target/dist/kubectl-informer"),
            Path::new("crates/cli"),
            Path::new("target/licences"),
            Path::new("target/sbom"),
        );
        let names = entries.each_ref().map(|entry| entry.name);
        assert_eq!(
            names,
            [
                "kubectl-informer",
                "README.md",
                "LICENSE",
                "THIRD-PARTY-LICENSES.txt",
                "kubectl-informer.cdx.json"
            ]
        );
        assert_eq!(entries[1].source, Path::new("crates/cli/README.md"));
        assert_eq!(
            name("kubectl-informer", "0.1.0", "x86_64-unknown-linux-gnu"),
            "kubectl-informer-0.1.0-x86_64-unknown-linux-gnu"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_same_files_produce_the_same_archive() {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let name = format!("xtask-archive-{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        let entries = [("Cargo.toml", "b"), ("src/mode.rs", "a")].map(|(source, name)| Entry {
            source: manifest.join(source),
            name,
        });
        let written = || {
            let archive = write(&folder, "one", &entries, "1700000000").unwrap();
            fs::read(archive).unwrap()
        };
        let (first, second) = (written(), written());
        assert!(!folder.join("one").exists());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(first, second);
    }
}
