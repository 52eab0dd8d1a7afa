//! Turns the answers of a case into the text that the case expects.
//!
//! Guarantees: the text contains no value that differs between two runs of the same case on the same server.
//! The members of objects in responses and watch events are in the order in which the server sent them.
//!
//! The table lists the values that the text replaces. The text does not show whether a replaced value equals
//! the value that the client sent. `managedFields` are left out.
//!
//! | value | in the text |
//! | --- | --- |
//! | revision of an object | `r1`, `r2`, … by its rank among the revisions of all objects of the case |
//! | revision of a list or a bookmark | `r2+`: at least `r2`, and before `r3` |
//! | revision in the message of a `Status`, or in YAML | `<revision>` |
//! | uid, or another UUID | `<uid 1>`, `<uid 2>`, … by first occurrence |
//! | time | `<time>` |
//! | text of over 1,000 characters | its first 100 characters and its length |
//! | generated name | its prefix, and `<5>` for the five random letters |
//! | continue token | `<continue>` |
//! | age in a table | `<age>` |
//! | cluster IP, node port | `<ip>`, `<port>` |
//! | body in protobuf | `(protobuf)` |
//! | compressed body | `(gzip)` |

mod forms;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde_json::Value;

use self::forms::{is_age, shortened, uuids, without_times};
use crate::{
    answer::{Answer, Content, End, Response},
    json::Order,
    layout,
};

/// Headers that the text contains, after the content type.
const HEADERS: [&str; 6] = [
    "allow",
    "content-encoding",
    "location",
    "retry-after",
    "warning",
    "www-authenticate",
];

/// Number of random letters that a server appends to `generateName`.
const GENERATED: usize = 5;

/// First bytes of an object in protobuf.
const PROTOBUF: &[u8] = b"k8s\0";

/// First bytes of a body that is compressed with gzip.
const GZIP: &[u8] = b"\x1f\x8b";

/// Names for the values that differ between runs.
#[derive(Debug, Default)]
struct Names {
    /// Revisions of objects, in ascending order.
    revisions: Vec<u128>,
    uids: BTreeMap<String, usize>,
    /// Generated names, and the texts that replace them.
    generated: BTreeMap<String, String>,
    has_owners: bool,
}

/// Whether the texts have `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owners {
    Shown,
    Omitted,
}

/// Returns the text of each answer of one case.
pub(crate) fn texts(answers: &[Answer], owners: Owners) -> Vec<String> {
    let mut names = Names {
        has_owners: owners == Owners::Shown,
        ..Names::default()
    };
    let mut revisions = BTreeSet::new();
    for answer in answers {
        for (value, is_bookmark) in values(answer) {
            names.learn_uids(value);
            names.learn(value, is_bookmark, &mut revisions);
        }
    }
    names.revisions = revisions.into_iter().collect();
    answers.iter().map(|answer| names.text(answer)).collect()
}

/// Returns the YAML of an object, with the replacements of the other texts. `object` is the same object in JSON.
pub(crate) fn yaml(text: &str, object: &Value) -> String {
    let mut names = Names::default();
    names.learn_uids(object);
    let ips = object["spec"]["clusterIPs"]
        .as_array()
        .into_iter()
        .flatten();
    let ips: Vec<&str> = ips
        .filter_map(Value::as_str)
        .filter(|ip| *ip != "None")
        .collect();
    let lines = text.lines().map(|line| {
        let mut line = names.message(line);
        for ip in &ips {
            line = line.replace(ip, "<ip>");
        }
        match line.split_once("odePort: ") {
            Some((name, _)) => format!("{name}odePort: <port>\n"),
            None => line + "\n",
        }
    });
    lines.collect()
}

/// Returns the JSON values in an answer: the response body, or the objects of the events or lines.
///
/// The boolean of each value is true if the value is the object of a bookmark.
fn values(answer: &Answer) -> Vec<(&Value, bool)> {
    match answer {
        Answer::Response(response) | Answer::Prepared(response) => match &response.body {
            Content::Json(value) => vec![(value, false)],
            Content::Other(_) | Content::Stream => Vec::new(),
        },
        Answer::Events { events, .. } => {
            let events = events.iter();
            events
                .map(|event| (&event["object"], is_bookmark(event)))
                .collect()
        }
        Answer::Lines { lines, .. } => {
            let objects = lines.iter().flat_map(|line| &line.objects);
            objects.map(|object| (object, false)).collect()
        }
        Answer::Impossible(_) | Answer::Exchanges(_) | Answer::Nothing => Vec::new(),
    }
}

