//! Writes the response of `/metrics`, in the text format of Prometheus.
//!
//! Guarantees: each metric has the name and the meaning of kube-apiserver's. Metrics that the server does not
//! count are left out.

use std::fmt::Write as _;

use crate::resource::CollectionId;
use crate::shared::Shared;

/// Media type of the text format, as kube-apiserver sends it.
pub(super) const CONTENT_TYPE: &str =
    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// Returns the number of stored objects per resource.
pub(super) fn text(shared: &Shared) -> String {
    let mut text = concat!(
        "# HELP apiserver_resource_objects [ALPHA] Number of stored objects at the time of last check split by ",
        "kind. In case of a fetching error, the value will be -1.\n",
        "# TYPE apiserver_resource_objects gauge\n",
    )
    .to_owned();
    let registry = shared.registry();
    let mut names: Vec<_> = registry
        .collection_names()
        .into_iter()
        .enumerate()
        .collect();
    names.sort_by_key(|(_, name)| {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        (group, resource)
    });
    let state = shared.lock();
    for (at, name) in names {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        let objects = state.storage.snapshot(CollectionId(at)).len();
        writeln!(
            text,
            "apiserver_resource_objects{{group=\"{group}\",resource=\"{resource}\"}} {objects}"
        )
        .expect("writing to a String does not fail");
    }
    text
}
