//! Reads the attributes of a request that access rules check: verb, resource, namespace and name.
//!
//! Guarantees:
//! - The attributes depend only on the method, the path and the query, as in Kubernetes' `requestinfo.go`. A
//!   request for a resource that the server does not serve has attributes too.
//! - Authorization and routing find the same resource in a path.

use http::Method;

use super::User;
use crate::name_syntax::NameRule;
use crate::route::{self, ListOptions, Query, Target};
use crate::selector::{LabelSelector, field};
use crate::status::ApiError;

/// The verb and the resource of a request. A field is empty if the request has no such attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) verb: String,
    pub(super) group: String,
    pub(super) resource: String,
    pub(super) subresource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Attributes {
    /// Returns the attributes of a request, or `None` for a path without a resource, such as `/healthz`.
    pub(super) fn of(method: &Method, path: &str, query: &Query) -> Option<Attributes> {
        let segments = route::segments(path)?;
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

    /// Returns the 403 error of Kubernetes for a request of `user` with these attributes.
    pub(super) fn forbidden(&self, user: &User) -> ApiError {
        let slash = if self.subresource.is_empty() { "" } else { "/" };
        let place = if self.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", self.namespace)
        };
        let why = format!(
            "User {:?} cannot {} resource \"{}{slash}{}\" in API group {:?} {place}",
            user.name, self.verb, self.resource, self.subresource, self.group
        );
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
