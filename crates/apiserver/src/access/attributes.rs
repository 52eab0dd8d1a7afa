//! Reads the attributes of a request by which it is authorized: verb, resource, namespace and name, or its path.
//!
//! Guarantees:
//! - The attributes depend only on the method, the path and the query, as in Kubernetes' `requestinfo.go`. A
//!   request for a resource that the server does not serve has attributes too.
//! - Authorization and routing find the same resource in a path.

use http::Method;

use super::User;
use crate::name_syntax::NameRule;
use crate::quote::Quoted;
use crate::route::{self, ListOptions, Query, Target};
use crate::selector::{LabelSelector, field};
use crate::status::ApiError;

/// The verb and the resource or the path of a request. A text is empty if the request has no such attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The path of a request without a resource, such as `/healthz`; `None` of a request for a resource.
    pub(super) path: Option<String>,
}

impl Attributes {
    /// Returns the attributes of a request, or `None` if the path has a malformed escape.
    pub(super) fn of(method: &Method, path: &str, query: &Query) -> Option<Attributes> {
        let segments = route::segments(path)?;
        Attributes::of_resource(method, &segments, query).or_else(|| {
            Some(Attributes {
                verb: method.as_str().to_ascii_lowercase(),
                path: Some(route::decoded(path)?),
                ..Attributes::default()
            })
        })
    }

    /// Returns the attributes of a request for a resource, or `None` if the path has none.
    fn of_resource(method: &Method, segments: &[String], query: &Query) -> Option<Attributes> {
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, rest) = match segments.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (watches, rest) = match rest {
            // The deprecated paths of watches, for any method.
            ["watch", rest @ ..] => (true, rest),
            _ => (false, rest),
        };
        let (namespace, rest) = match rest {
            // The namespace object and its subresources also belong to that namespace.
            ["namespaces", namespace] | ["namespaces", namespace, "status" | "finalize", ..] => {
                (*namespace, rest)
            }
            ["namespaces", namespace, below @ ..] => (*namespace, below),
            _ => ("", rest),
        };
        let (resource, below) = rest.split_first()?;
        let mut attributes = Attributes {
            verb: String::new(),
            group: group.to_owned(),
            resource: (*resource).to_owned(),
            subresource: below.get(1).copied().unwrap_or_default().to_owned(),
            namespace: namespace.to_owned(),
            name: below.first().copied().unwrap_or_default().to_owned(),
            path: None,
        };
        if watches {
            "watch".clone_into(&mut attributes.verb);
            return Some(attributes);
        }
        verb(method, attributes.name.is_empty(), query).clone_into(&mut attributes.verb);
        if matches!(attributes.verb.as_str(), "list" | "watch") {
            attributes.name = selected_name(query).unwrap_or_default();
        }
        Some(attributes)
    }

    /// Returns the attributes of a PUT request that creates the object at `target`.
    pub(super) fn of_creation(target: &Target) -> Attributes {
        let kind = &target.resource.kind;
        Attributes {
            verb: "create".to_owned(),
            group: kind.group.clone(),
            resource: kind.plural.clone(),
            subresource: String::new(),
            namespace: target.namespace.clone().unwrap_or_default(),
            name: target.name.clone().unwrap_or_default(),
            path: None,
        }
    }

    /// Returns whether the request creates a self review, such as a `SelfSubjectAccessReview`.
    pub(super) fn is_about_oneself(&self) -> bool {
        let reviews: &[&str] = match self.group.as_str() {
            "authorization.k8s.io" => &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            "authentication.k8s.io" => &["selfsubjectreviews"],
            _ => &[],
        };
        self.verb == "create" && reviews.contains(&self.resource.as_str())
    }

    /// Returns the 403 error of Kubernetes for a request of `user` with these attributes, and the reason if there is
    /// one.
    pub(super) fn forbidden(&self, user: &User, reason: &str) -> ApiError {
        let (user, verb) = (Quoted(&user.name), &self.verb);
        let mut why = if let Some(path) = &self.path {
            format!("User {user} cannot {verb} path {}", Quoted(path))
        } else {
            let resource = match self.subresource.as_str() {
                "" => self.resource.clone(),
                subresource => format!("{}/{subresource}", self.resource),
            };
            let (resource, group) = (Quoted(&resource), Quoted(&self.group));
            let place = match self.namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", Quoted(namespace)),
            };
            format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
        };
        // As in Kubernetes, the message can't look like HTML.
        for (character, escaped) in [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")] {
            why = why.replace(character, escaped);
        }
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        ApiError::denied((&self.group, &self.resource), &self.name, &why)
    }
}

fn verb(method: &Method, collection: bool, query: &Query) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        Method::GET | Method::HEAD if !collection => "get",
        Method::GET | Method::HEAD if query.flag("watch") == Some(true) => "watch",
        Method::GET | Method::HEAD => "list",
        _ => "",
    }
}

/// Returns the object name that the field selector of a list or watch requires by `metadata.name`, if any.
///
/// As in Kubernetes, there is no name if an option of the request can't be parsed, or if the name can't be in a
/// path.
fn selected_name(query: &Query) -> Option<String> {
    let options = ListOptions::parse(query).ok()?;
    LabelSelector::parse(options.label_selector.as_deref().unwrap_or_default()).ok()?;
    let terms = field::terms(options.field_selector.as_deref()?).ok()?;
    let name = terms
        .into_iter()
        .find_map(|(field, equal, value)| (field == "metadata.name" && equal).then_some(value))?;
    NameRule::PathSegment
        .faults(&name)
        .is_empty()
        .then_some(name)
}
