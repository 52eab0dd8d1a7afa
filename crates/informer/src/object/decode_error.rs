//! [`DecodeError`]: why an object has no body.

use std::sync::Arc;

use super::ObjectName;
use crate::limits::{MESSAGE_BYTES, one_line};

/// Why the bytes of one object did not become a `K`.
///
/// Names the object, the field and the position, never the content: it may be a Secret.
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
    /// A path is made of the names of fields and keys, and keys may be as long as a server likes.
    pub(crate) fn new(name: Option<ObjectName>, field: &str, reason: &str) -> Self {
        Self {
            inner: Arc::new(DecodeErrorInner {
                name,
                field: one_line(field, MESSAGE_BYTES),
                reason: one_line(reason, MESSAGE_BYTES),
            }),
        }
    }

    /// The object, when at least its name could be read.
    pub fn object_name(&self) -> Option<&ObjectName> {
        self.inner.name.as_ref()
    }

    /// The field that does not fit, as a path such as `spec.containers[0].ports`; `.` for the whole.
    pub fn field(&self) -> &str {
        &self.inner.field
    }

    pub(crate) fn reason(&self) -> &str {
        &self.inner.reason
    }
}
