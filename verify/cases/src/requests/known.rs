//! Recognizes the intentional differences, which `verify/server-divergences.toml` describes.
//!
//! Guarantees: the name of each recognized difference is a name in that file. Each rule matches as few
//! differences as possible, because a rule that matches too many would hide a defect.

use serde_json::Value;

use super::difference::Difference;
use crate::answer::{Answer, Content, Response};

const NULL_ITEMS: &str = "null_items_of_partial_lists";
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
        Answer::Impossible(_)
        | Answer::Events { .. }
        | Answer::Lines { .. }
        | Answer::Exchanges(_)
        | Answer::Nothing => None,
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
    if let (Some(invalid), Some(found)) = (Invalid::of(real), Invalid::of(embedded)) {
        return invalid.differs_in_managers(&found).then_some(APPLY);
    }
    if real.status != embedded.status {
        return None;
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
}

#[cfg(test)]
mod tests;
