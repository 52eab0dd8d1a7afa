//! Describes kinds that are known only at run time, and checks whether an informer can use them.
//!
//! The check sends no request to the server.

use kube_core::{
    ApiResource,
    discovery::{ApiCapabilities, Scope, verbs},
};

use super::{
    discovery::{Discovered, qualified},
    options::OptionsConflict,
};

/// Describes a kind that is known only at run time.
///
/// An `ApiResource` contains only the names of the kind. A result of discovery also contains whether the kind
/// is namespaced and can be watched. Such results are [`Discovered`], and the pair
/// `(ApiResource, ApiCapabilities)` from `kube_client::discovery`.
pub trait KindRef {
    /// Returns the group, version, kind and plural name of the kind.
    fn api_resource(&self) -> &ApiResource;

    /// Returns whether the kind is namespaced; `None` if this is unknown.
    fn is_namespaced(&self) -> Option<bool> {
        None
    }

    /// Returns whether the server supports list and watch of the kind; `None` if this is unknown.
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

/// Error of a request for the informer of a kind that is known only at run time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KindError {
    /// A name of the kind is missing, or is not valid as a segment of a URL path.
    #[error("invalid {field} {value:?} of a kind")]
    Malformed {
        /// Name of the invalid field: `group`, `version`, `apiVersion`, `kind` or `plural`.
        field: &'static str,
        /// The invalid value of the field; empty if the value is missing.
        value: String,
    },
    /// Discovery reports that the server does not support list and watch of the kind, for example of
    /// `SubjectAccessReview`.
    #[error("the server does not support list and watch of {plural}")]
    NotWatchable {
        /// The plural name of the kind with its group, such as `deployments.apps`, or `pods` for the core
        /// group.
        plural: String,
    },
    /// The factory already has an informer of the requested kind with the requested namespaces and selectors.
    /// The other options of this informer differ from the requested options.
    #[error(transparent)]
    Options(#[from] OptionsConflict),
}

/// Checks whether a kind can have an informer, without a request to the server.
///
/// # Errors
/// Returns [`KindError::Malformed`] for an invalid name. Returns [`KindError::NotWatchable`] if the kind is
/// known not to support list and watch.
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

/// Returns whether a name can be used as a segment of a URL path without escaping.
fn is_segment(name: &str) -> bool {
    let bytes = name.as_bytes();
    let [first, .., last] = bytes else {
        return bytes.len() == 1 && bytes[0].is_ascii_alphanumeric();
    };
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().all(inside)
}
