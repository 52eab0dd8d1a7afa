//! Decodes JSON into the types of built-in kinds, and writes objects, as Go does.
//!
//! The types are those of the table of protobuf messages. [`ValueType`] names the type of a value.
//!
//! Guarantees:
//! - a value of a wrong type is a [`Fault`] with Go's message. The first one in the text is reported;
//! - unknown fields of a built-in type are never part of the result, unless the caller asks for them, and are
//!   [`Complaints`], like duplicate members. Complaints have Kubernetes' wording and order;
//! - a null is what it is in Go: an absent field, or the zero value of an item in a list or a map;
//! - the size of what is added to an object is limited;
//! - quantities, times, bytes and numbers are in the form in which Kubernetes writes them;
//! - for a custom kind, only `metadata` is decoded. All other members are kept as they are;
//! - [`Ordered`] has the members in the order of Go.

mod value_type;
mod trail;
mod literal;
mod reader;
mod presence;
mod owner_order;
mod go_order;
mod defaults;

use serde::de::DeserializeSeed as _;
use serde_json::{Value, json};

use crate::field_validation::Complaints;

pub(crate) use defaults::{is_external, set_defaults};
pub(crate) use go_order::{FIELDS_V1, Ordered};
pub(crate) use presence::{complete, complete_metadata};
pub(crate) use trail::Fault;
pub(crate) use value_type::{MergeStrategy, Structure, ValueType};

use reader::Reader;
use trail::{Mode, Trail};

/// Maximum size in bytes of all defaults of one object as JSON, equal to that of an object.
///
/// Kubernetes has no such limit. With it, a request of 3 MiB with many list items can't occupy gigabytes.
pub(crate) const DEFAULTS_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Error: the defaults of an object would be larger than [`DEFAULTS_BYTES_MAX`].
#[derive(Debug)]
pub(crate) struct TooManyDefaults;

/// A decoded value.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// The value, in which values of wrong types are as they were.
    pub(crate) value: Value,
    /// Messages about unknown fields and duplicate members.
    pub(crate) complaints: Complaints,
    /// The first value of a wrong type.
    pub(crate) fault: Option<Fault>,
}

/// Decodes a JSON text.
///
/// # Errors
///
/// Returns an error if the text is not JSON.
pub(crate) fn read(text: &[u8], value_type: ValueType) -> serde_json::Result<Decoded> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut trail = Trail::default();
    let value = Reader::new(value_type, &mut trail).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(trail.decoded(value))
}

/// Decodes a JSON value.
pub(crate) fn decode(value: Value, value_type: ValueType) -> Decoded {
    decoded(value, value_type, Trail::default())
}

/// Decodes a JSON value as Kubernetes' converter of values without types does.
pub(crate) fn convert(value: Value, value_type: ValueType) -> Decoded {
    decoded(value, value_type, Trail::new(Mode::Convert))
}

/// Decodes a JSON value as [`decode`] does, but keeps unknown fields, and accepts wrong types outside of `metadata`.
pub(crate) fn decode_leniently(value: Value, value_type: ValueType) -> Decoded {
    let metadata = value.get("metadata").cloned();
    let decoded = decoded(value, value_type, Trail::new(Mode::WithUnknown));
    if decoded.fault.is_none() {
        return decoded;
    }
    let alone = decode(json!({"metadata": metadata}), value_type);
    Decoded {
        fault: alone.fault,
        ..decoded
    }
}

fn decoded(value: Value, value_type: ValueType, mut trail: Trail) -> Decoded {
    let value = Reader::new(value_type, &mut trail).deserialize(value);
    let value = value.expect("a value that was read once can be read again");
    trail.decoded(value)
}

/// Returns Go's message about the first wrong type in the metadata of an object.
pub(crate) fn metadata_fault(metadata: &Value) -> Option<String> {
    let decoded = decode(metadata.clone(), ValueType::metadata());
    decoded.fault.map(|fault| fault.message)
}

#[cfg(test)]
mod tests;
