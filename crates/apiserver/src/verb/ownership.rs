//! Records in `metadata.managedFields` which client owns which field, and applies configurations.
//!
//! Guarantees:
//! - owners are computed from what a client sends, with defaults, and before admission and the rules of the kind change
//!   it, as in Kubernetes;
//! - a write that changes nothing but times of owners has no effect;
//! - the owners never make an object too deep to be read.
//!
//! The module `apply` computes the owners. This module knows the kinds of the server, and their versions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::write::{How, Tracking};
use crate::apply::{ApplyError, FieldManager, Force, Set, Type, Versions, Write, keep_times};
use crate::object::{DEPTH_MAX, Object, height};
use crate::resource::{Registry, Resource};
use crate::shared::Shared;
use crate::status::ApiError;
use crate::strategy::{Part, reset_fields};
use crate::typed::ValueType;

/// Number of levels of an object above those of the owners of its fields.
const LEVELS_ABOVE: usize = 2;

/// The owners of the objects of one resource, for writes of one part of them.
pub(super) struct Ownership<'a> {
    shared: &'a Shared,
    registry: Arc<Registry>,
    resource: &'a Resource,
    part: Part,
    api_version: String,
    ignored: Set,
}

/// The versions of a kind that the server has.
struct Served<'a> {
    registry: &'a Registry,
    resource: &'a Resource,
}

/// Records the owners of a new object.
pub(super) fn track_new(shared: &Shared, resource: &Resource, new: &mut Object, how: How<'_>) {
    if let Tracking::By(_) = how.tracking {
        // As in Kubernetes, the owners are those of the object with all fields that Go writes.
        resource.complete(new);
    }
    let mut empty = Object::stored(resource.empty().as_object().cloned().unwrap_or_default());
    track(shared, resource, (&mut empty, new), how);
}

/// Records the owners of an object after an update, given the stored object.
pub(super) fn track(
    shared: &Shared,
    resource: &Resource,
    (live, new): (&mut Object, &mut Object),
    how: How<'_>,
) {
    let name = match how.tracking {
        Tracking::Off => {
            let kept = match new.meta("managedFields") {
                None => live.meta("managedFields").cloned(),
                // The form in which the decoder keeps an empty list.
                Some(owners) if *owners == json!([{}]) => None,
                Some(_) => return,
            };
            return new.set_meta("managedFields", kept);
        }
        Tracking::Removed => return new.set_meta("managedFields", None),
        Tracking::By(name) => Some(name),
        Tracking::Done => None,
    };
    with_value(live, |live| {
        with_value(new, |new| {
            if let Some(name) = name {
                let owners = Ownership::new(shared, resource, how.part);
                *new = owners.after_update(live, std::mem::take(new), name);
            }
            keep_times(live, new);
        });
    });
}

fn with_value(object: &mut Object, change: impl FnOnce(&mut Value)) {
    let mut value = Value::Object(std::mem::take(object.members_mut()));
    change(&mut value);
    if let Value::Object(members) = value {
        *object.members_mut() = members;
    }
}

impl<'a> Ownership<'a> {
    pub(super) fn new(shared: &'a Shared, resource: &'a Resource, part: Part) -> Ownership<'a> {
        Ownership {
            shared,
            registry: shared.registry(),
            resource,
            part,
            api_version: resource.kind.api_version(),
            ignored: Set::of(reset_fields(&resource.kind, part)),
        }
    }

    /// Returns a new object after an update, with its owners.
    fn after_update(&self, live: &Value, new: Value, name: &str) -> Value {
        let mut new = self.run(|manager| manager.update(live, new, self.write_by(name)));
        let owners = new.pointer_mut("/metadata/managedFields");
        if let Some(owners) = owners
            && height(owners) + LEVELS_ABOVE >= DEPTH_MAX
        {
            *owners = Value::Null;
        }
        new
    }

    /// Returns the object after an apply of `patch`, without defaults. `live` is `None` if there is no object.
    ///
    /// # Errors
    ///
    /// Returns the error of the response.
    pub(super) fn after_apply(
        &self,
        live: Option<&Value>,
        patch: &Value,
        name: &str,
        force: Force,
    ) -> Result<Value, ApiError> {
        let live = live.unwrap_or_else(|| self.resource.empty());
        let write = self.write_by(name);
        let applied = self.run(|manager| manager.apply(live, patch, write, force));
        let applied = applied.map_err(refused)?;
        if height(&applied) > DEPTH_MAX {
            return Err(ApiError::too_deep());
        }
        Ok(applied)
    }

    fn write_by<'w>(&self, manager: &'w str) -> Write<'w> {
        let now = self.shared.settings.clock.now();
        Write { manager, now }
    }

    fn run<T>(&self, write: impl FnOnce(FieldManager<'_>) -> T) -> T {
        let versions = Served {
            registry: &self.registry,
            resource: self.resource,
        };
        write(FieldManager {
            versions: &versions,
            api_version: &self.api_version,
            kind: &self.resource.kind.kind,
            subresource: self.part.subresource(),
            ignored: &self.ignored,
            empty: self.resource.empty(),
        })
    }
}

/// Returns the error of the response to an apply that failed.
pub(super) fn refused(error: ApplyError) -> ApiError {
    match error {
        ApplyError::BadRequest(why) => ApiError::bad_request(why),
        ApplyError::Internal(why) => ApiError::unexplained(&why),
        ApplyError::Conflict(conflicts) => {
            ApiError::apply_conflict(conflicts.message(), conflicts.causes())
        }
    }
}

impl Served<'_> {
    fn version(&self, api_version: &str) -> Option<&Resource> {
        let kind = &self.resource.kind;
        if kind.api_version() == api_version {
            return Some(self.resource);
        }
        let found = self.registry.by_kind(api_version, &kind.kind)?;
        (found.collection == self.resource.collection).then_some(found)
    }
}

impl Versions for Served<'_> {
    fn type_of(&self, api_version: &str) -> Option<Type<'_>> {
        let resource = self.version(api_version)?;
        Some(match (&resource.model, resource.value_type()) {
            (Some(model), _) => Type::custom(Some(model.schema())),
            (None, known @ ValueType::Message(_)) => Type::Builtin(known),
            (None, _) => Type::custom(None),
        })
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Option<Value>, String> {
        let kind = &self.resource.kind;
        let Some(to) = self.version(api_version) else {
            if kind.custom {
                return Err(format!(
                    "request to convert CR to an invalid group/version: {api_version}"
                ));
            }
            return Ok(None);
        };
        if to.model.as_ref().is_some_and(|model| model.needs_webhook()) {
            return Err(format!(
                "conversion webhook for {} is not called by this server",
                kind.kind
            ));
        }
        let mut members = object.as_object().cloned().unwrap_or_default();
        let from = members.get("apiVersion").and_then(Value::as_str);
        let from = from.and_then(|from| self.version(from));
        if let Some(conversion) = from.and_then(|from| from.conversion.as_ref()) {
            conversion.store(&mut members);
        }
        if let Some(conversion) = &to.conversion {
            conversion.show(&mut members);
        }
        members.insert("apiVersion".to_owned(), json!(api_version));
        Ok(Some(Value::Object(members)))
    }
}
