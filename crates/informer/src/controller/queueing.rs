//! Adds the changes and lists of a reflector to a queue.
//!
//! An object whose key can't be determined does not affect other objects. The module does not apply changes
//! to the store.

use crate::{
    limits::{MESSAGE_BYTES, one_line},
    object::Known,
    queue::{KeyError, KeyErrors, Queue, Replaced},
    reflector::{Delta, DeltaKind, Error},
};

/// Adds a change or a list to `queue`, and returns an error for each skipped object.
pub(super) fn queue_delta<K>(
    queue: &mut dyn Queue<K>,
    delta: Delta<K>,
    known: &dyn Known<K>,
) -> Vec<Error> {
    let errors = match delta.kind {
        DeltaKind::ReplacedAll { objects, revision } => {
            let list = Replaced {
                source: delta.source,
                objects,
                revision,
            };
            let replaced = queue.replace(list, known);
            replaced
                .err()
                .map_or(Vec::new(), |KeyErrors(errors)| errors)
        }
        kind => {
            let pushed = queue.push(Delta { kind, ..delta }, known);
            pushed.err().into_iter().collect()
        }
    };
    errors.iter().map(key_error).collect()
}

fn key_error<K>(error: &KeyError<K>) -> Error {
    Error::Key {
        object: error.object.object_name().clone(),
        reason: one_line(&error.source.to_string(), MESSAGE_BYTES),
    }
}
