//! Implements `cargo xtask release`: writes all files of a release to a folder in Cargo's target directory.
//!
//! The command uploads nothing and creates no tag. Its output ends with the commands with which the
//! maintainer tags the commit and publishes the crates.

mod process;
mod changelog;
mod packages;
mod manifests;
mod dependencies;
mod sbom;
mod licences;
mod archive;
mod commit;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::api;
use crate::mode::Mode;
use changelog::Section;
use commit::Commit;
use packages::{Metadata, Package};

/// Name of the executable in the release archive, built from the Cargo package [`PACKAGE`].
const PROGRAM: &str = "kubectl-informer";
const PACKAGE: &str = "kube-informer-cli";

/// Maximum size in bytes of [`PROGRAM`], also stated in CONTRIBUTING.md.
const PROGRAM_BYTES_MAX: u64 = 20_000_000;

/// Name of the file with the version's entries of `CHANGELOG.md`.
const NOTES: &str = "release-notes.md";

/// Environment variable for the Kubernetes version of `k8s-openapi`, and its value.
///
/// `cargo publish` needs it, because no library crate selects a version.
const KUBERNETES: (&str, &str) = ("K8S_OPENAPI_ENABLED_VERSION", "1.36");

/// Checks a release, and with [`Mode::Write`] also writes its files; returns the text to print.
///
/// # Errors
///
/// Returns an error if a check fails, or if a file can't be written.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<String> {
    let metadata = Metadata::read(root)?;
    let version = metadata.version()?;
    let section = changelog::read(root, &version)?;
    check_manifests(&metadata)?;
    match mode {
        Mode::Check => {
            step("cargo publish, without its builds");
            publish(root, &["--no-verify", "--allow-dirty"])?;
            let names: Vec<_> = metadata.published().map(|it| it.name.as_str()).collect();
            Ok(format!(
                "ready for `cargo xtask release` of {version}: {}\nnot checked: the public API, and builds\n{}",
                names.join(", "),
                heading(&section, &version)
            ))
        }
        Mode::Write => {
            let release = Release::new(root, &metadata, version)?;
            release.make(&section)?;
            release.report(&section)
        }
    }
}

/// The data of a release, and the folder for its files.
struct Release<'a> {
    root: &'a Path,
    metadata: &'a Metadata,
    version: String,
    commit: Commit,
    /// Target triple for which the executable is built: the host triple of this machine.
    target: String,
    /// Folder that receives all files of the release.
    output: PathBuf,
}

