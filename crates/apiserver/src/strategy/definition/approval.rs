//! Checks the approval of definitions in groups of the Kubernetes project.
//!
//! Guarantees: the rules and messages are those of `validateAPIApproval` in Kubernetes.

use super::set_condition;
use super::url::Url;
use crate::object::Object;
use crate::quote::Quoted;
use crate::strategy::report::{Path, Report};

/// Annotation of each definition in a group of the Kubernetes project, such as `example.k8s.io`.
const ANNOTATION: &str = "api-approved.kubernetes.io";

/// Page that explains the approval, in error messages.
const PROCESS: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// What the annotation [`ANNOTATION`] of a definition says about its approval by the Kubernetes project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approval {
    Invalid,
    Missing,
    Approved,
    Bypassed,
}

fn annotation(definition: &Object) -> &str {
    let annotations = definition.meta("annotations");
    let annotation = annotations.and_then(|all| all[ANNOTATION].as_str());
    annotation.unwrap_or_default()
}

/// Returns whether the group of a definition belongs to the Kubernetes project.
fn is_protected(definition: &Object) -> bool {
    let spec = definition.get("spec");
    let group = spec.and_then(|spec| spec["group"].as_str());
    let group = group.unwrap_or_default();
    ["k8s.io", "kubernetes.io"].into_iter().any(|owner| {
        group
            .strip_suffix(owner)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Returns the approval of a definition and its reason.
fn approval(definition: &Object) -> (Approval, String) {
    let annotation = annotation(definition);
    let is_url = |url: Url| !url.scheme.is_empty() && !url.host.is_empty();
    match annotation {
        "" => (
            Approval::Missing,
            format!("protected groups must have approval annotation {ANNOTATION:?}, see {PROCESS}"),
        ),
        _ if annotation.starts_with("unapproved") => (
            Approval::Bypassed,
            format!("not approved: {}", Quoted(annotation)),
        ),
        _ if Url::parse_request(annotation).is_some_and(is_url) => {
            (Approval::Approved, format!("approved in {annotation}"))
        }
        _ => (
            Approval::Invalid,
            format!(
                "protected groups must have approval annotation {ANNOTATION:?} with either a URL or a reason starting with \"unapproved\", see {PROCESS}"
            ),
        ),
    }
}

/// Adds an error if a definition in a group of the Kubernetes project has no valid annotation [`ANNOTATION`].
///
/// `old` is the definition before an update. An update that keeps the state of the approval is valid.
pub(super) fn check(new: &Object, old: Option<&Object>, report: &mut Report) {
    if !is_protected(new) {
        return;
    }
    let (state, why) = approval(new);
    if old.is_some_and(|old| approval(old).0 == state) {
        return;
    }
    let metadata = Path::root("metadata");
    let annotations = metadata.child("annotations");
    let path = annotations.key(ANNOTATION);
    match state {
        Approval::Invalid => report.invalid(&path, Quoted(annotation(new)), why),
        Approval::Missing => report.required(&path, why),
        Approval::Approved | Approval::Bypassed => {}
    }
}

/// Sets the condition `KubernetesAPIApprovalPolicyConformant`, if the group of the definition needs an approval.
pub(crate) fn set_approval(definition: &mut Object, now: &str) {
    if !is_protected(definition) {
        return;
    }
    let (state, why) = approval(definition);
    let (status, reason) = match state {
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(definition, kind, (status, reason, &why), now);
}
