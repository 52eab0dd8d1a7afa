//! Which kinds the server serves: their names, scope, verbs and subresources.
//!
//! The built-in kinds come from a table that `cargo xtask kinds` writes from the discovery documents of a pinned Kubernetes version, so nobody types a plural by hand.
//! A [`Kinds`] is plain data: nothing here knows how a request is routed or an object stored.
//!
//! Guarantees:
//! - at most one [`Kind`] per (group, version, plural); adding it again replaces it;
//! - [`Kinds::iter`] is ordered by (group, version, plural), whatever the order of additions;
//! - [`Kinds::builtin`] holds what an API server of that version serves without any `--runtime-config`.

pub(crate) mod schema;
pub(crate) mod wire;

use std::fmt;

/// The table of Kubernetes 1.36, one resource per line; its header says how it reads.
const V1_36: &str = include_str!("kinds/v1_36.tsv");

/// The verbs that a `*` in the table, and [`Kind::custom`], stand for.
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

/// The verbs of a `status` subresource.
const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Whether objects of a kind live in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Every object is in one namespace.
    Namespaced,
    /// Objects have no namespace.
    Cluster,
}

/// One resource in one version of one group, as discovery describes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version inside the group, such as `v1`.
    pub version: String,
    /// The name in an object's `kind`, such as `Pod`.
    pub kind: String,
    /// The name in a URL, such as `pods`.
    pub plural: String,
    /// The lower-case singular, such as `pod`.
    pub singular: String,
    /// What `kubectl` accepts besides, such as `po`.
    pub short_names: Vec<String>,
    /// The `kubectl get` collections it belongs to, such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// The verbs the resource itself serves, in alphabetical order; a kind without `list` (a token review) is only ever created.
    pub verbs: Vec<String>,
    /// What is served below an object's URL, ordered by name.
    pub subresources: Vec<Subresource>,
    /// Whether its version is the one its group prefers.
    pub preferred: bool,
    /// Whether it was added by the user, as a custom resource definition would.
    pub custom: bool,
}

/// A subresource of a [`Kind`], such as `status` or `scale`.
#[derive(Clone, Debug)]
pub struct Subresource {
    /// The last part of the URL, such as `scale`.
    pub name: String,
    /// The kind of the body that it takes and returns.
    pub kind: String,
    /// The group of that kind; empty for the core group.
    pub group: String,
    /// The version of that kind.
    pub version: String,
    /// The verbs it serves, in alphabetical order.
    pub verbs: Vec<String>,
}

/// The kinds a server knows.
#[derive(Clone)]
pub struct Kinds {
    /// Strictly ascending by (group, version, plural), so a look-up by resource is a binary search.
    kinds: Vec<Kind>,
}

// === impl Kind ===

impl Kind {
    /// A custom kind with every verb and a `status` subresource; its singular is the kind in lower case.
    ///
    /// It counts as preferred: of several versions of one custom group, clear [`Kind::preferred`] on all but one.
    pub fn custom(group: &str, version: &str, kind: &str, plural: &str, scope: Scope) -> Kind {
        Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
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
        }
    }

    /// What an object of this kind says in `apiVersion`: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether a subresource of this name is served.
    pub fn has_subresource(&self, name: &str) -> bool {
        self.subresources.iter().any(|sub| sub.name == name)
    }

    /// The name that errors and `kubectl` use: `pods`, `deployments.apps`.
    pub fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The Go package of the internal type, which some messages name: `core`, `apps`, `rbac`.
    pub(crate) fn internal_package(&self) -> &str {
        match self.group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        }
    }

    /// The name that validation errors use: `Pod`, `Deployment.apps`.
    pub(crate) fn group_kind(&self) -> String {
        if self.group.is_empty() {
            self.kind.clone()
        } else {
            format!("{}.{}", self.kind, self.group)
        }
    }

    fn position(&self) -> (&str, &str, &str) {
        (&self.group, &self.version, &self.plural)
    }

    /// Reads one line of a table; `None` if it is not one.
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
            short_names,
            categories,
            scope,
            verbs,
            subresources,
            preferred,
            custom: false,
        })
    }
}

// === impl Subresource ===

impl Subresource {
    /// Reads `name=verbs`, which has the kind of its parent, or `name@apiVersion/Kind=verbs`.
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
    /// The kinds that Kubernetes 1.36 serves by default.
    ///
    /// Reads a table of some ten kilobytes: cheap beside starting a server, too much for every request.
    ///
    /// # Panics
    ///
    /// Never: the table is part of the crate, and a test reads all of it.
    pub fn builtin() -> Kinds {
        let mut kinds = Kinds { kinds: Vec::new() };
        for line in V1_36.lines().filter(|line| !line.starts_with('#')) {
            kinds
                .add(Kind::from_row(line).expect("`cargo xtask kinds` writes rows that read back"));
        }
        kinds
    }

    /// Adds a kind; one with the same group, version and plural is replaced.
    pub fn add(&mut self, kind: Kind) {
        match self.search(&kind.group, &kind.version, &kind.plural) {
            Ok(at) => self.kinds[at] = kind,
            Err(at) => self.kinds.insert(at, kind),
        }
    }

    /// The kind behind a URL, `None` if nothing is served there; the group is empty for the core group.
    pub fn by_resource(&self, group: &str, version: &str, plural: &str) -> Option<&Kind> {
        let at = self.search(group, version, plural).ok()?;
        self.kinds.get(at)
    }

    /// The kind of an object that says `apiVersion` and `kind`; looks at every kind.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Kind> {
        let (group, version) = split_api_version(api_version);
        self.kinds
            .iter()
            .find(|known| known.kind == kind && known.group == group && known.version == version)
    }

    /// Whether some kind is of this group; the core group is the empty one.
    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.iter().any(|kind| kind.group == group)
    }

    /// All kinds, ordered by group, version and plural; the core group, with its empty name, comes first.
    pub fn iter(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter()
    }

    /// How many kinds there are, each version counted.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there is none.
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

/// Splits `apps/v1` into group and version; without a slash it is the core group's version.
fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// A comma-separated cell; `-` is an empty one.
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
