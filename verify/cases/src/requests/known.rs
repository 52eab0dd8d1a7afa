//! Recognizes the intentional differences, which `verify/server-divergences.toml` describes.
//!
//! Guarantees: each name is one of that file. A rule is as narrow as the responses allow, since it can hide
//! another difference.

use super::sides::Difference;

/// Returns the name of the intentional difference that `difference` shows, if it is one.
pub(super) fn name(difference: &Difference) -> Option<&'static str> {
    let Difference { real, embedded, .. } = difference;
    if real.contains(END) && without_members_of_bookmarks(real) == *embedded {
        return Some("bookmarks_have_only_metadata");
    }
    let (of_real, of_embedded) = (status(real)?, status(embedded)?);
    let only = |mark: char| only(difference, mark);
    if of_real == 422 && of_embedded != 422 {
        if real.contains("error decoding from json") || real.contains("unrecognized type:") {
            return Some("types_are_not_checked");
        }
        let is_metadata = |field: &&str| field.starts_with("metadata");
        let fields: Vec<_> = fields(real).collect();
        // The rules of metadata are the same for all kinds, and the embedded server has them.
        return (!fields.is_empty() && !fields.iter().any(is_metadata))
            .then_some("kinds_are_not_validated");
    }
    if of_real == 422 && of_embedded == 422 {
        return invalid(real, embedded);
    }
    if of_real == of_embedded
        && only('-') == [r#""items": null,"#]
        && only('+') == [r#""items": [],"#]
    {
        return Some("null_items_of_partial_lists");
    }
    let is_empty = |line: &str| {
        line.starts_with('"')
            && [": {},", ": [],", ": null,"]
                .iter()
                .any(|end| line.ends_with(end))
    };
    if of_real == of_embedded
        && only('-').is_empty()
        && matches!(&*only('+'), [line] if is_empty(line))
    {
        return Some("types_are_not_checked");
    }
    let is_scale = difference
        .script
        .lines()
        .next()
        .is_some_and(|line| line.ends_with("/scale"));
    let is_revision =
        |lines: Vec<String>| matches!(&*lines, [line] if line.starts_with("\"resourceVersion\""));
    if is_scale && of_real == of_embedded && is_revision(only('-')) && is_revision(only('+')) {
        // kube-apiserver stores that the subresource manages the replicas.
        return Some("server_side_apply");
    }
    let is_wrong_kind = |text: &str| text.contains(" cannot be handled as a ");
    if of_real == 400 && of_embedded == 400 && is_wrong_kind(real) && is_wrong_kind(embedded) {
        return Some("decode_messages");
    }
    None
}

/// Annotation of the bookmark after the initial events of a watch.
const END: &str = "k8s.io/initial-events-end";

/// Removes the members of bookmarks that are neither metadata nor the kind. kube-apiserver sends those of an
/// empty object.
fn without_members_of_bookmarks(events: &str) -> String {
    let mut kept = String::new();
    let (mut is_bookmark, mut is_member) = (false, false);
    for line in events.lines() {
        if !line.starts_with(' ') {
            is_bookmark = line == "BOOKMARK";
        }
        if let Some(member) = line.strip_prefix("    \"") {
            is_member = is_bookmark
                && !["apiVersion", "kind", "metadata"]
                    .iter()
                    .any(|name| member.starts_with(name));
        } else if !line.starts_with("     ")
            && !line.starts_with("    }")
            && !line.starts_with("    ]")
        {
            is_member = false;
        }
        if is_member {
            continue;
        }
        // The last member has no comma.
        let ends = is_bookmark && line.contains(END) && line.ends_with("},");
        kept.push_str(if ends { &line[..line.len() - 1] } else { line });
        kept.push('\n');
    }
    kept
}

/// Returns whether a program can continue after `difference`: neither server has changed an object.
pub(super) fn is_harmless(difference: &Difference) -> bool {
    let is_read = difference.script.contains("> GET ") || difference.script.contains("> EVENTS ");
    let is_error = |text| status(text).is_some_and(|status| status >= 400);
    is_read || (is_error(&difference.real) && is_error(&difference.embedded))
}

/// Compares two descriptions of an invalid object.
fn invalid(real: &str, embedded: &str) -> Option<&'static str> {
    const POD: &str = "pod updates may not change fields other than";
    if real.contains(POD) {
        return Some("pod_update_message_has_no_diff");
    }
    let distinct = |text| {
        let mut all: Vec<_> = fields(text).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let (mut of_real, of_embedded) = (distinct(real), distinct(embedded));
    if of_real == of_embedded {
        return Some("causes_are_not_repeated");
    }
    // Everything except the rules of the kind.
    of_real.retain(|field| field.starts_with("metadata"));
    (of_real == of_embedded).then_some("kinds_are_not_validated")
}

/// Returns the status of a response. Events have none.
fn status(text: &str) -> Option<u16> {
    text.split(' ').next()?.parse().ok()
}

/// Returns the fields of the causes of an invalid object.
fn fields(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let value = line.trim().strip_prefix("\"field\": \"")?;
        value.strip_suffix("\",")
    })
}

/// Returns the lines that only one server sent, without the mark: `-` for kube-apiserver.
fn only(difference: &Difference, mark: char) -> Vec<String> {
    let report = difference.report();
    let lines = report.lines().skip(difference.script.lines().count());
    let lines = lines.filter_map(|line| line.strip_prefix(mark));
    lines.map(|line| line.trim().to_owned()).collect()
}
