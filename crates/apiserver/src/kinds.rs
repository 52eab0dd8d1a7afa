//! Defines the kinds that a server serves, with their names, scopes, verbs and subresources.
//!
//! `cargo xtask kinds` writes the table of built-in kinds from the discovery documents of a pinned Kubernetes
//! version.
//!
//! Guarantees:
//! - a [`Kinds`] contains at most one [`Kind`] per group, version and plural name;
//! - [`Kinds::iter`] is ordered by group, version and plural name;
//! - [`Kinds::builtin`] contains the kinds that an API server of the pinned version serves without
//!   `--runtime-config`.

mod deprecation;
pub(crate) mod priority;
mod scale;
pub(crate) mod version;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::json;

pub(crate) use self::scale::ScalePaths;

/// Built-in kinds of Kubernetes 1.36, one resource per line; the file's header explains the format.
const V1_36: &str = include_str!("kinds/v1_36.tsv");

/// Verbs of custom kinds, and of built-in kinds whose verbs column in [`V1_36`] is `*`.
const ALL_VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Verbs of the subresources `status` and `scale` of a custom kind.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Whether objects of a kind belong to namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every object belongs to one namespace.
    Namespaced,
    /// Objects have no namespace.
    Cluster,
}

/// A kind that a server can serve: one version of a resource, as discovery describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kind {
    /// Name of the API group. Empty for the core group.
    pub group: String,
    /// Version of the API group, such as `v1`.
    pub version: String,
    /// The value of `kind` in an object, such as `Pod`.
    pub kind: String,
    /// The plural name in a URL, such as `pods`.
    pub plural: String,
    /// The singular name in lower case, such as `pod`.
    pub singular: String,
    /// The value of `kind` in a list, such as `PodList`.
    pub list_kind: String,
    /// Short names that `kubectl` accepts, such as `po`.
    pub short_names: Vec<String>,
    /// Categories of the kind, such as `all`.
    ///
    /// `kubectl get` with a category returns the objects of every kind in this category.
    pub categories: Vec<String>,
    /// Whether objects of the kind belong to namespaces.
    pub scope: Scope,
    /// Verbs that the resource supports, in alphabetical order. Verbs of subresources are not included.
    pub verbs: Vec<String>,
    /// Subresources of the kind, such as `status`, ordered by name.
    pub subresources: Vec<Subresource>,
    /// Whether the kind's version is the preferred version of its group.
    pub preferred: bool,
    /// Whether the kind is a custom kind, which the user of the server added. `false` for a built-in kind.
    pub custom: bool,
    /// The `storageVersionHash` in discovery. `None` if no object is stored in the kind's version.
    pub(crate) storage_version_hash: Option<String>,
    /// State of the `CustomResourceDefinition` that adds the kind; `None` if no definition adds the kind.
    pub(crate) definition: Option<DefinitionState>,
    /// The warning in each response about the kind, if its version is deprecated.
    pub(crate) deprecation: Option<Arc<str>>,
    /// Paths of the fields that the subresource `scale` reads and changes, from the kind's
    /// `CustomResourceDefinition`. `None` if no definition of the kind has such paths.
    pub(crate) scale: Option<ScalePaths>,
    /// The `additionalPrinterColumns` of the kind's `CustomResourceDefinition`.
    pub(crate) columns: Arc<[PrinterColumn]>,
}

/// State of a `CustomResourceDefinition` whose kind is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionState {
    Established,
    /// The definition is being deleted, so that no object can be created.
    Terminating,
}

/// A printer column of a `CustomResourceDefinition`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    /// Type of the cells: `string`, `integer`, `number`, `boolean` or `date`.
    #[serde(rename = "type")]
    pub(crate) cell_type: String,
    #[serde(default)]
    pub(crate) format: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) priority: i32,
    pub(crate) json_path: String,
}

/// A subresource of a [`Kind`], such as `status` or `scale`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The last segment of the subresource's URL path, such as `scale`.
    pub name: String,
    /// Kind of the object in the request and response bodies of the subresource, such as `Scale`.
    pub kind: String,
    /// API group of the kind in [`Subresource::kind`]. Empty for the core group.
    pub group: String,
    /// Version of the kind in [`Subresource::kind`], such as `v1`.
    pub version: String,
    /// Verbs that the subresource supports, in alphabetical order.
    pub verbs: Vec<String>,
}

/// The set of kinds that a server serves, both built-in kinds and kinds that the user added.
#[derive(Clone)]
pub struct Kinds {
    /// The kinds, sorted by group, version and plural name for binary search. Servers share those of the table.
    kinds: Vec<Arc<Kind>>,
}

// === impl Kind ===

