//! Names the fields of a custom object that its subresource `scale` shows.

use serde::Deserialize;

/// Maximum number of names in a path of [`ScalePaths`]; each adds a level to the object.
const SCALE_DEPTH_MAX: usize = 32;

/// Paths of the fields of a custom object that its `Scale` shows, such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ScalePaths {
    #[serde(rename = "specReplicasPath", default)]
    pub(crate) replicas: String,
    #[serde(rename = "statusReplicasPath", default)]
    pub(crate) current_replicas: String,
    /// Path of the field that contains a label selector as a string. Empty if the definition names no such
    /// field.
    #[serde(rename = "labelSelectorPath", default)]
    pub(crate) selector: String,
}

impl ScalePaths {
    /// Returns whether the paths are below the members that Kubernetes allows, and not deeper than an object.
    pub(crate) fn are_valid(&self) -> bool {
        let is_below = |path: &str, part: &str| {
            let names = path.strip_prefix(part).map(|names| names.split('.'));
            let is_flat = path.matches('.').count() <= SCALE_DEPTH_MAX;
            is_flat && names.is_some_and(|mut names| names.all(|name| !name.is_empty()))
        };
        let selector = &self.selector;
        is_below(&self.replicas, ".spec.")
            && is_below(&self.current_replicas, ".status.")
            && (selector.is_empty()
                || is_below(selector, ".spec.")
                || is_below(selector, ".status."))
    }
}