impl<'a> Release<'a> {
    /// Determines the release's commit and target, and creates an empty output folder.
    ///
    /// # Errors
    ///
    /// Returns an error if [`Commit::read`], `rustc` or the creation of the folder fails, or if the system is
    /// not Linux.
    fn new(root: &'a Path, metadata: &'a Metadata, version: String) -> Result<Release<'a>> {
        let commit = Commit::read(root, &version)?;
        let target = host(&process::output(Command::new("rustc").arg("-vV"))?)?;
        let output = metadata.target_directory.join(format!("release-{version}"));
        if output.exists() {
            fs::remove_dir_all(&output)
                .with_context(|| format!("can't remove {}", output.display()))?;
        }
        fs::create_dir_all(&output)
            .with_context(|| format!("can't create {}", output.display()))?;
        Ok(Release {
            root,
            metadata,
            version,
            commit,
            target,
            output,
        })
    }

    /// Checks the public API, runs `cargo publish --dry-run`, and writes the release's files.
    fn make(&self, section: &Section) -> Result<()> {
        step("the public API");
        api::run(self.root, Mode::Check)?;
        step("cargo publish, as a dry run");
        publish(self.root, &[])?;
        step("the packages");
        self.package()?;
        step("the program");
        let program = self.build()?;
        step("the archive");
        self.archive(&program)?;
        write(&self.output.join(NOTES), &section.notes)?;
        self.checksums()
    }

    /// Packages the published crates, and copies the `.crate` files to the output folder.
    fn package(&self) -> Result<()> {
        let mut cargo = cargo(self.root);
        // The dry run of `cargo publish` has already compiled the crates.
        cargo.args(["package", "--quiet", "--locked", "--no-verify"]);
        for package in self.metadata.published() {
            cargo.args(["--package", &package.name]);
        }
        process::run(&mut cargo, "correct the manifest")?;
        for package in self.metadata.published() {
            let file = format!("{}-{}.crate", package.name, package.version);
            let from = self.metadata.target_directory.join("package").join(&file);
            fs::copy(&from, self.output.join(&file))
                .with_context(|| format!("can't copy {}", from.display()))?;
        }
        Ok(())
    }

    /// Builds [`PROGRAM`] with the Cargo profile `dist`, and returns its path.
    ///
    /// # Errors
    ///
    /// Returns an error if the build fails, or if the executable is too large or prints another version.
    fn build(&self) -> Result<PathBuf> {
        let mut cargo = cargo(self.root);
        cargo.args(["build", "--locked", "--profile", "dist"]);
        cargo.args(["--package", PACKAGE]);
        // `CARGO_BUILD_TARGET` would change the folder that Cargo writes the program to.
        cargo.env_remove("CARGO_BUILD_TARGET");
        process::run(&mut cargo, "correct the code, or free 3 GB of memory")?;
        let program = self.metadata.target_directory.join("dist").join(PROGRAM);
        let bytes = size(&program)?;
        ensure!(
            bytes <= PROGRAM_BYTES_MAX,
            "{PROGRAM} has {}, more than {}; reduce it, or raise the limit in xtask/src/release.rs and CONTRIBUTING.md",
            shown(bytes),
            shown(PROGRAM_BYTES_MAX)
        );
        let reported = process::output(Command::new(&program).arg("--version"))?;
        let expected = format!("{PROGRAM} {}", self.version);
        ensure!(
            reported.trim() == expected,
            "{PROGRAM} --version reports {reported:?} instead of {expected:?}; remove {} and try again",
            program.display()
        );
        Ok(program)
    }

    /// Writes the software bill of materials (SBOM), and the archive that contains the executable `program`.
    fn archive(&self, program: &Path) -> Result<()> {
        let (sbom, licences) = self.materials()?;
        let folder = self.root.join("crates/cli");
        let entries = archive::entries(program, &folder, &licences, &sbom);
        let name = archive::name(PROGRAM, &self.version, &self.target);
        archive::write(&self.output, &name, &entries, &self.commit.seconds)?;
        // The archive contains the licence texts, so the separate file is not part of the release.
        fs::remove_file(&licences).with_context(|| format!("can't remove {}", licences.display()))
    }

    /// Writes the SBOM of [`PROGRAM`] and the licence texts of the third-party packages that the program
    /// contains.
    ///
    /// Returns the paths of both files.
    fn materials(&self) -> Result<(PathBuf, PathBuf)> {
        let lock =
            fs::read_to_string(self.root.join("Cargo.lock")).context("can't read Cargo.lock")?;
        let packages = self.metadata.by_id();
        let package = self.metadata.published().find(|it| it.name == PACKAGE);
        let package = package.with_context(|| format!("the workspace has no package {PACKAGE}"))?;
        let resolved = dependencies::resolve(self.root, PACKAGE, &self.target)?;
        let subject = sbom::Subject {
            program: PROGRAM,
            package,
            target: &self.target,
            time: &self.commit.time,
        };
        let document = sbom::document(&subject, &resolved, &packages, &packages::checksums(&lock))?;
        let sbom = self.output.join(format!("{PROGRAM}.cdx.json"));
        write(&sbom, &format!("{document:#}\n"))?;
        let own: Vec<_> = self.metadata.published().map(Package::id).collect();
        let foreign = resolved.linked.keys().filter(|id| !own.contains(id));
        let foreign: Vec<_> = foreign.filter_map(|id| packages.get(id).copied()).collect();
        let licences = self.output.join("THIRD-PARTY-LICENSES.txt");
        write(&licences, &licences::text(PROGRAM, &foreign)?)?;
        Ok((sbom, licences))
    }

    /// Writes `SHA256SUMS` for all files in the output folder except the release notes.
    fn checksums(&self) -> Result<()> {
        let mut names = names(&self.output)?;
        names.retain(|name| name != NOTES);
        let mut sums = Command::new("sha256sum");
        let sums = process::output(sums.current_dir(&self.output).args(names))?;
        write(&self.output.join("SHA256SUMS"), &sums)
    }

    /// Returns a list of the files with sizes, and the maintainer's next steps.
    fn report(&self, section: &Section) -> Result<String> {
        let (version, commit, output) = (&self.version, &self.commit.id, self.output.display());
        let mut report = format!("{output}, from commit {commit}:\n");
        for name in names(&self.output)? {
            let bytes = size(&self.output.join(&name))?;
            writeln!(report, "  {:>9}  {name}", shown(bytes))?;
        }
        report.push_str(&next(section, version, commit));
        Ok(report)
    }
}

