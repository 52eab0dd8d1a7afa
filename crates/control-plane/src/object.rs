//! Reads what the loops need from the metadata of objects and from rejected requests.

use kube_core::Resource;
use kube_informer::ObjectName;

/// Returns the uid of the object's controlling owner if the owner is of kind `kind`.
pub(crate) fn controller_uid<K: Resource>(object: &K, kind: &str) -> Option<String> {
    let owners = object.meta().owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true) && owner.kind == kind)
        .map(|owner| owner.uid.clone())
        .next()
}

/// Returns the name of the object's controlling owner if the owner is of kind `kind`.
pub(crate) fn controller_name<K: Resource>(object: &K, kind: &str) -> Option<ObjectName> {
    let meta = object.meta();
    let owners = meta.owner_references.iter().flatten();
    owners
        .filter(|owner| owner.controller == Some(true) && owner.kind == kind)
        .map(|owner| ObjectName::new(meta.namespace.as_deref(), &owner.name))
        .next()
}

/// Returns whether the object has a deletion timestamp.
pub(crate) fn is_leaving<K: Resource>(object: &K) -> bool {
    object.meta().deletion_timestamp.is_some()
}

/// Returns whether the server responded 404 Not Found.
pub(crate) fn is_gone(error: &kube_client::Error) -> bool {
    matches!(error, kube_client::Error::Api(status) if status.is_not_found())
}

/// Returns whether the server rejected a creation because the namespace is being deleted.
pub(crate) fn is_in_ending_namespace(error: &anyhow::Error) -> bool {
    let Some(kube_client::Error::Api(status)) = error.downcast_ref() else {
        return false;
    };
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "NamespaceTerminating")
}

/// Returns the message of the server's response if `error` is one.
pub(crate) fn message_of(error: &anyhow::Error) -> String {
    match error.downcast_ref() {
        Some(kube_client::Error::Api(status)) => status.message.clone(),
        _ => format!("{error:#}"),
    }
}
