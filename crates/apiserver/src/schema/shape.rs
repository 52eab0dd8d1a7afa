//! Changes objects as a schema requires: removes unknown members and nulls, and sets defaults.
//!
//! Guarantees:
//! - the result of a second call with the same schema is the same;
//! - the total size of the defaults that one call sets is at most [`DEFAULTS_BYTES_MAX`].

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{META, Member, Schema};
use crate::typed::{DEFAULTS_BYTES_MAX, TooManyDefaults};

/// Maximum number of unknown members that are reported.
///
/// Kubernetes has no such limit here, but one of 100 for unknown members of built-in kinds.
const UNKNOWN_MAX: usize = 100;

/// The paths of removed members, such as `spec.ports[0].unknown`.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    /// Path of the value that is being read.
    path: String,
    pub(super) found: Vec<String>,
}

// === impl Unknown ===

impl Unknown {
    /// Runs `go` with the path of a member.
    fn member<T>(&mut self, name: &str, go: impl FnOnce(&mut Unknown) -> T) -> T {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let done = go(self);
        self.path.truncate(length);
        done
    }

    /// Runs `go` with the path of a list item.
    fn item<T>(&mut self, at: usize, go: impl FnOnce(&mut Unknown) -> T) -> T {
        let length = self.path.len();
        write!(self.path, "[{at}]").expect("writing to a String does not fail");
        let done = go(self);
        self.path.truncate(length);
        done
    }

    fn record(&mut self, name: &str) {
        if self.found.len() < UNKNOWN_MAX {
            let path = self.member(name, |unknown| unknown.path.clone());
            self.found.push(path);
        }
    }
}

// === impl Schema ===

impl Schema {
    /// Removes the members of an object that the schema does not specify, except those of [`META`].
    pub(super) fn prune(&self, object: &mut Map<String, Value>, unknown: &mut Unknown) {
        if self.preserves {
            keep_members(object, self, true, unknown);
        } else {
            prune_members(object, Some(self), true, unknown);
        }
    }

    /// Removes the nulls that are not allowed and have no default.
    pub(super) fn drop_nulls(&self, object: &mut Map<String, Value>) {
        drop_null_members(object, Some(self));
    }

    /// Sets the defaults of absent members, and of nulls that are not allowed.
    ///
    /// # Errors
    ///
    /// Returns an error if the defaults are too large. The object then has only some of its defaults.
    pub(crate) fn set_defaults(
        &self,
        object: &mut Map<String, Value>,
    ) -> Result<(), TooManyDefaults> {
        let mut left = DEFAULTS_BYTES_MAX;
        set_members(object, self, &mut left)
    }
}

/// Removes the members of a value that the schema does not specify.
pub(super) fn prune(value: &mut Value, schema: Option<&Schema>, unknown: &mut Unknown) {
    if let Some(schema) = schema.filter(|schema| schema.preserves) {
        return keep(value, schema, unknown);
    }
    match value {
        Value::Object(members) => {
            let embeds = schema.is_some_and(|schema| schema.embeds);
            prune_members(members, schema, embeds, unknown);
        }
        Value::Array(items) => {
            let below = schema.and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter_mut().enumerate() {
                unknown.item(at, |unknown| prune(item, below, unknown));
            }
        }
        _ => {}
    }
}

fn prune_members(
    members: &mut Map<String, Value>,
    schema: Option<&Schema>,
    embeds: bool,
    unknown: &mut Unknown,
) {
    members.retain(|name, value| {
        if embeds && META.contains(&name.as_str()) {
            return true;
        }
        let member = schema.map_or(Member::Unknown, |schema| schema.member(name));
        if let Member::Unknown = member {
            unknown.record(name);
            return false;
        }
        unknown.member(name, |unknown| prune(value, member.schema(), unknown));
        true
    });
}

/// Prunes below a value whose unknown members are kept.
fn keep(value: &mut Value, schema: &Schema, unknown: &mut Unknown) {
    match value {
        Value::Object(members) => keep_members(members, schema, schema.embeds, unknown),
        Value::Array(items) => {
            let Some(below) = &schema.items else { return };
            for (at, item) in items.iter_mut().enumerate() {
                unknown.item(at, |unknown| keep(item, below, unknown));
            }
        }
        _ => {}
    }
}

fn keep_members(
    members: &mut Map<String, Value>,
    schema: &Schema,
    embeds: bool,
    unknown: &mut Unknown,
) {
    for (name, value) in members {
        if embeds && META.contains(&name.as_str()) {
            continue;
        }
        let member = schema.member(name);
        if !matches!(member, Member::Unknown) {
            unknown.member(name, |unknown| prune(value, member.schema(), unknown));
        }
    }
}

fn drop_nulls(value: &mut Value, schema: Option<&Schema>) {
    match value {
        Value::Object(members) => drop_null_members(members, schema),
        Value::Array(items) => {
            let below = schema.and_then(|schema| schema.items.as_deref());
            for item in items {
                drop_nulls(item, below);
            }
        }
        _ => {}
    }
}

fn drop_null_members(members: &mut Map<String, Value>, schema: Option<&Schema>) {
    members.retain(|name, value| {
        let below = schema.and_then(|schema| schema.member(name).schema());
        let is_dropped = value.is_null()
            && below.is_some_and(|below| !below.nullable && below.default.is_none());
        if !is_dropped {
            drop_nulls(value, below);
        }
        !is_dropped
    });
}

fn set_defaults(
    value: &mut Value,
    schema: &Schema,
    left: &mut usize,
) -> Result<(), TooManyDefaults> {
    match value {
        Value::Object(members) => set_members(members, schema, left),
        Value::Array(items) => {
            let Some(below) = schema.items.as_deref() else {
                return Ok(());
            };
            for item in items {
                if item.is_null() && !below.nullable {
                    *item = default_of(below, left)?.unwrap_or_default();
                }
                set_defaults(item, below, left)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn set_members(
    members: &mut Map<String, Value>,
    schema: &Schema,
    left: &mut usize,
) -> Result<(), TooManyDefaults> {
    for name in &schema.defaulted {
        let (value, property) = (members.get(name), &schema.properties[name]);
        let is_unset = value.is_none_or(|value| value.is_null() && !property.nullable);
        if is_unset && let Some(default) = default_of(property, left)? {
            members.insert(name.clone(), default);
        }
    }
    for (name, value) in members {
        let is_property = schema.properties.contains_key(name);
        let Member::Of(below) = schema.member(name) else {
            continue;
        };
        if !is_property && value.is_null() && !below.nullable {
            *value = default_of(below, left)?.unwrap_or_default();
        }
        set_defaults(value, below, left)?;
    }
    Ok(())
}

/// Returns a copy of the schema's default, whose size is taken from `left`.
fn default_of(schema: &Schema, left: &mut usize) -> Result<Option<Value>, TooManyDefaults> {
    let Some(default) = &schema.default else {
        return Ok(None);
    };
    *left = left.checked_sub(default.bytes).ok_or(TooManyDefaults)?;
    Ok(Some(default.value.clone()))
}
