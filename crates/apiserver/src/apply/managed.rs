//! Reads and writes `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde_json::{Map as Members, Value, json};

use super::fields_v1;
use super::set::Set;
use crate::go_json::to_text;
use crate::quote::{Quoted, go_text};

/// Operation of an entry that was written by an apply.
const APPLY: &str = "Apply";

/// Operation of the other entries.
const UPDATE: &str = "Update";

/// The fields of each manager, by its identifier.
pub(super) type Owners = BTreeMap<String, Owned>;

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) set: Set,
    /// The version of the object whose fields these are.
    pub(super) api_version: String,
    pub(super) is_applied: bool,
}

/// The owners of an object, with the times of their last changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Managed {
    pub(super) owners: Owners,
    /// The times by identifier. They remain when a manager loses its last field.
    pub(super) times: BTreeMap<String, Timestamp>,
}

/// What identifies a manager. Its text is a JSON object, as in Kubernetes, whose order it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identifier {
    pub(super) manager: String,
    operation: String,
    /// Empty for an apply, which replaces the fields of any version.
    api_version: String,
    subresource: String,
}

impl Identifier {
    pub(super) fn of_apply(manager: &str, subresource: &str) -> Identifier {
        Identifier {
            manager: manager.to_owned(),
            operation: APPLY.to_owned(),
            api_version: String::new(),
            subresource: subresource.to_owned(),
        }
    }

    pub(super) fn of_update(manager: &str, api_version: &str, subresource: &str) -> Identifier {
        Identifier {
            manager: manager.to_owned(),
            operation: UPDATE.to_owned(),
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }

    fn members(&self) -> [(&'static str, &str); 4] {
        [
            ("manager", &self.manager),
            ("operation", &self.operation),
            ("apiVersion", &self.api_version),
            ("subresource", &self.subresource),
        ]
    }

    pub(super) fn text(&self) -> String {
        let members = self.members().into_iter();
        let members = members.filter(|(_, value)| !value.is_empty());
        let members: Vec<String> = members
            .map(|(name, value)| format!("\"{name}\":{}", to_text(value)))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    pub(super) fn parse(text: &str) -> Option<Identifier> {
        let members: Members<String, Value> = serde_json::from_str(text).ok()?;
        let member = |name: &str| {
            let value = members.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        Some(Identifier {
            manager: member("manager"),
            operation: member("operation"),
            api_version: member("apiVersion"),
            subresource: member("subresource"),
        })
    }
}

/// The name of a manager in the message about a conflict.
impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Quoted(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", Quoted(&self.subresource))?;
        }
        if self.operation == UPDATE {
            write!(f, " using {}", self.api_version)?;
        }
        Ok(())
    }
}

impl Managed {
    /// Reads `metadata.managedFields` of an object.
    ///
    /// # Errors
    ///
    /// Returns the message about an invalid entry.
    pub(super) fn decode(object: &Value) -> Result<Managed, String> {
        let mut managed = Managed::default();
        let entries = entries(object).and_then(Value::as_array);
        for (at, entry) in entries.into_iter().flatten().enumerate() {
            managed.decode_entry(at, entry)?;
        }
        Ok(managed)
    }

    fn decode_entry(&mut self, at: usize, entry: &Value) -> Result<(), String> {
        let text = |name: &str| match entry.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(format!("{name} of managed fields entry {at} is no text")),
        };
        let operation = text("operation")?;
        if operation != APPLY && operation != UPDATE {
            return Err("operation must be `Apply` or `Update`".to_owned());
        }
        let api_version = text("apiVersion")?;
        if api_version.is_empty() {
            return Err("apiVersion must not be empty".to_owned());
        }
        match text("fieldsType")? {
            "FieldsV1" => {}
            "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
            other => {
                let other = Quoted(other);
                return Err(format!(
                    "invalid fieldsType {other} in managed fields entry {at}"
                ));
            }
        }
        let is_applied = operation == APPLY;
        let identifier = if is_applied {
            Identifier::of_apply(text("manager")?, text("subresource")?)
        } else {
            Identifier::of_update(text("manager")?, api_version, text("subresource")?)
        };
        let identifier = identifier.text();
        let set = match entry.get("fieldsV1") {
            None | Some(Value::Null) => Set::default(),
            Some(fields) => fields_v1::from_value(fields).map_err(|why| {
                let entry = go_text(entry);
                format!("error decoding versioned set from {entry}: error decoding set: {why}")
            })?,
        };
        let owned = Owned {
            set,
            api_version: api_version.to_owned(),
            is_applied,
        };
        self.owners.insert(identifier.clone(), owned);
        match text("time")? {
            "" => self.times.remove(&identifier),
            time => {
                let time = time.parse().map_err(|_| format!("invalid time {time}"))?;
                self.times.insert(identifier, time)
            }
        };
        Ok(())
    }

    /// Writes `metadata.managedFields` of an object, or removes it if there are no owners.
    pub(super) fn encode(&self, object: &mut Value) {
        let mut entries: Vec<(Identifier, &Owned, Option<Timestamp>)> = Vec::new();
        for (text, owned) in &self.owners {
            let mut identifier = Identifier::parse(text).unwrap_or_default();
            identifier.api_version.clone_from(&owned.api_version);
            if owned.is_applied {
                APPLY.clone_into(&mut identifier.operation);
            }
            entries.push((identifier, owned, self.times.get(text).copied()));
        }
        entries.sort_by(|(left, _, left_time), (right, _, right_time)| {
            let by_time = seconds(*left_time).cmp(&seconds(*right_time));
            let by_operation = left.operation.cmp(&right.operation).then(by_time);
            by_operation.then_with(|| {
                let key = |entry: &Identifier| {
                    let entry = entry.clone();
                    (entry.manager, entry.api_version, entry.subresource)
                };
                key(left).cmp(&key(right))
            })
        });
        remove_entries(object);
        if entries.is_empty() {
            return;
        }
        let entries = entries.into_iter().map(encoded).collect();
        if let Some(object) = object.as_object_mut() {
            let metadata = object.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("managedFields".to_owned(), Value::Array(entries));
            }
        }
    }
}

fn encoded((identifier, owned, time): (Identifier, &Owned, Option<Timestamp>)) -> Value {
    let mut entry = Members::new();
    for (name, value) in identifier.members() {
        if !value.is_empty() {
            entry.insert(name.to_owned(), json!(value));
        }
    }
    if let Some(time) = time {
        let time = Timestamp::from_second(time.as_second()).unwrap_or(time);
        entry.insert("time".to_owned(), json!(time.to_string()));
    }
    entry.insert("fieldsType".to_owned(), json!("FieldsV1"));
    entry.insert("fieldsV1".to_owned(), fields_v1::to_value(&owned.set));
    Value::Object(entry)
}

/// Returns the time by which entries are sorted.
pub(super) fn seconds(time: Option<Timestamp>) -> i64 {
    time.map_or(0, Timestamp::as_second)
}

/// Returns `metadata.managedFields` of an object.
pub(super) fn entries(object: &Value) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Removes `metadata.managedFields` of an object.
pub(super) fn remove_entries(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("managedFields");
    }
}
