//! Kinds that are known at run time only: what names one, and what can't.

use kube_core::{
    ApiResource,
    discovery::{ApiCapabilities, Scope, verbs},
};

use super::{
    discovery::{Discovered, qualified},
    options::OptionsConflict,
};

/// What names a kind at run time: an `ApiResource`, or what discovery says of one, which also knows
/// whether it is namespaced and can be watched. A pair is what `kube_client::discovery` answers with.
pub trait KindRef {
    /// Its names.
    fn api_resource(&self) -> &ApiResource;

    /// Whether its objects are in namespaces; `None` if that is not known.
    fn is_namespaced(&self) -> Option<bool> {
        None
    }

    /// Whether the server lists and watches it; `None` if that is not known.
    fn is_watchable(&self) -> Option<bool> {
        None
    }
}

impl KindRef for ApiResource {
    fn api_resource(&self) -> &ApiResource {
        self
    }
}

impl KindRef for (ApiResource, ApiCapabilities) {
    fn api_resource(&self) -> &ApiResource {
        &self.0
    }

    fn is_namespaced(&self) -> Option<bool> {
        Some(self.1.scope == Scope::Namespaced)
    }

    fn is_watchable(&self) -> Option<bool> {
        let serves = |verb| self.1.supports_operation(verb);
        Some(serves(verbs::LIST) && serves(verbs::WATCH))
    }
}

impl KindRef for Discovered {
    fn api_resource(&self) -> &ApiResource {
        &self.resource
    }

    fn is_namespaced(&self) -> Option<bool> {
        Some(self.namespaced)
    }

    fn is_watchable(&self) -> Option<bool> {
        Some(self.serves(verbs::LIST) && self.serves(verbs::WATCH))
    }
}

/// Why no informer can be made of a kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KindError {
    /// A name is missing, or would lead a request elsewhere.
    #[error("{value:?} is no {field} of a kind")]
    Malformed {
        /// `group`, `version`, `apiVersion`, `kind` or `plural`.
        field: &'static str,
        /// What stands there.
        value: String,
    },
    /// Discovery says that it can't be listed and watched, as a review that is only ever created.
    #[error("the server does not list and watch {plural}")]
    NotWatchable {
        /// The kind, as in `pods` or `deployments.apps`.
        plural: String,
    },
    /// There is an informer of the kind in this scope with other options.
    #[error(transparent)]
    Options(#[from] OptionsConflict),
}

/// Looks whether a kind can have an informer, as far as can be seen without asking the server.
pub(super) fn check(kind: &(impl KindRef + ?Sized)) -> Result<(), KindError> {
    let ApiResource {
        group,
        version,
        api_version,
        kind: name,
        plural,
    } = kind.api_resource();
    let group_version = if group.is_empty() {
        version.clone()
    } else {
        format!("{group}/{version}")
    };
    let fields = [
        ("group", group, group.is_empty() || is_segment(group)),
        ("version", version, is_segment(version)),
        ("apiVersion", api_version, *api_version == group_version),
        ("kind", name, is_segment(name)),
        ("plural", plural, is_segment(plural)),
    ];
    for (field, value, is_good) in fields {
        if !is_good {
            let value = value.clone();
            return Err(KindError::Malformed { field, value });
        }
    }
    if kind.is_watchable() == Some(false) {
        let plural = qualified(plural, group);
        return Err(KindError::NotWatchable { plural });
    }
    Ok(())
}

/// Whether a name is one segment of a path, and none that leads elsewhere: letters, digits, and inside
/// `-` and `.`, which is what Kubernetes allows in all of these.
fn is_segment(name: &str) -> bool {
    let bytes = name.as_bytes();
    let [first, .., last] = bytes else {
        return bytes.len() == 1 && bytes[0].is_ascii_alphanumeric();
    };
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inside)
}
