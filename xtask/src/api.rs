//! `cargo xtask api`: lists the public API of each published library in a file `api.txt`.
//!
//! The file is next to the library's manifest, and covers all features. It contains one line per item. These
//! items are omitted:
//!
//! - items that are hidden from the documentation;
//! - auto traits and blanket implementations;
//! - functions in implementations of traits.
//!
//! If an item is exported at several paths, its members are listed at one path only. This module does not
//! check whether a change of the API is compatible.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, ensure};
use public_api::PublicApi;
use serde::Deserialize;

use crate::mode::Mode;

/// Name of the file that lists a library's API, next to the library's manifest.
const FILE: &str = "api.txt";

/// Environment variable with the path of the real rustdoc.
///
/// It is set only if Cargo has started this program instead of rustdoc.
const RUSTDOC: &str = "XTASK_RUSTDOC";

/// Output of `cargo metadata`, with only the fields that this module uses.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    /// Registries to which the package may be published; `None` allows all registries.
    publish: Option<Vec<String>>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    name: String,
}

/// Writes or checks the API file of each published library, and returns the report to print.
///
/// # Errors
///
/// Returns an error if an API can't be determined, if an API file can't be read or written, or if
/// [`Mode::Check`] finds a difference.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<String> {
    let metadata = metadata(root)?;
    document(root)?;
    let (mut done, mut differences) = (Vec::new(), String::new());
    for (package, library) in published(&metadata) {
        let documented = metadata.target_directory.join("doc");
        let api = read(&documented.join(format!("{library}.json")))?;
        let present = lines(&api);
        let file = package.manifest_path.with_file_name(FILE);
        let shown = file.strip_prefix(root).unwrap_or(&file).display();
        done.push(format!("{shown}: {} lines", present.lines().count()));
        match mode {
            Mode::Write => {
                std::fs::write(&file, &present).with_context(|| format!("can't write {shown}"))?;
            }
            Mode::Check => {
                let kept = std::fs::read_to_string(&file)
                    .with_context(|| format!("can't read {shown}; run `cargo xtask api`"))?;
                let difference = difference(&kept, &present);
                if !difference.is_empty() {
                    let name = &package.name;
                    write!(
                        differences,
                        "the API of {name} differs from {shown}:\n{difference}"
                    )?;
                }
            }
        }
    }
    ensure!(
        differences.is_empty(),
        "{differences}if the change is intended, run `cargo xtask api`, commit the files, and add a line to CHANGELOG.md"
    );
    Ok(done.join("\n"))
}

/// Runs the real rustdoc if Cargo has started this program in place of rustdoc. Otherwise, returns `None`.
///
/// The real rustdoc gets the environment variable `RUSTC_BOOTSTRAP`, which JSON output requires. [`document`]
/// can't set the variable for Cargo, because Cargo would then rebuild crates.
pub(crate) fn as_rustdoc() -> Option<Result<ExitCode>> {
    let rustdoc = env::var_os(RUSTDOC)?;
    let mut command = Command::new(rustdoc);
    // Stable rustdoc writes no JSON without `RUSTC_BOOTSTRAP`. Set for Cargo, it would cause rebuilds.
    command
        .args(env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1");
    let status = command.status().context("rustdoc can't be run");
    Some(status.map(|status| {
        if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }))
}

fn metadata(root: &Path) -> Result<Metadata> {
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cargo can't be run")?;
    ensure!(output.status.success(), "cargo metadata failed");
    serde_json::from_slice(&output.stdout).context("unknown format of the output of cargo metadata")
}

/// Returns each published package that contains a library, with the name of its library.
fn published(metadata: &Metadata) -> impl Iterator<Item = (&Package, &str)> {
    let packages = metadata.packages.iter();
    packages.filter_map(|package| {
        let is_library = |target: &&Target| target.kind.iter().any(|kind| kind == "lib");
        let library = package.targets.iter().find(is_library)?;
        package
            .publish
            .is_none()
            .then_some((package, &library.name[..]))
    })
}

/// Builds the documentation of all libraries in the workspace as JSON files.
///
/// Selects the same packages and features as the build of the HTML documentation, so that Cargo can reuse
/// the compiled dependencies.
fn document(root: &Path) -> Result<()> {
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args([
            "doc",
            "--quiet",
            "--workspace",
            "--lib",
            "--no-deps",
            "--all-features",
        ])
        .env(
            "RUSTDOC",
            env::current_exe().context("this program has no path")?,
        )
        .env(RUSTDOC, rustdoc)
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json --cap-lints allow",
        )
        .status()
        .context("cargo can't be run")?;
    ensure!(status.success(), "cargo doc failed");
    Ok(())
}

