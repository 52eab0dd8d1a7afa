//! Server-side apply: which manager owns which field of an object, and the merge of applied configurations.
//!
//! This is the algorithm of `sigs.k8s.io/structured-merge-diff` (6.3) and of apimachinery's package `managedfields`
//! (0.36). The module knows no HTTP: a verb passes the stored object, the new object or the patch, the name of the
//! manager and the time, and receives the object to store with its `metadata.managedFields`.
//!
//! Guarantees:
//! - owners, merged objects, conflicts and messages are those of Kubernetes;
//! - where Kubernetes reports in the random order of a Go map, the order is by name;
//! - the work for one call is proportional to the size of its objects, times the logarithm of that size.
//!
//! Two whole numbers that are the same floating-point number identify the same item of a list. In Kubernetes this
//! holds only after `managedFields` was read from the storage.
//!
//! # Limits
//!
//! The functions are recursive. Callers pass objects of at most 127 levels, the limit of the server, and
//! `managedFields` is a part of such an object. At most [`ERRORS_MAX`](errors::ERRORS_MAX) errors of a value are
//! collected. A message lists at most [`CONFLICTS_MAX`](conflict::CONFLICTS_MAX) conflicts, and none after
//! [`CONFLICTS_BYTES_MAX`](conflict::CONFLICTS_BYTES_MAX) bytes of paths. `managedFields` of the result can be deeper
//! than the object itself, so the caller checks the depth and the size of the object that it stores.

mod planted;

// From a path to a set of paths, and its text in `managedFields`.
mod path;
mod set;
mod fields_v1;

// The types of values, by which they are merged.
mod atom;
mod object_meta;
mod builtin;
mod structural;
mod list_item;

// Operations on values with a type.
mod errors;
mod validate;
mod field_set;
mod compare;
mod merge;
mod remove;
mod reconcile;

// The owners of fields.
mod managed;
mod updater;
mod conflict;
mod last_applied;
mod field_manager;
mod scale;

pub(crate) use atom::Type;
pub(crate) use field_manager::{
    ApplyError, FieldManager, Write, keep_times, kind_text, object_text,
};
pub(crate) use scale::Replicas;
pub(crate) use set::Set;
pub(crate) use updater::{Force, Versions};

#[cfg(test)]
mod tests;
