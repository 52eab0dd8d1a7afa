//! Builds kube-apiserver and etcd with Go, once per version. The versions are those in the `go.mod` files of
//! this package.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// The paths and versions of the built executables of kube-apiserver and etcd.
#[derive(Clone, Debug)]
pub struct Binaries {
    pub(crate) api_server: PathBuf,
    pub(crate) etcd: PathBuf,
    versions: [(&'static str, String); 2],
}

impl Binaries {
    /// Builds kube-apiserver and etcd in the folder `realserver` below `target`, Cargo's target folder. Does
    /// not build an executable that already exists there.
    ///
    /// The first build of kube-apiserver takes about 7 minutes on 2 cores. Later calls return immediately.
    ///
    /// # Errors
    /// Returns an error if Go is missing or older than the modules require, or if a module can't be
    /// downloaded.
    pub fn build(target: &Path) -> Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = target.join("realserver");
        let (api_server, version) = built(
            &sources.join("kube-apiserver"),
            "k8s.io/kubernetes",
            &folder,
        )?;
        let (etcd, etcd_version) =
            built(&sources.join("etcd"), "go.etcd.io/etcd/server/v3", &folder)?;
        Ok(Self {
            api_server,
            etcd,
            versions: [("kube-apiserver", version), ("etcd", etcd_version)],
        })
    }

    /// Returns the name and the version of kube-apiserver and of etcd. A version has the form `v1.36.3`.
    pub fn versions(&self) -> &[(&'static str, String); 2] {
        &self.versions
    }
}

/// Returns the path and the version of the executable that is built from the folder `source`.
///
/// The file `go.mod` in `source` requires `module`, and sets the version. Builds the executable if `target`
/// does not contain this version of it.
fn built(source: &Path, module: &str, target: &Path) -> Result<(PathBuf, String)> {
    let path = source.join("go.mod");
    let text = fs::read_to_string(&path);
    let text = text.with_context(|| format!("can't read {}", path.display()))?;
    let version = required(&text, module)
        .with_context(|| format!("{} does not require {module}", path.display()))?;
    let name = source.file_name().context("the source has a name")?;
    let folder = target.join(name).join(&version);
    let binary = folder.join(name);
    if binary.exists() {
        return Ok((binary, version));
    }
    fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
    eprintln!("building {} {version}", name.display());
    // An interrupted build must not leave a file under the final name.
    let unfinished = binary.with_extension(std::process::id().to_string());
    let mut go = Command::new("go");
    go.current_dir(source)
        .args(["build", "-ldflags", &linker_flags(&version), "-o"])
        .arg(&unfinished)
        .arg(".");
    let status = go.status().context("go can't be run; it is needed")?;
    ensure!(status.success(), "{go:?} failed: {status}");
    fs::rename(&unfinished, &binary)
        .with_context(|| format!("can't rename {}", unfinished.display()))?;
    Ok((binary, version))
}

/// Returns the linker flags that set the version variables of kube-apiserver.
///
/// Without the flags, kube-apiserver emulates version 0.0 and does not start. etcd ignores the flags.
fn linker_flags(version: &str) -> String {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    [
        ("gitVersion", version),
        ("gitMajor", major),
        ("gitMinor", minor),
    ]
    .map(|(name, value)| format!("-X k8s.io/component-base/version.{name}={value}"))
    .join(" ")
}

/// Returns the version of `module` that the `go.mod` file `text` requires.
fn required(text: &str, module: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let line = line.trim_start();
        let mut words = line
            .strip_prefix("require ")
            .unwrap_or(line)
            .split_whitespace();
        (words.next()? == module).then(|| words.next().map(str::to_owned))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_that_the_module_requires() {
        let one = "module x\n\nrequire k8s.io/kubernetes v1.36.3\n\nreplace (\n\tk8s.io/api => k8s.io/api v0.36.3\n)\n";
        assert_eq!(
            required(one, "k8s.io/kubernetes").as_deref(),
            Some("v1.36.3")
        );
        let several = "require (\n\tgo.etcd.io/etcd/api/v3 v3.6.1 // indirect\n\tgo.etcd.io/etcd/server/v3 v3.6.16\n)\n";
        let found = required(several, "go.etcd.io/etcd/server/v3");
        assert_eq!(found.as_deref(), Some("v3.6.16"));
        assert_eq!(required(one, "k8s.io/kubectl"), None);
    }

    #[test]
    fn the_server_is_linked_with_its_version() {
        assert_eq!(
            linker_flags("v1.36.3"),
            "-X k8s.io/component-base/version.gitVersion=v1.36.3 \
             -X k8s.io/component-base/version.gitMajor=1 \
             -X k8s.io/component-base/version.gitMinor=36"
        );
    }
}
