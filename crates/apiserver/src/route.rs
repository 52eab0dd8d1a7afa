//! Maps the URL and method of a request to a verb and a resource.
//!
//! Guarantees:
//! - every path maps to exactly one [`Destination`], even if the server does not serve the path;
//! - a path is decoded before it is split into segments, as by Go, so an encoded slash (`%2F`) is a separator
//!   and never part of a name.
//!
//! The module does not check whether the object exists, or whether the resource supports the verb.

mod options;

use std::sync::Arc;

use http::Method;

use crate::quote::Quoted;
use crate::resource::{Registry, Resource};
use crate::status::ApiError;

pub use options::ListOptions;
pub(crate) use options::{Query, Revision};

/// The action that a request performs, named as in Kubernetes' audit log and authorization rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object (GET).
    Get,
    /// Reads the objects of a collection (GET).
    List,
    /// Watches a collection or one object (GET with `watch=true`).
    Watch,
    /// Creates an object, or a subresource such as `pods/binding` (POST).
    Create,
    /// Replaces an object or a subresource (PUT).
    Update,
    /// Changes an object or a subresource (PATCH).
    Patch,
    /// Deletes one object (DELETE).
    Delete,
    /// Deletes those objects of a collection that match the selectors of the request (DELETE).
    DeleteCollection,
    /// Any other request, such as discovery, `/healthz`, an unknown path, or the PUT of a collection.
    Other,
}

/// The resource or the endpoint that the path of a request names.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Resource(Target),
    /// `/api`: the list of versions of the core group.
    CoreVersions,
    /// `/apis`: the list of API groups.
    Groups,
    /// `/apis/<group>`: discovery of the versions of one group.
    Group(String),
    /// `/api/<version>` and `/apis/<group>/<version>`: the resources of one group and version.
    GroupVersion(String, String),
    /// `/`: the list of served paths.
    Root,
    Version,
    Health,
    /// `/openapi/v3`: the list of OpenAPI documents.
    OpenApi,
    /// `/openapi/v3/api/<version>` and `/openapi/v3/apis/<group>/<version>`: one OpenAPI document.
    ///
    /// The fields are the group, empty for the core group, and the version.
    OpenApiOf(String, String),
    /// A path below a served API group that does not name a served resource: a 404 `Status`.
    Unknown,
    /// Any other unknown path: a 404 in plain text.
    Nowhere,
    /// A path with an invalid escape, such as `%zz`: a 400 in plain text.
    Malformed,
}

/// Names of single health checks.
const CHECKS: [&str; 5] = ["etcd", "informer-sync", "log", "ping", "shutdown"];

/// The resource that a path names, and the optional parts of the path.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

// === impl Verb ===

impl Verb {
    /// Returns the name of the verb in lower case, as in the `verbs` of a discovery response.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Other => "other",
        }
    }

    /// Returns whether requests with this verb can change stored objects.
    pub fn is_write(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch | Verb::Other)
    }

    fn of(method: &Method, target: &Target) -> Verb {
        match (method, target.name.is_some()) {
            (&Method::GET, true) => Verb::Get,
            (&Method::GET, false) => Verb::List,
            (&Method::POST, false) => Verb::Create,
            (&Method::POST, true) if target.subresource.is_some() => Verb::Create,
            (&Method::PUT, true) => Verb::Update,
            (&Method::PATCH, true) => Verb::Patch,
            (&Method::DELETE, true) => Verb::Delete,
            (&Method::DELETE, false) => Verb::DeleteCollection,
            _ => Verb::Other,
        }
    }
}

impl std::fmt::Display for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Target ===

impl Target {
    /// Checks that the name in the path can be part of a key in etcd.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if it can't.
    pub(crate) fn check_name(&self) -> Result<(), ApiError> {
        let name = self.name.as_deref().unwrap_or_default();
        let why = match name {
            "." => "may not be '.'",
            ".." => "may not be '..'",
            _ if name.contains('%') => "may not contain '%'",
            _ => return Ok(()),
        };
        let name = Quoted(name);
        Err(ApiError::bad_request(format!(
            "Name parameter invalid: {name}: {why}"
        )))
    }
}