fn read(json: &Path) -> Result<PublicApi> {
    let api = public_api::Builder::from_rustdoc_json(json)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .build();
    api.with_context(|| {
        format!(
            "can't read {}; if rustdoc is newer than the crate `public-api` supports, update the crate in Cargo.toml",
            json.display()
        )
    })
}

/// Returns the contents of an API file: a line for each item, ordered by the items' paths.
fn lines(api: &PublicApi) -> String {
    let rendered: BTreeMap<_, _> = api
        .items()
        .map(|item| (item.id().0, item.to_string()))
        .collect();
    let is_parent = |item: &public_api::PublicItem, matches: fn(&str) -> bool| {
        let parent = item.parent_id().and_then(|id| rendered.get(&id.0));
        parent.is_some_and(|line| matches(line))
    };
    let mut listed = BTreeSet::new();
    let mut lines = String::new();
    for item in api.items() {
        let line = item.to_string();
        let is_first = listed.insert(item.id().0);
        let is_member = !is_parent(item, |line| line.starts_with("pub mod "));
        let of_trait = line.contains(" fn ") && is_parent(item, is_trait_impl);
        if (is_member && !is_first) || of_trait || line.contains("::StructuralPartialEq for ") {
            continue;
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

/// Returns whether a line of an API file starts a trait implementation.
fn is_trait_impl(line: &str) -> bool {
    line.starts_with("impl") && line.contains(" for ")
}

/// Returns the lines that are only in `kept`, marked with `-`, or only in `present`, marked with `+`.
fn difference(kept: &str, present: &str) -> String {
    let set = |text| str::lines(text).collect::<BTreeSet<_>>();
    let (kept, present) = (set(kept), set(present));
    let mut changed: Vec<_> = kept
        .difference(&present)
        .map(|line| (item(line), '-', line))
        .collect();
    changed.extend(
        present
            .difference(&kept)
            .map(|line| (item(line), '+', line)),
    );
    // The old line of an item is before its new line.
    changed.sort_by_key(|&(item, sign, _)| (item, sign == '+'));
    let lines = changed
        .iter()
        .map(|(_, sign, line)| format!("  {sign} {line}\n"));
    lines.collect()
}

/// Returns the sort key of a line in an API file: the path of the item, or the whole line for an `impl`.
fn item(line: &str) -> &str {
    if line.starts_with("impl") {
        return line;
    }
    let word = line.split(' ').find(|word| word.contains("::"));
    let word = word.unwrap_or(line);
    word.split('(').next().unwrap_or(word).trim_end_matches(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_has_the_old_line_of_an_item_before_the_new_one() {
        let kept = "pub mod a\npub fn a::f(u8)\npub fn a::h()\npub struct a::B\n";
        let present = "pub mod a\npub fn a::f(u16) -> u8\npub fn a::g()\npub struct a::B\n";
        assert_eq!(
            difference(kept, present),
            "  - pub fn a::f(u8)\n  + pub fn a::f(u16) -> u8\n  + pub fn a::g()\n  - pub fn a::h()\n"
        );
        assert_eq!(difference(kept, kept), "");
    }

    #[test]
    fn every_published_library_has_its_file() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let metadata = metadata(root).unwrap();
        let libraries: Vec<_> = published(&metadata).collect();
        // The order is that of cargo, which depends on the dependencies among the packages.
        let names: BTreeSet<_> = libraries.iter().map(|(_, library)| *library).collect();
        assert_eq!(
            Vec::from_iter(names),
            [
                "kube_informer",
                "kube_informer_apiserver",
                "kube_informer_control_plane",
                "kube_informer_protobuf"
            ]
        );
        for (package, _) in libraries {
            assert!(package.manifest_path.with_file_name(FILE).is_file());
        }
    }
}
