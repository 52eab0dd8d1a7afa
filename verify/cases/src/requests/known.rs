//! Recognizes the intentional differences, which `verify/server-divergences.toml` describes.
//!
//! Guarantees: the name of each recognized difference is a name in that file. Each rule matches as few
//! differences as possible, because a rule that matches too many would hide a defect.

use serde_json::{Value, json};

use super::difference::Difference;
use crate::answer::{Answer, Content, Response};

const NULL_ITEMS: &str = "null_items_of_partial_lists";
const TYPES: &str = "types_are_not_checked";
const RULES: &str = "kinds_are_not_validated";
const POD: &str = "pod_update_message_has_no_diff";
const APPLY: &str = "server_side_apply";

/// Replaces `"items": null` by an empty list in each answer. Returns the name of this intentional difference
/// once for each replacement.
///
/// Both values mean the same to a client. The caller must call this function for the answers of both servers
/// before it compares them.
pub(super) fn settle(answers: &mut [Answer]) -> Vec<&'static str> {
    let bodies = answers.iter_mut().filter_map(|answer| match answer {
        Answer::Response(Response { body, .. }) | Answer::Prepared(Response { body, .. }) => {
            Some(body)
        }
        Answer::Impossible(_) | Answer::Events { .. } | Answer::Lines { .. } | Answer::Nothing => {
            None
        }
    });
    let settled = bodies.filter_map(|body| {
        let Content::Json(body) = body else {
            return None;
        };
        let items = body.get_mut("items").filter(|items| items.is_null())?;
        *items = Value::Array(Vec::new());
        Some(NULL_ITEMS)
    });
    settled.collect()
}

/// Returns the name of the intentional difference that `difference` shows, if it is one.
pub(super) fn name(difference: &Difference) -> Option<&'static str> {
    let (real, embedded) = difference.responses()?;
    let (of_real, of_embedded) = (Invalid::of(real), Invalid::of(embedded));
    match (of_real, of_embedded) {
        // kube-apiserver decodes a patched object before it reads the name and the revision.
        (Some(invalid), None)
            if invalid.is_of_a_type()
                && difference.is("PATCH")
                && (embedded.is_success() || matches!(embedded.status, 400 | 409)) =>
        {
            return Some(TYPES);
        }
        // The embedded server finds only what it validates after the decoding, or a value of another type
        // in the metadata, which it decodes.
        (Some(invalid), Some(found))
            if invalid.is_of_a_type()
                && difference.is("PATCH")
                && (!found.is_of_a_patch() || invalid.is_before_metadata(&found)) =>
        {
            return Some(TYPES);
        }
        // kube-apiserver validates an object before it looks for another one with the same name.
        (Some(invalid), None)
            if embedded.is_success() || (embedded.status == 409 && difference.is("POST")) =>
        {
            // The rules of metadata are the same for all kinds, and the embedded server has them.
            let is_of_kind = !invalid.0.is_empty() && invalid.of_metadata().is_empty();
            let is_of_kind = is_of_kind && !difference.is_of_a_validated_kind();
            return is_of_kind.then_some(RULES);
        }
        (Some(invalid), Some(found)) => {
            if invalid.is_of_a_pod() && found.is_of_a_pod() {
                return Some(POD);
            }
            if invalid.differs_in_managers(&found) {
                return Some(APPLY);
            }
            let has_same_metadata = invalid.of_metadata() == found.of_metadata();
            let is_part = found.0.iter().all(|cause| invalid.0.contains(cause));
            let is_of_kind = is_part && found.0.len() < invalid.0.len() && has_same_metadata;
            let is_of_kind = is_of_kind && !difference.is_of_a_validated_kind();
            return is_of_kind.then_some(RULES);
        }
        _ => {}
    }
    if real.status != embedded.status {
        return None;
    }
    if differs_in_empty_members(difference) {
        return Some(TYPES);
    }
    let (only_real, only_embedded) = difference.lines();
    match (&*only_real, &*only_embedded) {
        // kube-apiserver stores that the subresource manages the replicas, in a new revision.
        ([one], [other])
            if difference.command().ends_with("/scale")
                && !difference.is("GET")
                && [one, other]
                    .iter()
                    .all(|line| line.starts_with("\"resourceVersion\"")) =>
        {
            Some(APPLY)
        }
        _ => None,
    }
}

/// Returns whether the answers differ only in empty members outside `metadata`, which kube-apiserver omits.
///
/// The embedded server stores these members. A PUT or PATCH of empty members therefore changes the object
/// only on the embedded server, so the `generation` and the `resourceVersion` may differ too.
fn differs_in_empty_members(difference: &Difference) -> bool {
    let [real, embedded] = &difference.texts;
    let (Some((real_head, mut real)), Some((embedded_head, mut embedded))) =
        (head_and_body(real), head_and_body(embedded))
    else {
        return false;
    };
    let has_more = remove_empty_members(&mut embedded) > remove_empty_members(&mut real);
    if ["PUT", "PATCH"].iter().any(|verb| difference.is(verb)) {
        for member in ["generation", "resourceVersion"] {
            let (Some(real), Some(embedded)) = (
                real.pointer_mut(&format!("/metadata/{member}")),
                embedded.pointer(&format!("/metadata/{member}")),
            ) else {
                continue;
            };
            real.clone_from(embedded);
        }
    }
    has_more && real_head == embedded_head && real == embedded
}