// === impl Destination ===

impl Destination {
    pub(crate) fn find(registry: &Registry, path: &str) -> Destination {
        let Some(segments) = segments(path) else {
            return Destination::Malformed;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["api"] => Destination::CoreVersions,
            ["apis"] => Destination::Groups,
            [] => Destination::Root,
            [first, rest @ ..] if rest.contains(&"") || first.is_empty() => {
                empty_segment(&segments)
            }
            ["apis", group, ..] if !registry.kinds().has_group(group) => Destination::Nowhere,
            ["apis", group] => Destination::Group((*group).to_owned()),
            ["api", version] => Destination::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group, version] => {
                Destination::GroupVersion((*group).to_owned(), (*version).to_owned())
            }
            ["api", version, rest @ ..] => target(registry, "", version, rest),
            ["apis", group, version, rest @ ..] => target(registry, group, version, rest),
            ["version"] => Destination::Version,
            ["openapi", "v3"] => Destination::OpenApi,
            ["openapi", "v3", "api", version] => {
                Destination::OpenApiOf(String::new(), (*version).to_owned())
            }
            ["openapi", "v3", "apis", group, version] => {
                Destination::OpenApiOf((*group).to_owned(), (*version).to_owned())
            }
            ["healthz" | "livez" | "readyz"] => Destination::Health,
            ["healthz" | "livez" | "readyz", check] if CHECKS.contains(check) => {
                Destination::Health
            }
            _ => Destination::Nowhere,
        }
    }

    /// Returns the verb of a request; `watch` is whether its query requests a watch.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> Verb {
        match self {
            Destination::Resource(_) if watch && method == Method::GET => Verb::Watch,
            Destination::Resource(target) => Verb::of(method, target),
            _ => Verb::Other,
        }
    }

    pub(crate) fn target(&self) -> Option<&Target> {
        match self {
            Destination::Resource(target) => Some(target),
            _ => None,
        }
    }
}

/// Returns the destination of a path with an empty segment, which names no resource.
fn empty_segment(segments: &[&str]) -> Destination {
    match segments {
        ["api" | "apis", ..] => Destination::Unknown,
        _ => Destination::Nowhere,
    }
}

fn target(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Destination {
    let (namespace, rest) = match rest {
        // `namespaces/x/pods` is below a namespace.
        // `namespaces/x` and its own subresources belong to the resource `namespaces`.
        ["namespaces", _, "status" | "finalize"] => (None, rest),
        ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
        _ => (None, rest),
    };
    let (plural, name, subresource) = match rest {
        [plural] => (plural, None, None),
        [plural, name] => (plural, Some(*name), None),
        [plural, name, subresource] => (plural, Some(*name), Some(*subresource)),
        _ => return Destination::Unknown,
    };
    let Some(resource) = registry.by_path(group, version, plural) else {
        return Destination::Unknown;
    };
    // A cluster-scoped resource has no path below a namespace, and a namespaced object has no path without a
    // namespace.
    let fits = match namespace {
        Some(_) => resource.is_namespaced(),
        None => !resource.is_namespaced() || name.is_none(),
    };
    // A review is only created, so its path has no name.
    if !fits || (name.is_some() && !resource.serves("get")) {
        return Destination::Unknown;
    }
    Destination::Resource(Target {
        resource: Arc::clone(resource),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    })
}

/// Decodes the `%XX` escapes of a path, and splits the path into its segments.
///
/// Empty segments remain, except one at the end. Bytes that are not valid UTF-8 become U+FFFD.
///
/// Returns `None` if an escape is malformed.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let path = decode(path)?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    Some(path.split('/').map(str::to_owned).collect())
}

/// Decodes the `%XX` escapes of a path.
fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = tail.get(..2)?;
            if !digits.iter().all(u8::is_ascii_hexdigit) {
                return None;
            }
            let digits = std::str::from_utf8(digits).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
