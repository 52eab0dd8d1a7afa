//! `cargo xtask kinds`: generates the tables of kinds, printer columns, internal types and messages of Kubernetes. The
//! embedded server uses all of them. The protobuf decoder and encoder use the table of messages.
//!
//! The tables depend only on Go modules whose versions are fixed in this module, so they are the same on
//! every machine. All tables describe one Kubernetes release. The table of messages also contains the
//! messages and fields that a later release adds, for clients that use newer types.
//!
//! The tables contain the API that a Kubernetes server serves without `--runtime-config`: all stable
//! versions, and no beta or alpha versions. In Kubernetes, `DefaultAPIResourceConfigSource` in
//! `pkg/controlplane/instance.go` defines these versions.

mod columns;
mod corpus;
mod discovery;
mod internal;
mod openapi;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use discovery::{GroupList, Resource, ResourceList};

use crate::mode::Mode;

/// Go module that contains the discovery documents. Its version is the Kubernetes version of the embedded
/// server.
const MODULE: &str = "k8s.io/kubernetes@v1.36.3";

/// Version of the Go modules with the Kubernetes API types, released together with [`MODULE`].
const TYPES_VERSION: &str = "v0.36.3";

/// Later version of the Go modules with the Kubernetes API types.
///
/// The table of protobuf messages also contains the messages and fields that this version adds, for clients
/// that use newer types.
const LATER_TYPES_VERSION: &str = "v0.37.2";

/// Path of the generated table of kinds, relative to the root of the workspace.
const TABLE: &str = "crates/apiserver/src/kinds/v1_36.tsv";

/// Path in the workspace of the generated table of internal types.
const INTERNAL: &str = "crates/apiserver/src/strategy/internal/v1_36.tsv";

/// Path of the generated table of printer columns, relative to the root of the workspace.
const COLUMNS: &str = "crates/apiserver/src/columns/v1_36.tsv";

/// Path in the workspace of the generated table of protobuf messages.
const WIRE: &str = "crates/protobuf/src/table/v1_36.tsv";

/// Path in the workspace of the generated test data: objects in protobuf and in JSON.
const CORPUS: &str = "crates/protobuf/src/corpus_v1_36.tsv.gz";

/// Verbs that the table of kinds abbreviates as `*`, because most kinds support exactly these.
const ALL_VERBS: &str = "create,delete,deletecollection,get,list,patch,update,watch";

/// Generates the tables and the test data, writes or checks their files, and returns a report.
///
/// # Errors
///
/// Returns an error if a Go module can't be downloaded, if its files can't be read or parsed, if a generated
/// file can't be written, or if a checked file is outdated.
pub(crate) fn run(root: &Path, mode: Mode) -> Result<String> {
    let module = download(MODULE)?;
    let folder = module.join("api/discovery");
    let table = table(&Documents { folder })?;
    let document = openapi::Document::read(&module)?;
    let described = document.kinds(&kinds_of(&table))?;
    let internal = internal_types(&module)?;
    let sources = sources_of(TYPES_VERSION)?;
    let later = sources_of(LATER_TYPES_VERSION)?;
    let versions = [TYPES_VERSION, LATER_TYPES_VERSION];
    let wire = wire::table(versions, [&sources, &later], &document, &described)?;
    let apiserver = download(&format!("k8s.io/apiserver@{TYPES_VERSION}"))?;
    let modules = columns::Modules {
        kubernetes: &module,
        apiserver: &apiserver,
        types: &sources,
    };
    let kind_names = kinds_of(&table);
    let kind_names = kind_names.iter().filter_map(|kind| kind.rsplit('/').next());
    let kind_names = kind_names.map(str::to_owned).collect();
    let columns = columns::table(MODULE, &modules, &kind_names)?;
    let pairs = corpus::lines(&sources, described.values().flatten())?;
    apply(mode, root, TABLE, &table)?;
    apply(mode, root, COLUMNS, &columns)?;
    apply(mode, root, WIRE, &wire)?;
    apply(mode, root, INTERNAL, &internal)?;
    match mode {
        Mode::Write => corpus::write(&root.join(CORPUS), &pairs)?,
        Mode::Check => corpus::check(&root.join(CORPUS), &pairs)?,
    }
    let kinds = rows(&table).count();
    let heads = |table| rows(table).filter(|row| !row.starts_with('\t')).count();
    let (messages, structs) = (heads(&wire), heads(&internal));
    let described = rows(&columns)
        .filter(|row| !row.starts_with(['\t', '=']))
        .count();
    let relation = match mode {
        Mode::Write => "of",
        Mode::Check => "as in",
    };
    Ok(format!(
        "{TABLE}: {kinds} kinds {relation} {MODULE}\n{COLUMNS}: {described} kinds {relation} {MODULE}\n{WIRE}: {messages} messages {relation} {TYPES_VERSION}\n{INTERNAL}: {structs} types {relation} {MODULE}\n{CORPUS}: {} pairs {relation} {TYPES_VERSION}",
        pairs.lines().count()
    ))
}