fn is_bookmark(event: &Value) -> bool {
    event["type"] == "BOOKMARK"
}

/// Returns whether `value` is a list or a table, whose revision is that of the server's state.
fn is_list(value: &Value) -> bool {
    // An empty list of metadata has the items `null`.
    let items = value.get("items");
    items.is_some_and(|items| items.is_array() || items.is_null()) || value["kind"] == "Table"
}

impl Names {
    fn learn_uids(&mut self, value: &Value) {
        match value {
            Value::Object(members) => members.values().for_each(|member| self.learn_uids(member)),
            Value::Array(items) => items.iter().for_each(|item| self.learn_uids(item)),
            Value::String(text) => {
                for uid in uuids(text) {
                    let next = self.uids.len() + 1;
                    self.uids.entry(uid.to_owned()).or_insert(next);
                }
            }
            _ => {}
        }
    }

    fn learn(&mut self, value: &Value, is_bookmark: bool, revisions: &mut BTreeSet<u128>) {
        match value {
            Value::Object(members) => {
                let metadata = &value["metadata"];
                if !is_list(value)
                    && !is_bookmark
                    && let Some(revision) = revision(metadata)
                {
                    revisions.insert(revision);
                }
                let (name, prefix) = (metadata["name"].as_str(), metadata["generateName"].as_str());
                if let (Some(name), Some(prefix)) = (name, prefix)
                    && let Some(random) = name.strip_prefix(prefix)
                    && random.len() == GENERATED
                {
                    let text = format!("{prefix}<{GENERATED}>");
                    self.generated.insert(name.to_owned(), text);
                }
                for (name, member) in members {
                    // The metadata of this object have been read above.
                    if name != "metadata" {
                        self.learn(member, is_bookmark, revisions);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.learn(item, is_bookmark, revisions);
                }
            }
            _ => {}
        }
    }

    fn text(&self, answer: &Answer) -> String {
        match answer {
            Answer::Response(response) => self.response(response),
            Answer::Events { events, end } => {
                let events = events.iter().map(|event| {
                    let object = self.renamed(&event["object"], is_bookmark(event));
                    let kind = event["type"].as_str().unwrap_or("(no type)");
                    let order = event.order.of_member("object");
                    format!("{kind}\n{}", layout::json(&object, order, 2))
                });
                ended(events.collect(), *end)
            }
            Answer::Lines { lines, end } => {
                let lines = lines.iter().map(|line| {
                    let objects = line.objects.iter();
                    let objects = objects.map(|object| {
                        layout::json(&self.renamed(object, false), &Order::Sorted, 2)
                    });
                    let objects: String = objects.collect();
                    format!("{}\n{objects}", self.message(&line.text))
                });
                ended(lines.collect(), *end)
            }
            Answer::Prepared(response) if !response.is_success() => self.response(response),
            Answer::Exchanges(text) => text.clone(),
            Answer::Prepared(_) | Answer::Nothing => String::new(),
            Answer::Impossible(reason) => format!("({reason})\n"),
        }
    }

    fn response(&self, response: &Response) -> String {
        let kind = response
            .header("content-type")
            .unwrap_or("(no content type)");
        let mut text = format!("{} {kind}\n", response.status);
        for name in HEADERS {
            let found = response.headers.iter().filter(|header| header.0 == name);
            for (name, value) in found {
                let _ = writeln!(text, "{name}: {}", self.in_text(value));
            }
        }
        match &response.body {
            Content::Json(json) => {
                text.push_str(&layout::json(&self.renamed(json, false), &json.order, 2));
            }
            Content::Other(bytes) if bytes.starts_with(PROTOBUF) => text.push_str("  (protobuf)\n"),
            Content::Other(bytes) if bytes.starts_with(GZIP) => text.push_str("  (gzip)\n"),
            Content::Other(bytes) if kind == "application/yaml" => {
                for line in String::from_utf8_lossy(bytes).lines() {
                    let _ = writeln!(text, "  {}", self.message(line));
                }
            }
            Content::Other(bytes) => {
                for line in String::from_utf8_lossy(bytes).lines() {
                    let _ = writeln!(text, "  {line}");
                }
            }
            Content::Stream => {}
        }
        text
    }

    fn renamed(&self, value: &Value, is_bookmark: bool) -> Value {
        match value {
            Value::Object(members) => {
                let is_state = is_bookmark || is_list(value);
                let mut of = serde_json::Map::new();
                for (name, member) in members {
                    let renamed = match (&**name, member) {
                        ("metadata", Value::Object(_)) => self.metadata(member, is_state),
                        ("message", Value::String(text)) => self.message(text).into(),
                        ("clusterIP", Value::String(ip)) if ip != "None" && !ip.is_empty() => {
                            "<ip>".into()
                        }
                        ("clusterIPs", Value::Array(ips)) if ips.iter().all(|ip| ip != "None") => {
                            vec!["<ip>"; ips.len()].into()
                        }
                        ("nodePort" | "healthCheckNodePort", Value::Number(_)) => "<port>".into(),
                        ("cells", Value::Array(cells)) => {
                            let cell = |cell: &Value| match cell {
                                Value::String(age) if is_age(age) => "<age>".into(),
                                cell => self.renamed(cell, false),
                            };
                            Value::Array(cells.iter().map(cell).collect())
                        }
                        ("managedFields", _) if !self.has_owners => continue,
                        _ => self.renamed(member, is_bookmark),
                    };
                    of.insert(name.clone(), renamed);
                }
                Value::Object(of)
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.renamed(item, is_bookmark));
                Value::Array(items.collect())
            }
            Value::String(text) => self.in_text(text).into(),
            other => other.clone(),
        }
    }