impl Kind {
    /// Returns a custom kind with every verb and a `status` subresource.
    ///
    /// The singular name is `kind` in lower case.
    /// [`Kind::preferred`] is true. If a group has several versions, set it to false in all versions except
    /// one.
    pub fn custom(group: &str, version: &str, kind: &str, plural: &str, scope: Scope) -> Kind {
        Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            list_kind: format!("{kind}List"),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope,
            verbs: owned(&ALL_VERBS),
            subresources: vec![Subresource {
                name: "status".to_owned(),
                kind: kind.to_owned(),
                group: group.to_owned(),
                version: version.to_owned(),
                verbs: owned(&STATUS_VERBS),
            }],
            preferred: true,
            custom: true,
            storage_version_hash: None,
            definition: None,
            deprecation: None,
            scale: None,
            columns: Arc::default(),
        }
    }

    /// Returns the `apiVersion` of the kind's objects, such as `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns the JSON of `apiVersion` and `kind` without braces, in the order of Go.
    pub(crate) fn type_meta(&self) -> String {
        let (api_version, kind) = (json!(self.api_version()), json!(self.kind));
        if self.custom {
            return format!("\"apiVersion\":{api_version},\"kind\":{kind}");
        }
        format!("\"kind\":{kind},\"apiVersion\":{api_version}")
    }

    /// Returns whether the kind has a subresource of this name.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|sub| sub.name == name)
    }

    /// Returns the resource name that errors and `kubectl` show, such as `pods` or `deployments.apps`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns whether this is the built-in kind with a resource name such as `pods` or `deployments.apps`.
    pub(crate) fn is_builtin(&self, group_resource: &str) -> bool {
        let (plural, group) = group_resource
            .split_once('.')
            .unwrap_or((group_resource, ""));
        !self.custom && self.plural == plural && self.group == group
    }

    /// Returns the Go package of the kind's internal type, such as `core`, for error messages.
    pub(crate) fn internal_package(&self) -> &str {
        match self.group.as_str() {
            "" | "events.k8s.io" => "core",
            group => group.split('.').next().unwrap_or(group),
        }
    }

    /// Returns the name of the internal kind, which errors contain, such as `Pod` or `Deployment.apps`.
    pub(crate) fn group_kind(&self) -> String {
        if matches!(self.group.as_str(), "" | "events.k8s.io") {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    /// Returns whether the `CustomResourceDefinition` of the kind is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.definition == Some(DefinitionState::Terminating)
    }

    fn position(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.plural)
    }

    /// Parses a line of the table of built-in kinds.
    fn from_row(line: &str) -> Option<Kind> {
        let mut columns = line.split('\t');
        let (group, version) = split_api_version(columns.next()?);
        let kind = columns.next()?;
        let plural = columns.next()?;
        let singular = columns.next()?;
        let short_names = names(columns.next()?);
        let categories = names(columns.next()?);
        let scope = match columns.next()? {
            "namespaced" => Scope::Namespaced,
            "cluster" => Scope::Cluster,
            _ => return None,
        };
        let preferred = match columns.next()? {
            "preferred" => true,
            "-" => false,
            _ => return None,
        };
        let hash = columns.next()?;
        let verbs = verbs(columns.next()?);
        let subresources = match columns.next()? {
            "-" => Vec::new(),
            cell => cell
                .split(' ')
                .map(|sub| Subresource::from_cell(sub, group, version, kind))
                .collect::<Option<_>>()?,
        };
        if columns.next().is_some() {
            return None;
        }
        Some(Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: singular.to_owned(),
            list_kind: format!("{kind}List"),
            short_names,
            categories,
            scope,
            verbs,
            subresources,
            preferred,
            custom: false,
            storage_version_hash: (hash != "-").then(|| hash.to_owned()),
            definition: None,
            deprecation: deprecation::of(group, kind),
            scale: None,
            columns: Arc::default(),
        })
    }
}

// === impl Subresource ===

impl Subresource {
    /// Returns the kind of the objects in requests and responses. It has no resource.
    pub(crate) fn expected_kind(&self) -> Kind {
        let kind = Kind::custom(
            &self.group,
            &self.version,
            &self.kind,
            "",
            Scope::Namespaced,
        );
        Kind {
            custom: false,
            ..kind
        }
    }

    /// Returns the subresource `scale` of a custom kind.
    pub(crate) fn scale() -> Subresource {
        Subresource {
            name: "scale".to_owned(),
            kind: "Scale".to_owned(),
            group: "autoscaling".to_owned(),
            version: "v1".to_owned(),
            verbs: owned(&STATUS_VERBS),
        }
    }

