//! The warnings about deprecated built-in kinds.

use std::sync::Arc;

/// The deprecated kinds of the core group, with the warnings of Kubernetes 1.36.
const CORE: [(&str, &str); 2] = [
    (
        "ComponentStatus",
        "v1 ComponentStatus is deprecated in v1.19+",
    ),
    (
        "Endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

/// Returns the warning about a kind, if it is deprecated.
pub(super) fn of(group: &str, kind: &str) -> Option<Arc<str>> {
    let mut core = CORE.iter().filter(|_| group.is_empty());
    let (_, warning) = core.find(|(name, _)| *name == kind)?;
    Some((*warning).into())
}