    /// Replaces the values in `metadata` that differ between runs, as listed in the module's documentation.
    ///
    /// `is_state` is true for a list or a bookmark, whose revision is that of the server's state.
    fn metadata(&self, metadata: &Value, is_state: bool) -> Value {
        let mut renamed = self.renamed(metadata, false);
        if let Some(revision) = revision(metadata) {
            renamed["resourceVersion"] = self.rank(revision, is_state).into();
        }
        if metadata["continue"]
            .as_str()
            .is_some_and(|token| !token.is_empty())
        {
            renamed["continue"] = "<continue>".into();
        }
        renamed
    }

    fn rank(&self, revision: u128, is_state: bool) -> String {
        let before = self.revisions.partition_point(|known| *known <= revision);
        if is_state {
            format!("r{before}+")
        } else {
            format!("r{before}")
        }
    }

    /// Replaces uids, times and generated names in a text, for example a time with `<time>`.
    fn in_text(&self, text: &str) -> String {
        let mut text = without_times(text);
        for (uid, number) in &self.uids {
            text = text.replace(uid, &format!("<uid {number}>"));
        }
        for (name, placeholder) in &self.generated {
            text = text.replace(name, placeholder);
        }
        shortened(text)
    }

    /// Replaces revisions with `<revision>`, and other values as [`Self::in_text`] does.
    ///
    /// `text` is the member `message` of a JSON object, such as a `Status`, a line about an informer, or a line of
    /// YAML.
    fn message(&self, text: &str) -> String {
        let without = self.has_owners.then(|| without_object(text)).flatten();
        let text = without.as_deref().unwrap_or(text);
        let mut text = self.in_text(text);
        for before in [
            "resource version: ",
            "map[resourceVersion:",
            "current: ",
            "<revision> (",
            "in the precondition (",
            "in record (",
            r#"resourceVersion: ""#,
            // An object in a message, as quoted JSON.
            r#"\"resourceVersion\":\""#,
        ] {
            let mut from = 0;
            while let Some(at) = text[from..].find(before) {
                let start = from + at + before.len();
                let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
                if digits > 0 {
                    text.replace_range(start..start + digits, "<revision>");
                }
                from = start;
            }
        }
        text
    }
}

/// Returns the text of events, followed by a note if the watch ended or no event arrived in time.
/// Removes the object from a message about an invalid patch. Go writes its members in an order that depends on what the
/// patch has changed.
fn without_object(text: &str) -> Option<String> {
    let (before, object) = text.split_once("Invalid value: \"{")?;
    let (_, after) = object.rsplit_once("}\": ")?;
    Some(format!("{before}Invalid value: <object>: {after}"))
}

fn ended(events: String, end: End) -> String {
    match end {
        End::Received => events,
        End::Ended => format!("{events}(end)\n"),
        End::Late => format!("{events}(no event in time)\n"),
    }
}

/// Returns the revision that `metadata` contains, if it is a number other than 0.
fn revision(metadata: &Value) -> Option<u128> {
    let revision = metadata["resourceVersion"].as_str()?.parse().ok()?;
    (revision > 0).then_some(revision)
}

#[cfg(test)]
mod tests;