/// Returns the maintainer's next steps: create the changelog section or, if it exists, publish the release.
fn next(section: &Section, version: &str, commit: &str) -> String {
    if !section.is_dated {
        return heading(section, version);
    }
    let tag = commit::tag(version);
    let (variable, kubernetes) = KUBERNETES;
    format!(
        "next:\n  1. read release-notes.md\n  2. git tag --annotate {tag} --message {tag} {commit}\n     git push origin {tag}\n  3. {variable}={kubernetes} cargo publish --workspace\n  4. create the release page of {tag}: the text of release-notes.md, with the archive, the SBOM and SHA256SUMS"
    )
}

/// Returns a line that says that `CHANGELOG.md` has a section for the version, or how to create the section.
fn heading(section: &Section, version: &str) -> String {
    if section.is_dated {
        format!("CHANGELOG.md has a section for {version}")
    } else {
        format!(
            "next: rename `## Unreleased` of CHANGELOG.md to `## {version} - DATE`, commit, and run `cargo xtask release` again"
        )
    }
}

/// Checks the manifests of all published packages for the requirements of crates.io and docs.rs.
///
/// # Errors
///
/// Returns an error that lists the problems of all manifests.
fn check_manifests(metadata: &Metadata) -> Result<()> {
    let findings: Vec<_> = metadata.published().flat_map(manifests::findings).collect();
    ensure!(findings.is_empty(), "{}", findings.join("\n"));
    Ok(())
}

/// Runs `cargo publish --dry-run` for the workspace with additional `options`; uploads nothing.
fn publish(root: &Path, options: &[&str]) -> Result<()> {
    let mut cargo = cargo(root);
    cargo.env(KUBERNETES.0, KUBERNETES.1);
    cargo.args(["publish", "--workspace", "--dry-run", "--locked"]);
    process::run(
        cargo.args(options),
        "correct the crate that it names; Rust 1.90 or newer is needed",
    )
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root);
    cargo
}

/// Returns the host triple from the output of `rustc -vV`.
///
/// # Errors
///
/// Returns an error if the output has no host triple, or if the host is not Linux.
fn host(rustc: &str) -> Result<String> {
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("`rustc -vV` names no host")?;
    ensure!(
        host.contains("-linux-"),
        "the archive is for Linux, and this machine is {host}; run the command on Linux"
    );
    Ok(host.to_owned())
}

/// Returns the sorted names of the files in `folder`.
fn names(folder: &Path) -> Result<Vec<String>> {
    let failed = || format!("can't list {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(failed)? {
        let name = entry.with_context(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("can't write {}", file.display()))
}

fn size(file: &Path) -> Result<u64> {
    let found = fs::metadata(file).with_context(|| format!("can't read {}", file.display()))?;
    Ok(found.len())
}

/// Formats a size in bytes with a decimal unit: B, kB or MB.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

/// Prints the name of the next step to standard error.
fn step(what: &str) {
    eprintln!("== {what}");
}

#[cfg(test)]
mod tests;
