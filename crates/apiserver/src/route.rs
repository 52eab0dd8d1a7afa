//! Maps a URL and a method to a verb on a resource.
//!
//! Guarantees:
//! - every path of the Kubernetes API has exactly one [`Destination`]: an unserved path below a served group is
//!   `Unknown`, any other unserved path is `Nowhere`;
//! - a path is decoded once per segment, so an encoded slash is part of a name and never a separator.

mod options;

use std::sync::Arc;

use http::Method;

use crate::resource::{Registry, Resource};

pub use options::ListOptions;
pub(crate) use options::{Query, Revision};

/// The action of a request, as in Kubernetes' audit and authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Watch a collection or one object.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// Delete one object.
    Delete,
    /// Delete the selected objects of a collection.
    DeleteCollection,
    /// Discovery, health, version, and unserved paths.
    Other,
}

/// What the path of a request refers to.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Resource(Target),
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: the groups.
    Groups,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1` and `/apis/<group>/<version>`.
    GroupVersion(String, String),
    /// `/`: the list of paths.
    Root,
    Version,
    Health,
    /// `/openapi/v3`: the list of documents.
    OpenApi,
    /// `/openapi/v3/api/v1` and `/openapi/v3/apis/<group>/<version>`.
    OpenApiOf(String, String),
    /// A path below a served group, without a resource.
    Unknown,
    /// A path that is not served.
    Nowhere,
}

/// A resource, one object of it, or a subresource of one object.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

// === impl Verb ===

impl Verb {
    /// Returns the name of the verb in lower case, as in discovery.
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

    /// Whether the verb can change stored objects.
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

// === impl Destination ===

impl Destination {
    pub(crate) fn find(registry: &Registry, path: &str) -> Destination {
        let Some(segments) = segments(path) else {
            return Destination::Nowhere;
        };
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["api"] => Destination::CoreVersions,
            ["apis"] => Destination::Groups,
            [] => Destination::Root,
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
            ["healthz" | "livez" | "readyz", ..] => Destination::Health,
            _ => Destination::Nowhere,
        }
    }

    /// Returns the verb of a method on this path.
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

fn target(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Destination {
    let (namespace, rest) = match rest {
        // `namespaces/x/pods` is below a namespace; `namespaces/x` and its own subresources belong to the namespace.
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
    // A cluster-scoped resource has no path below a namespace, and a namespaced object has no path without one.
    let fits = match namespace {
        Some(_) => resource.is_namespaced(),
        None => !resource.is_namespaced() || name.is_none(),
    };
    if !fits {
        return Destination::Unknown;
    }
    Destination::Resource(Target {
        resource: Arc::clone(resource),
        namespace: namespace.map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
    })
}

/// Decodes the non-empty segments of a path; `None` if one is malformed.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(decode)
        .collect()
}

/// Decodes `%XX`; `None` if it is incomplete or not UTF-8.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
