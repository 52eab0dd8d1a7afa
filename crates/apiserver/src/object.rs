//! Defines [`Object`], a Kubernetes object as parsed JSON, with methods that read and change members.
//!
//! Guarantees: the `metadata` of an [`Object`] is a JSON object. The module `typed` decodes the values of a request before,
//! so they have the types that Kubernetes requires. Those of a direct call can have other types outside of `metadata`, and
//! those of a custom kind have the types of its schema.

mod decode;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::decode_error::DecodeError;
use crate::kinds::Kind;
use crate::status::ApiError;
use crate::typed;

pub(crate) use decode::{json_type, untyped};

/// A Kubernetes object as a JSON object with well-formed `metadata`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object(Map<String, Value>);

/// Maximum nesting depth of an object's JSON, the maximum that `serde_json` parses.
pub(crate) const DEPTH_MAX: usize = 127;

/// Returns the nesting depth of the JSON objects and lists in a value; the depth of a scalar is 0.
///
/// Recursive: a value of unlimited depth overflows the stack.
pub(crate) fn height(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(height).max().unwrap_or(0),
        _ => 0,
    }
}

impl Object {
    /// Converts a decoded JSON value to an object of a kind.
    ///
    /// Sets `apiVersion` and `kind` if they are absent or empty.
    ///
    /// # Errors
    ///
    /// Returns an error if the value has a wrong kind, more than [`DEPTH_MAX`] levels, or `fault`.
    pub(crate) fn of(
        kind: &Kind,
        value: Value,
        fault: Option<String>,
    ) -> Result<Object, DecodeError> {
        let mut members = decode::members_of(kind, value)?;
        decode::check_type(kind, &members)?;
        members.insert("apiVersion".to_owned(), json!(kind.api_version()));
        members.insert("kind".to_owned(), json!(kind.kind));
        if members.get("metadata").is_none_or(Value::is_null) {
            members.insert("metadata".to_owned(), json!({}));
        }
        if members.values().map(height).max().unwrap_or(0) >= DEPTH_MAX {
            return Err(DecodeError::Rejected(ApiError::too_deep()));
        }
        if let Some(why) = fault {
            return Err(decode::unfit(kind, why));
        }
        if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
            // Both remove all owners, but Kubernetes does not write an empty list.
            if metadata
                .get("managedFields")
                .is_some_and(|owners| *owners == json!([]))
            {
                metadata.insert("managedFields".to_owned(), json!([{}]));
            }
            typed::complete_metadata(metadata);
        }
        Ok(Object(members))
    }

    /// Creates an `Object` from the members of a stored object, without checks.
    ///
    /// The members were checked before they were stored.
    pub(crate) fn stored(members: Map<String, Value>) -> Object {
        Object(members)
    }

    /// Returns the name, or `generateName` if the object has no name.
    pub(crate) fn name_or_prefix(&self) -> &str {
        match self.text("name") {
            "" => self.text("generateName"),
            name => name,
        }
    }

    pub(crate) fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(crate) fn members_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    pub(crate) fn get(&self, member: &str) -> Option<&Value> {
        self.0.get(member)
    }

    /// Returns a copy of a member, or `{}` if the member is not a JSON object.
    pub(crate) fn part(&self, member: &str) -> Value {
        let part = self.get(member).filter(|part| part.is_object());
        part.cloned().unwrap_or_else(|| json!({}))
    }

    /// Returns a copy of a member as [`Object::part`] does, or `None` if the member has another type.
    ///
    /// Only direct calls can store such a member, and it is kept as it is.
    pub(crate) fn sound_part(&self, member: &str) -> Option<Value> {
        let is_sound = |part: &Value| part.is_object() || part.is_null();
        let is_sound = self.get(member).is_none_or(is_sound);
        is_sound.then(|| self.part(member))
    }

    /// Sets a member of the object, or removes the member if `value` is `None`.
    pub(crate) fn set(&mut self, member: &str, value: Option<Value>) {
        match value {
            Some(value) => self.0.insert(member.to_owned(), value),
            None => self.0.remove(member),
        };
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Returns a member of `metadata`, or `None` if the member is absent or null.
    pub(crate) fn meta(&self, member: &str) -> Option<&Value> {
        self.0
            .get("metadata")?
            .get(member)
            .filter(|value| !value.is_null())
    }

    /// Returns a string member of `metadata`, or an empty string if there is none.
    pub(crate) fn text(&self, member: &str) -> &str {
        self.meta(member)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    pub(crate) fn number(&self, member: &str) -> Option<i64> {
        self.meta(member).and_then(Value::as_i64)
    }

    /// Sets a member of `metadata`, or removes the member if `value` is `None`.
    pub(crate) fn set_meta(&mut self, member: &str, value: Option<Value>) {
        let metadata = self.0.get_mut("metadata").and_then(Value::as_object_mut);
        let metadata = metadata.expect("an object's metadata is a JSON object");
        match value {
            Some(value) => metadata.insert(member.to_owned(), value),
            None => metadata.remove(member),
        };
    }

    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let list = self.meta("finalizers").and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.meta("deletionTimestamp").is_some()
    }

    /// Returns the time in `deletionTimestamp`, or `None` if the field is absent.
    ///
    /// Returns the Unix epoch if the value of the field can't be parsed.
    pub(crate) fn deletion_time(&self) -> Option<Timestamp> {
        // A direct call can store text that is not a time.
        let parsed = |text: &Value| text.as_str().unwrap_or_default().parse();
        let time = self.meta("deletionTimestamp").map(parsed);
        time.map(|due| due.unwrap_or(Timestamp::UNIX_EPOCH))
    }
}
