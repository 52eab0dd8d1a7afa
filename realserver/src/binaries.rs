//! Builds kube-apiserver, etcd and kube-controller-manager with Go, once per version.
//!
//! Guarantees: the versions are those in this package's `go.mod` files. Exceptions are a version that a
//! caller selects, and the executables in the folder that the environment variable [`ASSETS`] names.
//! kube-controller-manager has the version of kube-apiserver, and is built when it is needed first.

use std::{
    fs,
    path::{Path, PathBuf, absolute},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

/// Environment variable with the path of a folder that contains `kube-apiserver` and `etcd`, as
/// `setup-envtest` of controller-runtime installs them.
const ASSETS: &str = "KUBEBUILDER_ASSETS";

const KUBERNETES: &str = "k8s.io/kubernetes";

/// The paths and versions of the executables of kube-apiserver and etcd.
#[derive(Clone, Debug)]
pub struct Binaries {
    pub(crate) api_server: PathBuf,
    pub(crate) etcd: PathBuf,
    versions: [(&'static str, String); 2],
    origin: Origin,
}

/// Where executables come from.
#[derive(Clone, Debug)]
enum Origin {
    /// The folder that [`ASSETS`] names.
    Installed(PathBuf),
    /// The executables are built with Go. The field `version` does not apply to etcd, which has the version
    /// in this package's `go.mod` files.
    Built {
        /// Folder of all executables, by name and version.
        folder: PathBuf,
        /// Version of Kubernetes, such as `v1.32.9`. `None` selects the version in the `go.mod` files.
        version: Option<String>,
    },
}

impl Binaries {
    /// Returns the executables in the folder that `KUBEBUILDER_ASSETS` names.
    ///
    /// If the variable is not set, builds kube-apiserver and etcd in the folder `realserver` below `target`,
    /// Cargo's target folder. Does not build an executable that already exists there.
    ///
    /// The first build of kube-apiserver takes about 8 minutes on 2 cores. Later calls return immediately.
    ///
    /// # Errors
    /// Returns an error if the named folder does not contain the executables, if Go is missing or older than
    /// the modules require, or if a module can't be downloaded.
    pub fn get(target: &Path) -> Result<Self> {
        // The servers run in another folder, so a relative path would not be found.
        match std::env::var_os(ASSETS) {
            Some(folder) => Self::installed(&absolute(Path::new(&folder))?),
            None => Self::built(&absolute(target)?, None),
        }
    }

    /// Builds etcd, and builds kube-apiserver in the version `version`, for example `1.32.9`.
    ///
    /// Does not build an executable that already exists below `target`.
    ///
    /// # Errors
    /// Returns an error if the version does not exist or can't be built with the installed Go.
    pub fn of_version(target: &Path, version: &str) -> Result<Self> {
        let version = format!("v{}", version.trim_start_matches('v'));
        Self::built(&absolute(target)?, Some(version))
    }

    fn installed(folder: &Path) -> Result<Self> {
        let find = |name: &'static str| -> Result<(PathBuf, String)> {
            let path = folder.join(name);
            let output = Command::new(&path).arg("--version").output();
            let output = output.with_context(|| format!("{ASSETS}: {}", path.display()))?;
            let text = String::from_utf8_lossy(&output.stdout);
            let version = printed_version(&text)
                .with_context(|| format!("{} prints no version", path.display()))?;
            Ok((path, version))
        };
        let (api_server, version) = find("kube-apiserver")?;
        let (etcd, etcd_version) = find("etcd")?;
        Ok(Self {
            api_server,
            etcd,
            versions: [("kube-apiserver", version), ("etcd", etcd_version)],
            origin: Origin::Installed(folder.to_owned()),
        })
    }

    /// Builds kube-apiserver and etcd. If `version` is `None`, uses the version of kube-apiserver in
    /// `go.mod`.
    fn built(target: &Path, version: Option<String>) -> Result<Self> {
        let folder = target.join("realserver");
        let source = kubernetes("kube-apiserver", &folder, version.as_deref())?;
        let (api_server, api_server_version) = built(&source, KUBERNETES, &folder)?;
        let (etcd, etcd_version) = built(
            &sources().join("etcd"),
            "go.etcd.io/etcd/server/v3",
            &folder,
        )?;
        Ok(Self {
            api_server,
            etcd,
            versions: [
                ("kube-apiserver", api_server_version),
                ("etcd", etcd_version),
            ],
            origin: Origin::Built { folder, version },
        })
    }

    /// Builds kube-controller-manager, so that the first call of
    /// [`ControlPlane::start_controllers`](crate::ControlPlane::start_controllers) does not have to build it.
    ///
    /// # Errors
    /// Returns an error if the build fails, or if `KUBEBUILDER_ASSETS` names a folder that does not contain
    /// kube-controller-manager.
    pub fn prepare_controllers(&self) -> Result<()> {
        self.controller_manager().map(drop)
    }

    /// Returns kube-controller-manager in the version of kube-apiserver. Builds it if it does not exist. The
    /// build takes about 3 minutes on 2 cores.
    ///
    /// # Errors
    /// Returns an error if the build fails, or if the variable [`ASSETS`] names a folder without
    /// kube-controller-manager.
    pub(crate) fn controller_manager(&self) -> Result<PathBuf> {
        const NAME: &str = "kube-controller-manager";
        match &self.origin {
            Origin::Installed(folder) => {
                let path = folder.join(NAME);
                ensure!(path.exists(), "{ASSETS}: {} is missing", path.display());
                Ok(path)
            }
            Origin::Built { folder, version } => {
                let source = kubernetes(NAME, folder, version.as_deref())?;
                Ok(built(&source, KUBERNETES, folder)?.0)
            }
        }
    }

    /// Builds the program that saves and restores snapshots of etcd, so that the first call of
    /// [`ControlPlane::save_snapshot`](crate::ControlPlane::save_snapshot) does not have to build it.
    ///
    /// # Errors
    /// Returns an error if the build fails, or if `KUBEBUILDER_ASSETS` is set, because the folder that this
    /// variable names does not contain the program.
    pub fn prepare_snapshots(&self) -> Result<()> {
        self.snapshots().map(drop)
    }

    /// Returns the program that saves and restores snapshots of etcd. Builds it if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the build fails. Also returns an error if [`ASSETS`] is set, because the named
    /// folder does not contain the program.
    pub(crate) fn snapshots(&self) -> Result<PathBuf> {
        let Origin::Built { folder, .. } = &self.origin else {
            bail!("unset {ASSETS}: snapshots of etcd need a build with Go");
        };
        let source = sources().join("etcd-snapshot");
        Ok(built(&source, "go.etcd.io/etcd/etcdutl/v3", folder)?.0)
    }

    /// Returns the name and the version of kube-apiserver and of etcd. A version has the form `v1.36.3`.
    pub fn versions(&self) -> &[(&'static str, String); 2] {
        &self.versions
    }
}

/// Returns the folder of this package, which contains the Go modules.
fn sources() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder with the Go module of the Kubernetes program `name`.
///
/// Without a `version`, this is a folder of this package. With a `version`, this is a folder below `folder`,
/// and the function writes the module if it does not exist.
fn kubernetes(name: &str, folder: &Path, version: Option<&str>) -> Result<PathBuf> {
    let Some(version) = version else {
        return Ok(sources().join(name));
    };
    let source = folder.join("modules").join(version).join(name);
    write_module(&source, name, version)?;
    Ok(source)
}

/// Writes a Go module that builds the program `name` in the version `version` to the folder `source`.
///
/// Does nothing if the folder already contains a `go.mod`.
fn write_module(source: &Path, name: &str, version: &str) -> Result<()> {
    let path = source.join("go.mod");
    if path.exists() {
        return Ok(());
    }
    let module = format!("{KUBERNETES}@{version}");
    let mut go = Command::new("go");
    let output = go.args(["mod", "download", "-json", &module]).output();
    let output = output.context("go can't be run; it is needed")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let of_kubernetes = json_string(&text, "GoMod");
    let of_kubernetes =
        of_kubernetes.with_context(|| format!("can't download {module}: {text}"))?;
    let of_kubernetes = fs::read_to_string(&of_kubernetes).context(of_kubernetes)?;
    let text = module_text(&of_kubernetes, name, version)?;
    // An interrupted download must not leave a module without its sums.
    let unfinished = source.with_extension("unfinished");
    for folder in [&unfinished, source] {
        let removed = fs::remove_dir_all(folder);
        let is_left = removed.is_err() && folder.exists();
        ensure!(!is_left, "can't remove {}", folder.display());
    }
    fs::create_dir_all(&unfinished)
        .with_context(|| format!("can't make {}", unfinished.display()))?;
    let main = sources().join(name).join("main.go");
    fs::copy(main, unfinished.join("main.go")).context("can't copy main.go")?;
    fs::write(unfinished.join("go.mod"), text).context("can't write go.mod")?;
    let mut go = Command::new("go");
    let status = go.current_dir(&unfinished).args(["mod", "tidy"]).status();
    let status = status.context("go can't be run; it is needed")?;
    ensure!(status.success(), "{go:?} failed: {status}");
    fs::rename(&unfinished, source).with_context(|| format!("can't make {}", source.display()))
}

/// Returns the text of a `go.mod` that builds the program `name` in the version `version`.
///
/// `of_kubernetes` is the `go.mod` of Kubernetes, which replaces some modules by folders. The result replaces
/// these modules by published versions, for example by `v0.32.9` for the `version` `v1.32.9`.
fn module_text(of_kubernetes: &str, name: &str, version: &str) -> Result<String> {
    let staging = version.replacen("v1.", "v0.", 1);
    ensure!(staging != version, "{version} is no version of Kubernetes");
    let replaced = of_kubernetes.lines().filter_map(|line| {
        let (module, folder) = line.split_once(" => ")?;
        let module = module.split_whitespace().next_back()?;
        folder
            .starts_with("./staging/")
            .then(|| format!("\t{module} => {module} {staging}\n"))
    });
    let replaced: String = replaced.collect();
    ensure!(!replaced.is_empty(), "{version} replaces no module");
    Ok(format!(
        "module {name}\n\ngo 1.26.0\n\nrequire {KUBERNETES} {version}\n\nreplace (\n{replaced})\n"
    ))
}

/// Returns the string member `name` of a JSON object whose members are on separate lines.
fn json_string(text: &str, name: &str) -> Option<String> {
    let start = format!("\"{name}\": \"");
    let (_, rest) = text.split_once(&start)?;
    rest.split_once('"').map(|(value, _)| value.to_owned())
}

/// Returns the version in the output of `kube-apiserver --version` or `etcd --version`, with a leading `v`.
fn printed_version(text: &str) -> Option<String> {
    let words = text.lines().next()?.split_whitespace();
    let version = words.last()?.trim_start_matches('v');
    version
        .starts_with(|letter: char| letter.is_ascii_digit())
        .then(|| format!("v{version}"))
}

/// Returns the path and the version of the executable that is built from the folder `source`.
///
/// The version is that of `module` in the folder's `go.mod`. Builds the executable if `target` lacks this
/// version.
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

/// Returns the linker flags that set the version variables of a program of Kubernetes.
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
    fn the_module_of_another_version_replaces_the_modules_of_kubernetes() {
        let of_kubernetes = "module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tx => y v1\n)\nreplace k8s.io/cri-api => ./staging/src/k8s.io/cri-api\n";
        let text = module_text(of_kubernetes, "kube-apiserver", "v1.32.9").unwrap();
        let replaced = "replace (\n\tk8s.io/api => k8s.io/api v0.32.9\n\tk8s.io/cri-api => k8s.io/cri-api v0.32.9\n)\n";
        assert!(text.ends_with(replaced), "{text}");
        assert!(
            text.contains("\nrequire k8s.io/kubernetes v1.32.9\n"),
            "{text}"
        );
        assert!(module_text(of_kubernetes, "kube-apiserver", "v2.0.0").is_err());
    }

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        assert_eq!(
            printed_version("Kubernetes v1.36.3\n").as_deref(),
            Some("v1.36.3")
        );
        let etcd = "etcd Version: 3.6.16\nGit SHA: x\n";
        assert_eq!(printed_version(etcd).as_deref(), Some("v3.6.16"));
        assert_eq!(printed_version("no such flag"), None);
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