    /// Parses a subresource `name@apiVersion/Kind=verbs` of the table of built-in kinds.
    ///
    /// `@apiVersion/Kind` is absent if it equals that of the main resource.
    fn from_cell(cell: &str, group: &str, version: &str, kind: &str) -> Option<Subresource> {
        let (name, served) = cell.split_once('=')?;
        let (name, group, version, kind) = match name.split_once('@') {
            None => (name, group, version, kind),
            Some((name, full)) => {
                let (api_version, kind) = full.rsplit_once('/')?;
                let (group, version) = split_api_version(api_version);
                (name, group, version, kind)
            }
        };
        Some(Subresource {
            name: name.to_owned(),
            kind: kind.to_owned(),
            group: group.to_owned(),
            version: version.to_owned(),
            verbs: verbs(served),
        })
    }
}

// === impl Kinds ===

impl Kinds {
    /// Returns the kinds that Kubernetes 1.36 serves by default.
    ///
    /// The first call parses a table of about eight kilobytes.
    ///
    /// # Panics
    ///
    /// Does not panic, because the table is part of the crate and a test parses all of it.
    pub fn builtin() -> Kinds {
        static BUILTIN: OnceLock<Kinds> = OnceLock::new();
        let parsed = || {
            let rows = V1_36.lines().filter(|line| !line.starts_with('#'));
            let kinds = rows.map(Kind::from_row);
            let kinds = kinds.collect::<Option<Vec<_>>>();
            let kinds = kinds.expect("`cargo xtask kinds` writes rows that read back");
            let mut all = Kinds { kinds: Vec::new() };
            all.extend(kinds);
            all
        };
        BUILTIN.get_or_init(parsed).clone()
    }

    /// Adds a kind, or replaces the existing kind with the same group, version and plural name.
    pub fn add(&mut self, kind: Kind) {
        match self.search(&kind.group, &kind.version, &kind.plural) {
            Ok(at) => self.kinds[at] = Arc::new(kind),
            Err(at) => self.kinds.insert(at, Arc::new(kind)),
        }
    }

    /// Adds kinds as [`Kinds::add`] does. The cost grows with the number of all kinds, not with its square.
    pub(crate) fn extend(&mut self, more: impl IntoIterator<Item = Kind>) {
        self.kinds.extend(more.into_iter().map(Arc::new));
        // The sort is stable, so the last added kind is the first of equal ones after the reversal.
        self.kinds
            .sort_by(|one, other| other.position().cmp(&one.position()));
        self.kinds.reverse();
        self.kinds
            .dedup_by(|later, kept| later.position() == kept.position());
    }

    /// Returns the kind with this group, version and plural name. `group` is empty for the core group.
    pub fn by_resource(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        let at = self.search(group, version, plural).ok()?;
        self.kinds.get(at).map(|kind| &**kind)
    }

    /// Returns the kind with this `apiVersion` and `kind`.
    ///
    /// The search takes time linear in the number of kinds.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        self.shared_by_kind(api_version, kind).map(|kind| &**kind)
    }

    /// Returns the kind with this `apiVersion` and `kind`, as [`Kinds::by_kind`] does.
    pub(crate) fn shared_by_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        let (group, version) = split_api_version(api_version);
        self.shared()
            .find(|known| known.kind == kind && known.group == group && known.version == version)
    }

    /// Returns whether any kind has this group, which is empty for the core group.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.iter().any(|kind| kind.group == group)
    }

    /// Returns whether any kind has this group and this version.
    pub(crate) fn has_version(&self, group: &str, version: &str) -> bool {
        self.iter()
            .any(|kind| kind.group == group && kind.version == version)
    }

    /// Returns whether all kinds of this group are custom kinds.
    pub(crate) fn is_custom_group(&self, group: &str) -> bool {
        self.iter().all(|kind| kind.group != group || kind.custom)
    }

    /// Iterates over all kinds, ordered by group, version and plural name. The core group is first.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.shared().map(|kind| &**kind)
    }

    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.iter()
    }

    /// Returns the number of kinds in the set. A kind with two versions counts twice.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns whether the set contains no kinds.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    fn search(&self, group: &str, version: &str, plural: &str) -> Result<usize, usize> {
        self.kinds
            .binary_search_by(|known| known.position().cmp(&(group, version, plural)))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let resources = self
            .kinds
            .iter()
            .map(|kind| (kind.api_version(), &kind.plural));
        f.debug_list().entries(resources).finish()
    }
}

/// Splits an `apiVersion` into group and version; the core group is empty.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Splits a comma-separated cell into names; the cell `-` has none.
fn names(cell: &str) -> Vec<String> {
    match cell {
        "-" => Vec::new(),
        names => names.split(',').map(str::to_owned).collect(),
    }
}

fn verbs(cell: &str) -> Vec<String> {
    match cell {
        "*" => owned(&ALL_VERBS),
        cell => names(cell),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[cfg(test)]
mod tests;
