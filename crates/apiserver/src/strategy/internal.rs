//! Shows parts of pods, volumes and claims in messages as Kubernetes does: as JSON of its internal types.
//!
//! The members of an internal type have Go's names and order, and absent values are shown.
//!
//! Guarantees: a part that Kubernetes accepts is shown exactly. The difference of two values that are too long to be
//! compared is left out.

mod difference;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use crate::go_json::to_text;

/// The table of internal types.
const V1_36: &str = include_str!("internal/v1_36.tsv");

/// The members of a pod's `spec` that the internal type has in its security context.
const OF_SECURITY_CONTEXT: [&str; 5] = [
    "hostNetwork",
    "hostPID",
    "hostIPC",
    "shareProcessNamespace",
    "hostUsers",
];

/// Internal names that differ from those of the API not only in the case of letters, with those of the API.
const RENAMED: [(&str, &str); 8] = [
    ("CephMonitors", "monitors"),
    ("DataDiskURI", "diskURI"),
    ("DiscoveryCHAPAuth", "chapAuthDiscovery"),
    ("EndpointsName", "endpoints"),
    ("RBDImage", "image"),
    ("RBDPool", "pool"),
    ("RadosUser", "user"),
    ("SessionCHAPAuth", "chapAuthSession"),
];

static STRUCTS: LazyLock<BTreeMap<&str, Vec<Member>>> = LazyLock::new(|| structs(V1_36));

/// A member of an internal type.
struct Member {
    /// Empty if the members of the struct are those of its parent.
    name: &'static str,
    omits_empty: bool,
    shape: Shape,
}

enum Shape {
    /// Any value, which is this one if it is absent.
    Zero(Value),
    Struct(&'static str),
    /// A struct that can be null.
    Pointer(&'static str),
    List(&'static str),
}

/// A value of an internal type.
struct Shown<'a> {
    members: &'static [Member],
    value: &'a Value,
}

/// Returns a value of an internal type that is not a complete pod or template, such as `Toleration`.
pub(super) fn shown(type_name: &str, value: &Value) -> String {
    to_text(&Shown::of(type_name, value))
}

/// Returns a list of values of an internal type.
pub(super) fn shown_list(type_name: &str, list: &Value) -> String {
    let items = list.as_array().filter(|items| !items.is_empty());
    let items = items.map(|items| {
        let items = items.iter().map(|item| Shown::of(type_name, item));
        items.collect::<Vec<Shown<'_>>>()
    });
    to_text(&items)
}

/// Returns the `spec` of a pod.
pub(super) fn shown_spec(spec: &Value) -> String {
    shown("PodSpec", &internal_spec(spec))
}

pub(super) fn shown_template(template: &Value) -> String {
    let spec = internal_spec(&template["spec"]);
    let internal = json!({"metadata": template["metadata"], "spec": spec});
    shown("PodTemplateSpec", &internal)
}

/// Returns the difference of two values of an internal type, as [`shown`] shows them.
pub(super) fn shown_difference(type_name: &str, old: &Value, new: &Value) -> String {
    let text = |value| indented(&shown(type_name, value));
    difference::unified(&text(old), &text(new))
}

/// Returns the difference of the specs of two pods.
pub(super) fn spec_difference(old: &Value, new: &Value) -> String {
    shown_difference("PodSpec", &internal_spec(old), &internal_spec(new))
}

/// Returns the `spec` of a pod with the members of its security context in their internal place.
fn internal_spec(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let Some(members) = spec.as_object_mut() else {
        return spec;
    };
    let moved = OF_SECURITY_CONTEXT.map(|name| (name, members.remove(name)));
    let context = members.entry("securityContext").or_insert(json!({}));
    if let Some(context) = context.as_object_mut() {
        let moved = moved.into_iter();
        context.extend(moved.filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    spec
}

fn structs(table: &'static str) -> BTreeMap<&'static str, Vec<Member>> {
    let mut structs = BTreeMap::new();
    let mut current = "";
    for row in table.lines().filter(|row| !row.starts_with('#')) {
        match row.strip_prefix('\t').and_then(|row| row.split_once('\t')) {
            None => {
                current = row;
                structs.insert(row, Vec::new());
            }
            Some((name, shape)) => {
                let members: &mut Vec<Member> = structs.entry(current).or_default();
                members.push(Member {
                    name: name.trim_end_matches('?'),
                    omits_empty: name.ends_with('?'),
                    shape: Shape::of(shape),
                });
            }
        }
    }
    structs
}

impl Shape {
    fn of(text: &'static str) -> Shape {
        if let Ok(zero) = serde_json::from_str(text) {
            return Shape::Zero(zero);
        }
        if let Some(name) = text.strip_prefix("[]") {
            return Shape::List(name);
        }
        match text.strip_prefix('*') {
            Some(name) => Shape::Pointer(name),
            None => Shape::Struct(text),
        }
    }
}

impl Shown<'_> {
    fn of<'a>(type_name: &str, value: &'a Value) -> Shown<'a> {
        let members = STRUCTS.get(type_name);
        Shown {
            members: members.map_or(&[], Vec::as_slice),
            value,
        }
    }

    /// Returns the value of a member, unless it is absent or null.
    fn member(&self, name: &str) -> Option<&Value> {
        let renamed = RENAMED.iter().find(|(internal, _)| *internal == name);
        let name = renamed.map_or(name, |(_, of_api)| of_api);
        let mut members = self.value.as_object().into_iter().flatten();
        let found = members.find(|(member, _)| member.eq_ignore_ascii_case(name));
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    fn add_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        for member in self.members {
            let value = self.member(member.name);
            if member.omits_empty && value.is_none() {
                continue;
            }
            match (&member.shape, value) {
                (Shape::Struct("ObjectMeta"), _) => {
                    Shown::of("ObjectMeta", &self.value["metadata"]).add_members(map)?;
                }
                (Shape::Struct(name), _) if member.name.is_empty() => {
                    Shown::of(name, self.value).add_members(map)?;
                }
                (Shape::Zero(zero), value) => {
                    map.serialize_entry(member.name, value.unwrap_or(zero))?;
                }
                (Shape::Pointer(_) | Shape::List(_), None) => {
                    map.serialize_entry(member.name, &())?;
                }
                (Shape::Struct(name) | Shape::Pointer(name), value) => {
                    let value = value.unwrap_or(&Value::Null);
                    map.serialize_entry(member.name, &Shown::of(name, value))?;
                }
                (Shape::List(name), Some(value)) => {
                    map.serialize_entry(member.name, &ShownList(name, value))?;
                }
            }
        }
        Ok(())
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.add_members(&mut map)?;
        map.end()
    }
}

/// A list of values of an internal type.
struct ShownList<'a>(&'static str, &'a Value);

impl Serialize for ShownList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for item in self.1.as_array().into_iter().flatten() {
            list.serialize_element(&Shown::of(self.0, item))?;
        }
        list.end()
    }
}

