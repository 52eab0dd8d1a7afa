//! Maps the URL and method of a request to a verb and a resource.
//!
//! Guarantees:
//! - every path maps to exactly one [`Destination`], even if the server does not serve the path;
//! - an encoded slash (`%2F`) separates segments and is never part of a name. As in Go, a path is decoded
//!   before the split into segments.
//!
//! The module does not check whether the object exists, or whether the resource supports the verb.

mod options;

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;

use crate::kinds::Kinds;
use crate::quote::{Quoted, quoted_bytes};
use crate::resource::{Registry, Resource};
use crate::status::ApiError;

pub use options::ListOptions;
pub(crate) use options::{Query, Revision, WriteOptions};

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
    /// `/.well-known/openid-configuration`: the issuer of the tokens of service accounts.
    OpenIdConfiguration,
    /// `/openid/v1/jwks`: the key that verifies these tokens.
    OpenIdKeys,
    /// `/metrics`: the number of stored objects per resource.
    Metrics,
    Health,
    /// `/openapi/v3`: the list of OpenAPI documents.
    OpenApi,
    /// `/openapi/v3/api/<version>` and `/openapi/v3/apis/<group>/<version>`: one OpenAPI document.
    ///
    /// The fields are the group and the version. The group is empty for the core group.
    OpenApiOf(String, String),
    /// A path below `/openapi/v3` that names no document.
    OpenApiNowhere,
    /// `/openapi/v2`: the OpenAPI document of all groups.
    OpenApiV2,
    /// A path below a built-in API group that does not name a served resource: a 404 `Status`.
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
    /// Whether the path has an empty segment instead of a namespace. `namespace` is then `None`.
    pub(crate) lacks_namespace: bool,
    /// Whether the path is a deprecated one that always watches, such as `/api/v1/watch/pods`.
    pub(crate) watches: bool,
    /// The bytes of `name`, if they are not UTF-8. `name` then has U+FFFD instead of the invalid bytes.
    name_bytes: Option<Vec<u8>>,
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

    fn of(method: &Method, target: &Target, watch: bool) -> Verb {
        if target.watches {
            return match *method {
                Method::GET => Verb::Watch,
                _ => Verb::Other,
            };
        }
        match (method, target.name.is_some()) {
            (&Method::GET, false) if watch => Verb::Watch,
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
    /// Checks that the path of a namespaced object has a namespace, and that the name is valid in etcd keys.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if a check fails. Returns a 404 error if the name is not UTF-8, unless `verb` is
    /// [`Verb::Update`]. For an update, a later check compares the name with the name in the request body.
    pub(crate) fn check_name(&self, verb: Verb) -> Result<(), ApiError> {
        if self.lacks_namespace && self.name.is_some() {
            return Err(ApiError::bad_request("Namespace parameter required."));
        }
        if let (Some(bytes), Some(name)) = (&self.name_bytes, &self.name)
            && verb != Verb::Update
        {
            let (kind, quoted) = (&self.resource.kind, quoted_bytes(bytes));
            return Err(ApiError::not_found_as(kind, name, &quoted));
        }
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
        let Some(bytes) = decode(path) else {
            return Destination::Malformed;
        };
        let segments = split(&bytes);
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        // Only the router of the API ignores a slash at the end.
        let ends_with_slash = bytes.ends_with(b"/");
        let mut destination = match segments.as_slice() {
            ["healthz" | "livez" | "readyz", ..] if ends_with_slash => Destination::Nowhere,
            ["openapi", "v3", ..] if ends_with_slash => Destination::OpenApiNowhere,
            ["api"] => Destination::CoreVersions,
            ["apis"] => Destination::Groups,
            [] => Destination::Root,
            ["api", version, rest @ ..] if is_resource(rest) => target(registry, "", version, rest),
            ["apis", group, version, rest @ ..]
                if is_resource(rest) && registry.kinds().has_group(group) =>
            {
                target(registry, group, version, rest)
            }
            [first, rest @ ..] if rest.contains(&"") || first.is_empty() => {
                empty_segment(&segments)
            }
            ["apis", group, ..] if !registry.kinds().has_group(group) => Destination::Nowhere,
            ["apis", group] => Destination::Group((*group).to_owned()),
            ["api", version] => Destination::GroupVersion(String::new(), (*version).to_owned()),
            ["apis", group, version] => {
                Destination::GroupVersion((*group).to_owned(), (*version).to_owned())
            }
            ["api" | "apis", ..] => Destination::Unknown,
            ["version"] => Destination::Version,
            [".well-known", "openid-configuration"] => Destination::OpenIdConfiguration,
            ["openid", "v1", "jwks"] => Destination::OpenIdKeys,
            ["metrics"] if !ends_with_slash => Destination::Metrics,
            ["openapi", "v3"] => Destination::OpenApi,
            ["openapi", "v3", "api", version] => {
                Destination::OpenApiOf(String::new(), (*version).to_owned())
            }
            ["openapi", "v3", "apis", group, version] => {
                Destination::OpenApiOf((*group).to_owned(), (*version).to_owned())
            }
            ["openapi", "v2"] => Destination::OpenApiV2,
            ["openapi", "v3", ..] => Destination::OpenApiNowhere,
            ["healthz" | "livez" | "readyz"] => Destination::Health,
            ["healthz" | "livez" | "readyz", check] if CHECKS.contains(check) => {
                Destination::Health
            }
            _ => Destination::Nowhere,
        };
        if let Destination::Resource(target) = &mut destination {
            let is_name = |segment: &&[u8]| {
                let text = String::from_utf8_lossy(segment);
                matches!(&text, Cow::Owned(text) if Some(text) == target.name.as_ref())
            };
            let name = bytes.split(|byte| *byte == b'/').find(is_name);
            target.name_bytes = name.map(<[u8]>::to_vec);
        }
        destination.passed_on(registry.kinds(), &segments)
    }

    /// Returns [`Destination::Nowhere`] for an unknown path below a custom group, otherwise `self`.
    ///
    /// kube-apiserver serves custom groups with a separate handler. For an unknown path, this handler
    /// delegates to the next handler, which responds with a 404 in plain text.
    fn passed_on(self, kinds: &Kinds, segments: &[&str]) -> Destination {
        let ["apis", group, ..] = segments else {
            return self;
        };
        let is_unknown = match &self {
            Destination::Unknown => true,
            Destination::GroupVersion(group, version) => !kinds.has_version(group, version),
            _ => false,
        };
        if is_unknown && kinds.has_group(group) && kinds.is_custom_group(group) {
            Destination::Nowhere
        } else {
            self
        }
    }

    /// Returns the verb of a request. `watch` is whether the query requests a watch.
    pub(crate) fn verb(&self, method: &Method, watch: bool) -> Verb {
        match self {
            Destination::Resource(target) => Verb::of(method, target, watch),
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

/// Returns the destination of a path that has an empty segment. Such a path names no resource.
fn empty_segment(segments: &[&str]) -> Destination {
    match segments {
        ["api" | "apis", ..] => Destination::Unknown,
        _ => Destination::Nowhere,
    }
}

/// Returns whether a path can name a resource. `rest` contains the segments of the path after the version.
///
/// A leading `watch` is ignored. Only the namespace may be empty, as in `namespaces//pods`.
fn is_resource(rest: &[&str]) -> bool {
    match rest {
        ["watch", rest @ ..] => is_resource(rest),
        ["namespaces", "", rest @ ..] | rest => !rest.is_empty() && !rest.contains(&""),
    }
}

fn target(registry: &Registry, group: &str, version: &str, rest: &[&str]) -> Destination {
    let (watches, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        _ => (false, rest),
    };
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
    if watches && (subresource.is_some() || !resource.serves("watch")) {
        return Destination::Unknown;
    }
    Destination::Resource(Target {
        resource: Arc::clone(resource),
        namespace: namespace.filter(|it| !it.is_empty()).map(str::to_owned),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
        lacks_namespace: namespace == Some(""),
        watches,
        name_bytes: None,
    })
}

/// Decodes the `%XX` escapes of a path, and then splits the decoded path at its slashes.
///
/// An escaped slash (`%2F`) therefore separates segments. Empty segments remain, except at the end. Bytes
/// that are not valid UTF-8 become U+FFFD.
///
/// Returns `None` if an escape is malformed.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    decode(path).map(|path| split(&path))
}

/// Decodes the `%XX` escapes of a path. Bytes that are not valid UTF-8 become U+FFFD.
///
/// Returns `None` if an escape is malformed.
pub(crate) fn decoded(path: &str) -> Option<String> {
    decode(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn split(path: &[u8]) -> Vec<String> {
    let path = String::from_utf8_lossy(path);
    let path = path.strip_prefix('/').unwrap_or(&path);
    let path = path.trim_end_matches('/');
    if path.is_empty() {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

fn decode(path: &str) -> Option<Vec<u8>> {
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
    Some(bytes)
}

#[cfg(test)]
mod tests;