/// Splits the text of a response into its head and its JSON body. Returns `None` if the body is no JSON
/// object.
fn head_and_body(text: &str) -> Option<(&str, Value)> {
    let (head, body) = text.split_at(text.find("\n  {")?);
    Some((head, serde_json::from_str(body).ok()?))
}

/// Removes all members that are empty objects or lists, except inside `metadata`. Returns their number.
fn remove_empty_members(value: &mut Value) -> usize {
    match value {
        Value::Array(values) => values.iter_mut().map(remove_empty_members).sum(),
        Value::Object(members) => {
            let before = members.len();
            let is_empty = |member: &Value| *member == json!({}) || *member == json!([]);
            members.retain(|_, member| !is_empty(member));
            let removed = before - members.len();
            let inner = members.iter_mut().filter(|(name, _)| *name != "metadata");
            removed
                + inner
                    .map(|(_, member)| remove_empty_members(member))
                    .sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns `true` if the command of `difference` is a read, or if both servers rejected the command.
///
/// Neither server has then changed an object, so the comparison can continue.
pub(super) fn is_harmless(difference: &Difference) -> bool {
    let Some((real, embedded)) = difference.responses() else {
        return false;
    };
    let is_read = difference.command().starts_with("> GET ");
    is_read || (real.status >= 400 && embedded.status >= 400)
}

/// The causes of a 422 response: fields and messages.
struct Invalid<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Invalid<'a> {
    fn of(response: &'a Response) -> Option<Self> {
        let Content::Json(body) = &response.body else {
            return None;
        };
        let text = |cause: &'a Value, member: &str| cause[member].as_str().unwrap_or_default();
        let causes = body["details"]["causes"].as_array().into_iter().flatten();
        let causes = causes.map(|cause| (text(cause, "field"), text(cause, "message")));
        (response.status == 422).then(|| Self(causes.collect()))
    }

    fn of_metadata(&self) -> Vec<&(&'a str, &'a str)> {
        let causes = self.0.iter();
        causes
            .filter(|(field, _)| field.starts_with("metadata"))
            .collect()
    }

    /// Returns whether the server reports that the patched object can't be decoded.
    fn is_of_a_patch(&self) -> bool {
        self.0.iter().any(|(field, _)| *field == "patch")
    }

    /// Returns whether the server reports that the patch sets a field to a value of the wrong type.
    fn is_of_a_type(&self) -> bool {
        const MESSAGES: [&str; 4] = [
            "error decoding from json",
            "illegal base64 data at input byte",
            "unrecognized type:",
            "json: cannot unmarshal ",
        ];
        let is_type = |message: &str| MESSAGES.iter().any(|part| message.contains(part));
        self.0
            .iter()
            .any(|(field, message)| *field == "patch" && is_type(message))
    }

    /// Returns whether the embedded server reports only wrong types in `metadata`, and kube-apiserver reports
    /// none there.
    ///
    /// This difference is possible because kube-apiserver reports only the first value of a wrong type. If
    /// that value is outside `metadata`, kube-apiserver does not report any wrong type in `metadata`.
    ///
    /// `self` contains the errors of kube-apiserver, and `found` those of the embedded server.
    fn is_before_metadata(&self, found: &Self) -> bool {
        const METADATA: &str = "into Go struct field ObjectMeta.";
        let is_in_metadata = |(_, message): &(&str, &str)| message.contains(METADATA);
        found.is_of_a_type()
            && found.0.iter().all(is_in_metadata)
            && !self.0.iter().any(is_in_metadata)
    }

    /// Returns whether both servers reject a patch for the same reason, but only kube-apiserver's message
    /// quotes `managedFields`.
    ///
    /// `self` contains the errors of kube-apiserver, and `found` contains the errors of the embedded server.
    fn differs_in_managers(&self, found: &Self) -> bool {
        let ([("patch", real)], [("patch", embedded)]) = (&*self.0, &*found.0) else {
            return false;
        };
        let reason = |message: &str| message.rsplit_once("}\": ").map(|(_, why)| why.to_owned());
        let has_managers = |message: &str| message.contains(r#"\"managedFields\":"#);
        has_managers(real)
            && !has_managers(embedded)
            && reason(real).is_some()
            && reason(real) == reason(embedded)
    }

    fn is_of_a_pod(&self) -> bool {
        const MESSAGE: &str = "pod updates may not change fields other than";
        self.0.iter().any(|(_, message)| message.contains(MESSAGE))
    }
}

#[cfg(test)]
mod tests;