/// Returns JSON in lines that are indented by one space per level, as by Go's `json.Indent`.
fn indented(json: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut letters = json.chars().peekable();
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', depth));
    };
    while let Some(letter) = letters.next() {
        if is_quoted {
            is_quoted = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            text.push(letter);
            continue;
        }
        is_quoted = letter == '"';
        match letter {
            '{' | '[' => {
                text.push(letter);
                if letters.peek().is_some_and(|next| matches!(next, '}' | ']')) {
                    text.extend(letters.next());
                } else {
                    depth += 1;
                    line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut text, depth);
                text.push(letter);
            }
            ',' => {
                text.push(letter);
                line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            _ => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_members_are_shown_in_the_order_of_go() {
        assert_eq!(
            shown(
                "ContainerPort",
                &json!({"containerPort": 80, "protocol": "<"})
            ),
            r#"{"Name":"","HostPort":0,"ContainerPort":80,"Protocol":"\u003c","HostIP":""}"#
        );
        let probe = json!({"exec": {"command": ["a"]}, "periodSeconds": 5});
        assert_eq!(
            shown("Probe", &probe),
            r#"{"Exec":{"Command":["a"]},"HTTPGet":null,"TCPSocket":null,"GRPC":null,"InitialDelaySeconds":0,"TimeoutSeconds":0,"PeriodSeconds":5,"SuccessThreshold":0,"FailureThreshold":0,"TerminationGracePeriodSeconds":null}"#
        );
        assert_eq!(
            shown("LabelSelector", &json!({"matchLabels": {"a": "b"}})),
            r#"{"matchLabels":{"a":"b"}}"#
        );
    }

    #[test]
    fn the_security_context_has_the_namespaces_of_the_host() {
        let spec =
            internal_spec(&json!({"hostNetwork": true, "securityContext": {"runAsUser": 1}}));
        let text = shown("PodSpec", &spec);
        assert!(text.contains(
            r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":null,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":1"#
        ));
    }

    #[test]
    fn the_indentation_keeps_texts_and_empty_values() {
        let json = r#"{"a":"{\",:","b":[],"c":[{"d":{}}]}"#;
        let lines =
            "{\n \"a\": \"{\\\",:\",\n \"b\": [],\n \"c\": [\n  {\n   \"d\": {}\n  }\n ]\n}";
        assert_eq!(indented(json), lines);
    }
}
