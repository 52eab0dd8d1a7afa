//! The parts of the discovery documents that `cargo xtask kinds` uses.
//!
//! They are the unaggregated documents (`APIGroupList`, `APIResourceList`). Unlike the aggregated document of
//! the same release, they include the core group in the same format.

use std::path::PathBuf;

use serde::Deserialize;

/// `/apis`: all groups except the core group.
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

/// `/apis/GROUP/VERSION`: its resources and subresources.
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
    /// Present only if it differs from the group of the list, as for `pods/eviction`.
    pub(super) group: Option<String>,
    /// Present only if it differs from the version of the list.
    pub(super) version: Option<String>,
    pub(super) singular_name: String,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) short_names: Vec<String>,
    #[serde(default)]
    pub(super) categories: Vec<String>,
}

/// The report of `go mod download -json` for one module.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Download {
    pub(super) dir: Option<PathBuf>,
    pub(super) error: Option<String>,
}
