//! Recognizes the intentional differences, which `verify/server-divergences.toml` describes.
//!
//! Guarantees: the name of each recognized difference is a name in that file. Each rule matches as few
//! differences as possible, because a rule that matches too many would hide a defect.

use serde_json::Value;

use crate::answer::{Answer, Content, Response};

const NULL_ITEMS: &str = "null_items_of_partial_lists";

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

#[cfg(test)]
mod tests;