/// Returns the table of internal types, given the folder of [`MODULE`].
fn internal_types(module: &Path) -> Result<String> {
    let metadata = download(&format!("k8s.io/apimachinery@{TYPES_VERSION}"))?;
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))
    };
    let core = read(module.join("pkg/apis/core/types.go"))?;
    let metadata = read(metadata.join("pkg/apis/meta/v1/types.go"))?;
    internal::table(MODULE, &core, &metadata)
}

/// Downloads one version of the Go modules that define the API types.
fn sources_of(version: &str) -> Result<wire::Sources> {
    let modules = wire::MODULES.iter().map(|name| {
        let folder = download(&format!("{name}@{version}"))?;
        Ok((*name, folder))
    });
    Ok(wire::Sources {
        modules: modules.collect::<Result<_>>()?,
    })
}

/// Writes `content` to the file, or checks that the file already has this content.
fn apply(mode: Mode, root: &Path, file: &str, content: &str) -> Result<()> {
    let path = root.join(file);
    match mode {
        Mode::Write => {
            std::fs::write(&path, content).with_context(|| format!("can't write {file}"))
        }
        Mode::Check => {
            let present = std::fs::read_to_string(&path)
                .with_context(|| format!("can't read {file}; run `cargo xtask kinds`"))?;
            ensure!(
                present == content,
                "{file} differs from {MODULE}; run `cargo xtask kinds`"
            );
            Ok(())
        }
    }
}

/// Returns the lines of a table without the header.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

/// Returns the kinds in the table of kinds as `apiVersion/Kind`, including those of subresources.
fn kinds_of(table: &str) -> BTreeSet<String> {
    let mut kinds = BTreeSet::new();
    for row in rows(table) {
        let columns: Vec<_> = row.split('\t').collect();
        if let [api_version, kind, .., subresources] = columns[..] {
            kinds.insert(format!("{api_version}/{kind}"));
            let named = subresources
                .split(' ')
                .filter_map(|sub| sub.split_once('@')?.1.split_once('='));
            kinds.extend(named.map(|(kind, _)| kind.to_owned()));
        }
    }
    kinds
}

/// Provides the discovery documents.
trait Source {
    /// Returns the JSON text of the document with this file name.
    fn read(&self, name: &str) -> Result<String>;
}

struct Documents {
    folder: PathBuf,
}

impl Source for Documents {
    fn read(&self, name: &str) -> Result<String> {
        let path = self.folder.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))
    }
}

/// Returns the folder of a Go module, and downloads the module if necessary.
fn download(module: &str) -> Result<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", module])
        .current_dir(std::env::temp_dir())
        .output()
        .context("can't run `go`; the tables are generated from Go modules, so install Go")?;
    let report: discovery::Download = serde_json::from_slice(&output.stdout)
        .context("`go mod download -json` printed no report")?;
    match report {
        discovery::Download {
            error: Some(error), ..
        } => bail!("can't download {module}: {error}"),
        discovery::Download { dir: Some(dir), .. } => Ok(dir),
        discovery::Download { .. } => {
            bail!("`go mod download -json` printed no folder for {module}")
        }
    }
}

