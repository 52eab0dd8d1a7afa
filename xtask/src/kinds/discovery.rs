//! The documents that `cargo xtask kinds` reads, as far as it reads them.
//!
//! They are the unaggregated discovery documents (`APIGroupList`, `APIResourceList`): unlike the aggregated one that ships beside them, they have the core group too, in the same form.

use std::path::PathBuf;

use serde::Deserialize;

/// `/apis`: the groups, without the core one.
#[derive(Debug, Deserialize)]
pub(super) struct GroupList {
    pub(super) groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) preferred_version: Version,
    pub(super) versions: Vec<Version>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Version {
    pub(super) version: String,
}

/// `/apis/GROUP/VERSION`: its resources, subresources among them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList {
    pub(super) group_version: String,
    pub(super) resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    /// `pods`, or `pods/status` for a subresource.
    pub(super) name: String,
    pub(super) kind: String,
    /// Only where it is not the group of the list, as for `pods/eviction`.
    pub(super) group: Option<String>,
    /// Only where it is not the version of the list.
    pub(super) version: Option<String>,
    pub(super) singular_name: String,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) short_names: Vec<String>,
    #[serde(default)]
    pub(super) categories: Vec<String>,
}

/// What `go mod download -json` says about one module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Download {
    pub(super) dir: Option<PathBuf>,
    pub(super) error: Option<String>,
}
