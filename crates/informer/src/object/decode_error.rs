//! [`DecodeError`] describes why an object failed to decode.

use std::sync::Arc;

use super::ObjectName;
use crate::limits::{MESSAGE_BYTES, one_line};

/// Error for an object whose bytes cannot be decoded into the informer's object type.
///
/// The error contains the object's name, the invalid field, the reason and the position in the bytes. It
/// never contains values of the object, which may be a Secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{inner}")]
pub struct DecodeError {
    inner: Arc<DecodeErrorInner>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} can't be decoded: {reason} at {field}",
    .name.as_ref().map_or("an object without a readable name", ObjectName::as_str)
)]
struct DecodeErrorInner {
    name: Option<ObjectName>,
    field: String,
    reason: String,
}

impl DecodeError {
    /// Creates the error, with `field` and `reason` truncated to [`MESSAGE_BYTES`] bytes each.
    pub(crate) fn new(name: Option<ObjectName>, field: &str, reason: &str) -> Self {
        Self {
            inner: Arc::new(DecodeErrorInner {
                name,
                field: one_line(field, MESSAGE_BYTES),
                reason: one_line(reason, MESSAGE_BYTES),
            }),
        }
    }

    /// Returns the name of the object; `None` if the name could not be read from the object's bytes.
    pub fn object_name(&self) -> Option<&ObjectName> {
        self.inner.name.as_ref()
    }

    /// Returns the path of the invalid field, such as `spec.containers[0].ports`. The path `.` means the
    /// whole object.
    pub fn field(&self) -> &str {
        &self.inner.field
    }

    pub(crate) fn reason(&self) -> &str {
        &self.inner.reason
    }
}
