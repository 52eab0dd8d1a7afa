//! Reads the packages of the workspace and their dependencies from the output of `cargo metadata`.
//!
//! Also reads the checksums of the packages from `Cargo.lock`. The module does not filter the dependencies by
//! features or targets.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::process;

/// Name and version, which identify a package, because `Cargo.lock` uses only one registry.
pub(super) type Id = (String, String);

/// The part of the `cargo metadata` output that a release uses.
#[derive(Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    pub(super) target_directory: PathBuf,
}

/// A member of the workspace, or a third-party package.
#[derive(Clone, Default, Deserialize)]
pub(super) struct Package {
    /// Package id from `cargo metadata`, which includes the source, for example a registry.
    #[serde(rename = "id")]
    pub(super) key: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: Option<String>,
    pub(super) license: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) readme: Option<PathBuf>,
    pub(super) keywords: Vec<String>,
    pub(super) categories: Vec<String>,
    pub(super) features: BTreeMap<String, Value>,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) targets: Vec<Target>,
    pub(super) manifest_path: PathBuf,
    /// Content of the manifest's table `[package.metadata]`.
    #[serde(default)]
    pub(super) metadata: Value,
    /// Registries that the package may be published to; `None` for all.
    pub(super) publish: Option<Vec<String>>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    /// Version requirement, for example `^0.1.0`.
    pub(super) req: String,
    /// Kind of the dependency: `None` for a normal dependency, otherwise `dev` or `build`.
    pub(super) kind: Option<String>,
    /// Folder of a path dependency.
    pub(super) path: Option<PathBuf>,
}

#[derive(Clone, Deserialize)]
pub(super) struct Target {
    pub(super) kind: Vec<String>,
}

impl Package {
    /// Returns the folder that contains the `Cargo.toml` of the package.
    pub(super) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    pub(super) fn id(&self) -> Id {
        (self.name.clone(), self.version.clone())
    }
}

impl Metadata {
    /// Runs `cargo metadata` for the workspace in `root`, and returns the parsed output.
    ///
    /// # Errors
    ///
    /// Returns an error if Cargo fails, or if the output has an unknown format.
    pub(super) fn read(root: &Path) -> Result<Metadata> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root);
        let json = process::output(cargo.args(["metadata", "--locked", "--format-version", "1"]))?;
        serde_json::from_str(&json).context("the output of cargo metadata has an unknown form")
    }

    /// Returns the workspace packages that `cargo publish --workspace` uploads.
    pub(super) fn published(&self) -> impl Iterator<Item = &Package> {
        let members = &self.workspace_members;
        let packages = self.packages.iter();
        packages.filter(|package| package.publish.is_none() && members.contains(&package.key))
    }

    /// Returns all packages, including third-party packages, by name and version.
    pub(super) fn by_id(&self) -> BTreeMap<Id, &Package> {
        let packages = self.packages.iter();
        packages.map(|package| (package.id(), package)).collect()
    }

    /// Returns the version that all published packages share.
    ///
    /// # Errors
    ///
    /// Returns an error if the versions differ, or no package is published.
    pub(super) fn version(&self) -> Result<String> {
        let mut versions: Vec<_> = self.published().map(|it| &it.version).collect();
        versions.dedup();
        ensure!(
            versions.len() == 1,
            "the published crates don't have one version ({versions:?}); each needs `version.workspace = true`"
        );
        Ok(versions[0].clone())
    }
}

/// Returns the SHA-256 checksum of each registry package in `lock`, the text of `Cargo.lock`.
pub(super) fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let entries = lock.split("[[package]]").skip(1);
    let checksums = entries.filter_map(|entry| {
        let id = (value(entry, "name")?, value(entry, "version")?);
        Some((id, value(entry, "checksum")?))
    });
    checksums.collect()
}

/// Returns the value of the first line `key = "value"` in an entry of `Cargo.lock`.
fn value(entry: &str, key: &str) -> Option<String> {
    entry.lines().find_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        (name == key).then(|| value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_registry_have_a_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"0a\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        let id = ("a".to_owned(), "1.0.0".to_owned());
        assert_eq!(checksums(lock), BTreeMap::from([(id, "0a".to_owned())]));
    }
}
