//! Brings objects into the form of their kind: decodes them, sets their defaults, and completes them.

use serde_json::{Value, json};

use super::{Resource, too_many_defaults};
use crate::decode_error::DecodeError;
use crate::object::Object;
use crate::schema::Undecodable;
use crate::status::FieldError;
use crate::typed::{self, Decoded, TooManyDefaults};

impl Resource {
    /// Returns the object without content, as Go has it in memory.
    pub(crate) fn empty(&self) -> &Value {
        self.empty.get_or_init(|| {
            let (api_version, kind) = (self.kind.api_version(), &self.kind.kind);
            let mut empty = json!({"apiVersion": api_version, "kind": kind});
            if let (false, Value::Object(members)) = (self.kind.custom, &mut empty) {
                members.insert("metadata".to_owned(), json!({}));
                typed::complete(&self.kind, members);
            }
            empty
        })
    }

    /// Decodes an object of a direct call.
    ///
    /// Unknown fields and wrong types are kept, except in a definition, which is decoded like one from a request.
    pub(crate) fn decode_direct(&self, object: Value) -> Decoded {
        if self.strategy.checks_direct_writes {
            typed::decode(object, self.value_type())
        } else {
            typed::decode_leniently(object, self.value_type())
        }
    }

    /// Returns a stored object as a client's write would store it: without unknown fields.
    pub(crate) fn without_unknown(&self, object: &Object) -> Object {
        let decoded = typed::decode(object.clone().into_value(), self.value_type());
        let members = decoded.value.as_object().cloned();
        let mut known = Object::stored(members.unwrap_or_default());
        self.complete(&mut known);
        known
    }

    /// Brings an object into the form in which Kubernetes returns it.
    ///
    /// An object to which more than [`DEFAULTS_BYTES_MAX`] bytes would be added stays incomplete. It is too large to be
    /// stored.
    pub(crate) fn complete(&self, object: &mut Object) {
        typed::complete(&self.kind, object.members_mut());
    }

    /// Prepares an object that a client or the program has sent: removes the members that the kind's
    /// definition does not allow, and sets its defaults.
    ///
    /// Returns the paths of the removed members, such as `spec.unknown`.
    ///
    /// # Errors
    ///
    /// Returns an error if an embedded object is malformed, or if the defaults are too large.
    pub(crate) fn decode(&self, object: &mut Object) -> Result<Vec<String>, DecodeError> {
        let Some(model) = &self.model else {
            return self.set_defaults(object).map(|()| Vec::new());
        };
        model.decode(object.members_mut()).map_err(|why| match why {
            Undecodable::Invalid(error) => DecodeError::Unfit {
                kind: self.kind.kind.clone(),
                version: self.kind.version.clone(),
                expected: self.kind.kind.clone(),
                why: FieldError::list(&[error]),
            },
            Undecodable::TooManyDefaults => too_many_defaults(TooManyDefaults),
        })
    }

    /// Sets the defaults of an object.
    ///
    /// # Errors
    ///
    /// Returns an error if they are too large.
    pub(crate) fn set_defaults(&self, object: &mut Object) -> Result<(), DecodeError> {
        let members = object.members_mut();
        let set = match &self.model {
            Some(model) => model.schema().set_defaults(members),
            None => typed::set_defaults(&self.kind, members),
        };
        set.map_err(too_many_defaults)
    }
}
