//! Defines the strategy of `CustomResourceDefinition`s: sets defaults, and validates names and versions.
//!
//! The schemas in a definition are not validated. The `verb::definition` module accepts the names of
//! definitions, and deletes the objects of deleted ones. This module does not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Hooks, Part};
use crate::name_syntax::{NameRule, dns_1035_faults};
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    prepare: complete,
    prepare_status,
    validate,
    prepare_update: keep,
    validate_update: check_change,
    ..Hooks::NONE
};

/// Annotation of each definition in a group of the Kubernetes project, such as `example.k8s.io`.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// Maximum number of errors about stored versions, which a client can make long.
const ERRORS_MAX: usize = 100;

/// Page that explains the approval, in error messages.
const PROCESS: &str = "https://github.com/kubernetes/enhancements/pull/1111";

/// Sets the defaults of `SetDefaults_CustomResourceDefinitionSpec` in Kubernetes.
pub(crate) fn complete(definition: &mut Object) {
    let mut spec = definition.part("spec");
    let kind = spec["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let is_empty = |value: &Value| value.is_null() || *value == "";
    if spec["names"].is_object() {
        if is_empty(&spec["names"]["singular"]) && !kind.is_empty() {
            spec["names"]["singular"] = json!(kind.to_lowercase());
        }
        if is_empty(&spec["names"]["listKind"]) && !kind.is_empty() {
            spec["names"]["listKind"] = json!(format!("{kind}List"));
        }
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    definition.set("spec", Some(spec));
}

/// Sets `status.storedVersions` of a new definition to its storage version.
pub(crate) fn prepare_status(status: &mut Value, definition: &Object, _now: &str) {
    let stored = storage_version(definition);
    status["storedVersions"] = stored.map_or(Value::Null, |version| json!([version]));
}

/// Adds the storage version to the versions in which objects are stored.
fn keep(new: &mut Object, _old: &Object, part: Part) {
    if !matches!(part, Part::Main | Part::All) {
        return;
    }
    let Some(version) = storage_version(new).map(str::to_owned) else {
        return;
    };
    let mut status = new.part("status");
    let mut stored = status["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !stored.iter().any(|known| *known == *version) {
        stored.push(json!(version));
        status["storedVersions"] = json!(stored);
        new.set("status", Some(status));
    }
}

fn versions(definition: &Object) -> &[Value] {
    let spec = definition.get("spec");
    let versions = spec.and_then(|spec| spec["versions"].as_array());
    versions.map_or(&[], Vec::as_slice)
}

fn names_of(versions: &[Value]) -> BTreeSet<&str> {
    let names = versions.iter().map(|version| version["name"].as_str());
    names.map(Option::unwrap_or_default).collect()
}

fn storage_version(definition: &Object) -> Option<&str> {
    let mut stored = versions(definition).iter();
    stored.find(|version| version["storage"] == true)?["name"].as_str()
}

fn validate(definition: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (name, spec) = (definition.text("name"), definition.part("spec"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (plural, group) = (text(&spec["names"]["plural"]), text(&spec["group"]));
    if !name.is_empty() && name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", Quoted(name), why));
    }
    errors.extend(check_spec(definition));
    errors.extend(check_approval(definition, None));
    errors
}

fn check_spec(definition: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = definition.part("spec");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&spec["group"]);
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else {
        let mut faults = NameRule::Subdomain.faults(&group);
        if faults.is_empty() && !group.contains('.') {
            faults.push("should be a domain with at least one dot".to_owned());
        }
        if !faults.is_empty() {
            errors.push(FieldError::invalid(
                "spec.group",
                Quoted(&group),
                &faults.join(","),
            ));
        }
    }
    match text(&spec["scope"]).as_str() {
        "Cluster" | "Namespaced" => {}
        "" => errors.push(FieldError::required("spec.scope", "")),
        other => errors.push(FieldError::unsupported(
            "spec.scope",
            other,
            &["Cluster", "Namespaced"],
        )),
    }
    let versions = versions(definition);
    for (at, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
            errors.push(FieldError::required(field, ""));
        }
    }
    for (at, version) in versions.iter().enumerate() {
        let name = text(&version["name"]);
        let faults = dns_1035_faults(&name);
        if !faults.is_empty() {
            let field = format!("spec.versions[{at}].name");
            errors.push(FieldError::invalid(field, Quoted(&name), &faults.join(",")));
        }
    }
    for (at, version) in versions.iter().enumerate() {
        errors.extend(check_scale(at, &version["subresources"]["scale"]));
    }
    let all = spec["versions"].to_string();
    if names_of(versions).len() < versions.len() {
        let why = "must contain unique version names";
        errors.push(FieldError::invalid("spec.versions", &all, why));
    }
    if versions
        .iter()
        .filter(|version| version["storage"] == true)
        .count()
        != 1
    {
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", &all, why));
    }
    errors.extend(check_names(&spec["names"]));
    errors
}

/// Follows `ValidateCustomResourceDefinitionSubresources` in Kubernetes. `at` is the index of the version.
fn check_scale(at: usize, scale: &Value) -> Vec<FieldError> {
    if scale.is_null() {
        return Vec::new();
    }
    let check = |member: &str, is_required: bool, parts: &[&str], shown: &str| {
        let field = format!("spec.versions[{at}].subresources.scale.{member}");
        match scale[member].as_str().unwrap_or_default() {
            "" => is_required.then(|| FieldError::required(field, "")),
            path if parts.iter().any(|part| path.starts_with(part)) => None,
            path => {
                let why = format!("should be a json path under {shown}");
                Some(FieldError::invalid(field, Quoted(path), &why))
            }
        }
    };
    let errors = [
        check("specReplicasPath", true, &[".spec."], ".spec"),
        check("statusReplicasPath", true, &[".status."], ".status"),
        check(
            "labelSelectorPath",
            false,
            &[".spec.", ".status."],
            "either .spec or .status",
        ),
    ];
    errors.into_iter().flatten().collect()
}

/// Follows `ValidateCustomResourceDefinitionStoredVersions` in Kubernetes.
fn check_stored_versions(definition: &Object) -> Vec<FieldError> {
    let status = definition.part("status");
    let stored = status["storedVersions"].as_array().into_iter().flatten();
    // As in Kubernetes, the last index of a repeated version counts.
    let stored: BTreeMap<&str, usize> = stored
        .enumerate()
        .filter_map(|(at, version)| Some((version.as_str()?, at)))
        .collect();
    let names = names_of(versions(definition));
    let gone = stored
        .into_iter()
        .filter(|(version, _)| !names.contains(version));
    let gone = gone.take(ERRORS_MAX).map(|(version, at)| {
        let why = format!(
            "missing from spec.versions; {version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {version} and removes {version} from status.storedVersions"
        );
        let field = format!("status.storedVersions[{at}]");
        FieldError::invalid(field, Quoted(version), &why)
    });
    gone.collect()
}

/// Follows `ValidateCustomResourceDefinitionNames` in Kubernetes.
fn check_names(names: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |member: &str| names[member].as_str().unwrap_or_default();
    for member in ["plural", "singular", "kind", "listKind"] {
        if text(member).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{member}"), ""));
        }
    }
    let faulty = |field: String, name: &str, lead: &str| {
        let faults = dns_1035_faults(&name.to_lowercase());
        let faults = if lead.is_empty() {
            dns_1035_faults(name)
        } else {
            faults
        };
        let why = format!("{lead}{}", faults.join(","));
        (!faults.is_empty()).then(|| FieldError::invalid(field, Quoted(name), &why))
    };
    let mixed = "may have mixed case, but should otherwise match: ";
    for (member, lead) in [
        ("plural", ""),
        ("singular", ""),
        ("kind", mixed),
        ("listKind", mixed),
    ] {
        if !text(member).is_empty() {
            errors.extend(faulty(format!("spec.names.{member}"), text(member), lead));
        }
    }
    let listed = |member: &str| -> Vec<FieldError> {
        let list = names[member].as_array().into_iter().flatten();
        let list = list
            .map(|name| name.as_str().unwrap_or_default())
            .enumerate();
        let faulty = |(at, name)| faulty(format!("spec.names.{member}[{at}]"), name, "");
        list.filter_map(faulty).collect()
    };
    errors.extend(listed("shortNames"));
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(
            "spec.names.listKind",
            Quoted(text("listKind")),
            why,
        ));
    }
    errors.extend(listed("categories"));
    errors
}

