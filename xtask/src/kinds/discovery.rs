//! Types for the Kubernetes discovery documents, with the fields that `cargo xtask kinds` uses.
//!
//! The documents are an `APIGroupList` and several `APIResourceList`s. Aggregated discovery is not used.

use std::path::PathBuf;

use serde::Deserialize;

/// The document `/apis`, which lists all groups except the core group.
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

/// The document `/apis/GROUP/VERSION`, which lists the resources and subresources of one group version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceList {
    pub(super) group_version: String,
    pub(super) resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Resource {
    /// Name of the resource, such as `pods`, or of the subresource, such as `pods/status`.
    pub(super) name: String,
    pub(super) kind: String,
    /// Group of the resource's kind, if this group differs from the group of the `ResourceList`. An example
    /// is the subresource `pods/eviction`.
    pub(super) group: Option<String>,
    /// Version of the resource's kind, if this version differs from the version of the `ResourceList`.
    pub(super) version: Option<String>,
    pub(super) singular_name: String,
    pub(super) namespaced: bool,
    pub(super) verbs: Vec<String>,
    #[serde(default)]
    pub(super) short_names: Vec<String>,
    #[serde(default)]
    pub(super) categories: Vec<String>,
    /// Hash of the group, version and kind in which the objects are stored. `None` for a resource whose
    /// objects are never stored.
    pub(super) storage_version_hash: Option<String>,
}

/// Output of `go mod download -json` for one module: its folder, or an error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Download {
    pub(super) dir: Option<PathBuf>,
    pub(super) error: Option<String>,
}