/// Returns the table of kinds, sorted by group, version and plural name.
fn table(source: &dyn Source) -> Result<String> {
    let mut rows = BTreeMap::new();
    read_version(source, "api__v1.json", ("", "v1"), true, &mut rows)?;
    let groups: GroupList = parse(source, "apis.json")?;
    for group in &groups.groups {
        for served in group
            .versions
            .iter()
            .filter(|served| is_stable(&served.version))
        {
            let document = format!("apis__{}__{}.json", group.name, served.version);
            let preferred = served.version == group.preferred_version.version;
            let group_version = (group.name.as_str(), served.version.as_str());
            read_version(source, &document, group_version, preferred, &mut rows)?;
        }
    }
    let mut table = header();
    for row in rows.values() {
        table.push_str(row);
        table.push('\n');
    }
    Ok(table)
}

fn header() -> String {
    format!(
        "# Written by `cargo xtask kinds` from {MODULE} (api/discovery); do not edit.\n\
         # One resource per line, tabs between the columns:\n\
         # apiVersion, kind, plural, singular, short names, categories, scope, preferred, storageVersionHash, verbs, subresources.\n\
         # `-` is empty; `*` is {ALL_VERBS}.\n\
         # Subresources are `name=verbs`, or `name@apiVersion/Kind=verbs` where the kind is not the resource's own.\n"
    )
}

/// Returns whether a version is stable, for example `v1`, but not `v1beta1`.
fn is_stable(version: &str) -> bool {
    version.strip_prefix('v').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

type Rows = BTreeMap<(String, String, String), String>;

/// Adds the resources in the discovery document of one group and version to `rows`.
///
/// `preferred` is whether the version is the preferred version of the group.
fn read_version(
    source: &dyn Source,
    document: &str,
    (group, version): (&str, &str),
    preferred: bool,
    rows: &mut Rows,
) -> Result<()> {
    let list: ResourceList = parse(source, document)?;
    let api_version = join(group, version);
    ensure!(
        list.group_version == api_version,
        "{document} describes {}, not {api_version}",
        list.group_version
    );
    for resource in list
        .resources
        .iter()
        .filter(|resource| !resource.name.contains('/'))
    {
        let subresources: Vec<_> = list
            .resources
            .iter()
            .filter_map(|sub| {
                Some((
                    sub.name.strip_prefix(&resource.name)?.strip_prefix('/')?,
                    sub,
                ))
            })
            .map(|(name, sub)| subresource(name, sub, resource, &api_version))
            .collect();
        let row = [
            api_version.as_str(),
            &resource.kind,
            &resource.name,
            &resource.singular_name,
            &cell(&resource.short_names, ","),
            &cell(&resource.categories, ","),
            if resource.namespaced {
                "namespaced"
            } else {
                "cluster"
            },
            if preferred { "preferred" } else { "-" },
            resource.storage_version_hash.as_deref().unwrap_or("-"),
            &verbs(resource),
            &cell(&subresources, " "),
        ]
        .join("\t");
        rows.insert(
            (group.to_owned(), version.to_owned(), resource.name.clone()),
            row,
        );
    }
    Ok(())
}

fn subresource(name: &str, sub: &Resource, parent: &Resource, parent_version: &str) -> String {
    let api_version = match &sub.version {
        Some(version) => join(sub.group.as_deref().unwrap_or_default(), version),
        None => parent_version.to_owned(),
    };
    let mut cell = name.to_owned();
    if sub.kind != parent.kind || api_version != parent_version {
        write!(cell, "@{api_version}/{}", sub.kind).expect("writing to a String does not fail");
    }
    cell.push('=');
    cell.push_str(&verbs(sub));
    cell
}

fn verbs(resource: &Resource) -> String {
    match cell(&resource.verbs, ",") {
        all if all == ALL_VERBS => "*".to_owned(),
        some => some,
    }
}

/// Joins values in sorted order into one cell of the table.
fn cell(values: &[String], separator: &str) -> String {
    if values.is_empty() {
        return "-".to_owned();
    }
    let mut sorted: Vec<_> = values.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.join(separator)
}

fn join(group: &str, version: &str) -> String {
    if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    }
}

