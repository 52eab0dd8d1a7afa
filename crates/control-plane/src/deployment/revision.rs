//! The annotations with which the deployment controller numbers the templates of a Deployment.
//!
//! `kubectl rollout history` and `undo` read them. Keys and rules are those of `deployment_util.go` in Kubernetes.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use kube_core::ResourceExt;

use super::{
    Set,
    size::{DESIRED_REPLICAS, MAX_REPLICAS},
};

/// Number of the template, on the Deployment and its ReplicaSets.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// Earlier numbers of a template that is used again, separated by commas.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// Annotations that belong to one of the two objects and are not copied.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

/// Maximum length of [`REVISION_HISTORY`] in bytes; `maxRevHistoryLengthInChars` in Kubernetes.
const HISTORY_MAX: usize = 2_000;

/// Returns the revision of a ReplicaSet; 0 if it has none, or an invalid one.
pub(super) fn revision(set: &ReplicaSet) -> i64 {
    let text = set.annotations().get(REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Returns the revision of a template that is newer than those of all ReplicaSets `old`.
pub(super) fn next(old: &[Set]) -> i64 {
    let latest = old.iter().map(|set| revision(set)).max();
    latest.unwrap_or(0).max(0).saturating_add(1)
}

/// Sets the revision of the Deployment. Returns whether it had another one.
pub(super) fn number_deployment(deployment: &mut Deployment, revision: String) -> bool {
    let annotations = deployment.annotations_mut();
    let before = annotations.insert(REVISION.to_owned(), revision);
    before.as_ref() != annotations.get(REVISION)
}

/// Copies the annotations of the Deployment to the ReplicaSet of its current template, and numbers it.
///
/// Returns whether an annotation has changed. The number of a ReplicaSet never decreases.
pub(super) fn annotate(deployment: &Deployment, set: &mut ReplicaSet, latest: i64) -> bool {
    let before = set.annotations().clone();
    let annotations = set.annotations_mut();
    let copied = deployment.annotations().iter();
    let copied = copied.filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()));
    annotations.extend(copied.map(|(key, value)| (key.clone(), value.clone())));
    let had = annotations.get(REVISION).cloned();
    let number = had.as_deref().map_or(Some(0), |text| text.parse().ok());
    if number.is_some_and(|number: i64| number < latest) {
        annotations.insert(REVISION.to_owned(), latest.to_string());
        if let Some(had) = had {
            remember(annotations, &had);
        }
    }
    *annotations != before
}

/// Adds an earlier number to the history. The oldest numbers are dropped if it becomes too long.
fn remember(annotations: &mut BTreeMap<String, String>, number: &str) {
    let history = annotations.get(REVISION_HISTORY).map_or("", String::as_str);
    let mut numbers: Vec<&str> = history.split(',').filter(|text| !text.is_empty()).collect();
    numbers.push(number);
    let length = |numbers: &[&str]| numbers.iter().map(|text| text.len() + 1).sum::<usize>();
    let excess = (0..numbers.len()).find(|start| length(&numbers[*start..]) <= HISTORY_MAX + 1);
    if let Some(start) = excess {
        let joined = numbers[start..].join(",");
        annotations.insert(REVISION_HISTORY.to_owned(), joined);
    }
}
