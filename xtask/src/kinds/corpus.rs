//! Generates test data for the protobuf crate: one object of each kind, in protobuf and in JSON.
//!
//! The objects come from Kubernetes' compatibility tests, which are in the folder `testdata/HEAD` of the Go
//! modules that define the API types. These tests set every field of an object.
//!
//! The test data covers the kinds that the embedded server serves. [`WITHOUT`] and [`BESIDES`] list the exceptions.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use super::wire::Sources;

/// Possible folders of the test objects, relative to the folder of a Go module.
const FOLDERS: [&str; 2] = ["testdata/HEAD", "pkg/apis/testdata/HEAD"];

/// Kinds without test data, because Kubernetes has no test object for them.
const WITHOUT: [&str; 1] = ["apiregistration.k8s.io/v1/APIService"];

/// Additional kinds of the test data, which the embedded server does not serve.
const BESIDES: [&str; 1] = ["v1/DeleteOptions"];

/// Returns the test data, one line per kind: `apiVersion/Kind`, protobuf in hexadecimal, JSON.
///
/// `kinds` are the kinds of the embedded server.
pub(super) fn lines<'a>(
    sources: &Sources,
    kinds: impl Iterator<Item = &'a String>,
) -> Result<String> {
    let mut lines = String::new();
    for kind in kinds
        .map(String::as_str)
        .chain(BESIDES)
        .filter(|kind| !WITHOUT.contains(kind))
    {
        let (protobuf, json) = pair(sources, kind)?;
        write!(lines, "{kind}\t").expect("writing to a String does not fail");
        for byte in protobuf {
            write!(lines, "{byte:02x}").expect("writing to a String does not fail");
        }
        let json: serde_json::Value =
            serde_json::from_slice(&json).with_context(|| format!("the JSON of {kind}"))?;
        writeln!(lines, "\t{json}").expect("writing to a String does not fail");
    }
    Ok(lines)
}

/// Reads the test object of a kind from its files: in protobuf and in JSON.
fn pair(sources: &Sources, kind: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let name = file_name(kind);
    let folder = sources
        .modules
        .iter()
        .flat_map(|(_, module)| FOLDERS.map(|folder| module.join(folder)))
        .find(|folder| folder.join(format!("{name}.pb")).exists())
        .with_context(|| format!("no module has a pair of {kind}"))?;
    let read = |end: &str| {
        let path = folder.join(format!("{name}.{end}"));
        std::fs::read(&path).with_context(|| format!("can't read {}", path.display()))
    };
    Ok((read("pb")?, read("json")?))
}

/// Returns the name, without extension, of a kind's test files, such as `core.v1.Pod`.
fn file_name(kind: &str) -> String {
    let dotted = kind.replace('/', ".");
    if kind.matches('/').count() == 1 {
        format!("core.{dotted}")
    } else {
        dotted
    }
}

/// Writes the lines of the test data to a file, compressed with gzip.
pub(super) fn write(path: &Path, lines: &str) -> Result<()> {
    let mut file = GzEncoder::new(Vec::new(), Compression::best());
    file.write_all(lines.as_bytes())?;
    std::fs::write(path, file.finish()?).with_context(|| format!("can't write {}", path.display()))
}

/// Checks that a file compressed with gzip contains exactly `lines`.
///
/// # Errors
///
/// Returns an error if the file can't be read, or if the lines differ.
pub(super) fn check(path: &Path, lines: &str) -> Result<()> {
    let file = std::fs::File::open(path)
        .with_context(|| format!("can't read {}; run `cargo xtask kinds`", path.display()))?;
    let mut present = String::new();
    // The compressed bytes could depend on the version of the compressor.
    GzDecoder::new(file).read_to_string(&mut present)?;
    ensure!(
        present == lines,
        "{} is out of date; run `cargo xtask kinds`",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_by_group_version_and_kind() {
        assert_eq!(file_name("v1/Pod"), "core.v1.Pod");
        assert_eq!(
            file_name("rbac.authorization.k8s.io/v1/Role"),
            "rbac.authorization.k8s.io.v1.Role"
        );
    }

    #[test]
    fn a_kind_without_a_pair_is_an_error_unless_it_is_excepted() {
        let sources = Sources {
            modules: Vec::new(),
        };
        let known = ["apiregistration.k8s.io/v1/APIService".to_owned()];
        let error = lines(&sources, known.iter()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no module has a pair of v1/DeleteOptions"
        );
        let error = lines(&sources, ["v1/Pod".to_owned()].iter()).unwrap_err();
        assert_eq!(error.to_string(), "no module has a pair of v1/Pod");
    }
}