/// What the annotation [`APPROVAL`] of a definition says about its approval by the Kubernetes project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Approval {
    Invalid,
    Missing,
    Approved,
    Bypassed,
}

/// Returns the approval of a definition and its reason.
///
/// Returns `None` if the definition's group does not belong to the Kubernetes project.
fn approval(definition: &Object) -> Option<(Approval, String)> {
    let spec = definition.get("spec")?;
    let group = spec["group"].as_str().unwrap_or_default();
    let is_below = |owner: &str| {
        group
            .strip_suffix(owner)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if !is_below("k8s.io") && !is_below("kubernetes.io") {
        return None;
    }
    let annotation = definition
        .meta("annotations")
        .and_then(|all| all[APPROVAL].as_str());
    let annotation = annotation.unwrap_or_default();
    let url: Result<http::Uri, _> = annotation.parse();
    let is_url = url.is_ok_and(|url| url.scheme().is_some() && url.host().is_some());
    Some(match annotation {
        "" => (
            Approval::Missing,
            format!("protected groups must have approval annotation {APPROVAL:?}, see {PROCESS}"),
        ),
        _ if annotation.starts_with("unapproved") => (
            Approval::Bypassed,
            format!("not approved: {}", Quoted(annotation)),
        ),
        _ if is_url => (Approval::Approved, format!("approved in {annotation}")),
        _ => (
            Approval::Invalid,
            format!(
                "protected groups must have approval annotation {APPROVAL:?} with either a URL or a reason starting with \"unapproved\", see {PROCESS}"
            ),
        ),
    })
}

/// Returns an error if a definition in a group of the Kubernetes project has no valid annotation [`APPROVAL`].
///
/// Follows `validateAPIApproval` in Kubernetes. `old` is the definition before an update.
fn check_approval(new: &Object, old: Option<&Object>) -> Option<FieldError> {
    let (state, why) = approval(new)?;
    if old.is_some_and(|old| approval(old).is_some_and(|(before, _)| before == state)) {
        return None;
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    match state {
        Approval::Invalid => {
            let annotation = new
                .meta("annotations")
                .and_then(|all| all[APPROVAL].as_str());
            Some(FieldError::invalid(
                field,
                Quoted(annotation.unwrap_or_default()),
                &why,
            ))
        }
        Approval::Missing => Some(FieldError::required(field, &why)),
        Approval::Approved | Approval::Bypassed => None,
    }
}

/// Sets the condition `KubernetesAPIApprovalPolicyConformant`, if the group of the definition needs an approval.
pub(crate) fn set_approval(definition: &mut Object, now: &str) {
    let Some((state, why)) = approval(definition) else {
        return;
    };
    let (status, reason) = match state {
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(definition, kind, (status, reason, &why), now);
}

fn check_change(old: &Object, new: &Object, part: Part) -> Vec<FieldError> {
    if matches!(part, Part::Status) {
        return Vec::new();
    }
    let mut errors = check_spec(new);
    let (before, after) = (old.part("spec"), new.part("spec"));
    let is_established = condition(old, "Established").is_some_and(|it| it["status"] == "True");
    let of_kind: &[[&str; 2]] = if is_established {
        &[["scope", ""], ["names", "kind"]]
    } else {
        &[]
    };
    for [member, below] in of_kind.iter().chain(&[["group", ""], ["names", "plural"]]) {
        let value = |spec: &Value| match *below {
            "" => spec[member].clone(),
            below => spec[member][below].clone(),
        };
        if value(&before) != value(&after) {
            let field = ["spec", *member, *below].join(".");
            let field = field.trim_end_matches('.').to_owned();
            errors.push(FieldError::invalid(
                field,
                value(&after),
                "field is immutable",
            ));
        }
    }
    errors.extend(check_stored_versions(new));
    errors.extend(check_approval(new, Some(old)));
    errors
}

/// Returns a condition of a definition, such as `Established`, or `None` if there is none.
pub(crate) fn condition<'a>(definition: &'a Object, kind: &str) -> Option<&'a Value> {
    let conditions = definition.get("status")?["conditions"].as_array()?;
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
}

/// Returns whether a condition of a definition, such as `Established`, is true.
pub(crate) fn is_true(definition: &Object, kind: &str) -> bool {
    condition(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Sets a condition of a definition. The transition time changes only with the status.
pub(crate) fn set_condition(
    definition: &mut Object,
    kind: &str,
    (status, reason, message): (&str, &str, &str),
    now: &str,
) {
    let old = condition(definition, kind);
    let since = old.filter(|old| old["status"] == *status);
    let since = since.map_or_else(|| json!(now), |old| old["lastTransitionTime"].clone());
    let new = json!({
        "lastTransitionTime": since,
        "message": message,
        "reason": reason,
        "status": status,
        "type": kind,
    });
    let mut whole = definition.part("status");
    let mut conditions = whole["conditions"].as_array().cloned().unwrap_or_default();
    match conditions
        .iter_mut()
        .find(|condition| condition["type"] == kind)
    {
        Some(condition) => *condition = new,
        None => conditions.push(new),
    }
    whole["conditions"] = json!(conditions);
    definition.set("status", Some(whole));
}