fn parse<T: serde::de::DeserializeOwned>(source: &dyn Source, document: &str) -> Result<T> {
    serde_json::from_str(&source.read(document)?)
        .with_context(|| format!("{document} is not a discovery document"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Discovery documents of a small invented server.
    struct Fake;

    impl Source for Fake {
        fn read(&self, name: &str) -> Result<String> {
            let text = match name {
                "api__v1.json" => {
                    r#"{"groupVersion": "v1", "resources": [
                        {"name": "pods", "kind": "Pod", "singularName": "pod", "namespaced": true,
                         "shortNames": ["po"], "categories": ["all"], "storageVersionHash": "cGk=",
                         "verbs": ["watch", "create", "delete", "deletecollection", "get", "list", "patch", "update"]},
                        {"name": "pods/status", "kind": "Pod", "singularName": "", "namespaced": true, "verbs": ["get", "patch"]},
                        {"name": "pods/eviction", "group": "policy", "version": "v1", "kind": "Eviction",
                         "singularName": "", "namespaced": true, "verbs": ["create"]},
                        {"name": "pods/binding", "kind": "Binding", "singularName": "", "namespaced": true, "verbs": ["create"]}
                    ]}"#
                }
                "apis.json" => {
                    r#"{"groups": [{"name": "autoscaling", "preferredVersion": {"version": "v2"},
                        "versions": [{"version": "v2"}, {"version": "v1"}, {"version": "v3beta1"}]}]}"#
                }
                "apis__autoscaling__v1.json" => {
                    r#"{"groupVersion": "autoscaling/v1", "resources": [
                        {"name": "scalers", "kind": "Scaler", "singularName": "scaler", "namespaced": false, "verbs": ["get"]}]}"#
                }
                "apis__autoscaling__v2.json" => {
                    r#"{"groupVersion": "autoscaling/v2", "resources": [
                        {"name": "scalers", "kind": "Scaler", "singularName": "scaler", "namespaced": false, "verbs": ["get"]}]}"#
                }
                other => bail!("unexpected read of {other}"),
            };
            Ok(text.to_owned())
        }
    }

    #[test]
    fn each_resource_of_a_stable_version_has_one_row_with_its_subresources() {
        let table = table(&Fake).unwrap();
        let rows: Vec<_> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(
            rows,
            [
                "v1\tPod\tpods\tpod\tpo\tall\tnamespaced\tpreferred\tcGk=\t*\t\
                 binding@v1/Binding=create eviction@policy/v1/Eviction=create status=get,patch",
                "autoscaling/v1\tScaler\tscalers\tscaler\t-\t-\tcluster\t-\t-\tget\t-",
                "autoscaling/v2\tScaler\tscalers\tscaler\t-\t-\tcluster\tpreferred\t-\tget\t-",
            ]
        );
    }

    #[test]
    fn resources_and_the_kinds_of_their_subresources_are_described() {
        let kinds: Vec<_> = kinds_of(&table(&Fake).unwrap()).into_iter().collect();
        assert_eq!(
            kinds,
            [
                "autoscaling/v1/Scaler",
                "autoscaling/v2/Scaler",
                "policy/v1/Eviction",
                "v1/Binding",
                "v1/Pod"
            ]
        );
    }

    #[test]
    fn the_header_contains_the_command_and_the_module_version() {
        let table = table(&Fake).unwrap();
        assert!(
            table.starts_with("# Written by `cargo xtask kinds` from k8s.io/kubernetes@v1.36.3")
        );
    }

    #[test]
    fn only_versions_without_beta_or_alpha_are_stable() {
        let stable = ["v1", "v2", "v10"];
        let unstable = ["v1beta1", "v1alpha3", "v", "1", "version"];
        assert!(stable.into_iter().all(is_stable));
        assert!(!unstable.into_iter().any(is_stable));
    }

    #[test]
    fn a_document_of_another_version_is_rejected() {
        let error =
            read_version(&Fake, "api__v1.json", ("", "v2"), true, &mut Rows::new()).unwrap_err();
        assert_eq!(error.to_string(), "api__v1.json describes v1, not v2");
    }
}
