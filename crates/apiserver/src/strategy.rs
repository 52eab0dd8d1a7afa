//! Strategies: how each resource type behaves on writes and in responses.
//!
//! Guarantees:
//! - a strategy is resolved once, when its resource type is registered; writes do not look it up by name;
//! - a strategy is plain data and a few functions, so a custom resource can have one too.
//!
//! This module does not access storage. The handlers of the verbs read and write objects, and pass them to
//! these functions.

mod builtin;
mod grace_period;
pub(crate) mod namespace;
mod persistent_volume;
mod pod;
mod secret;

use jiff::Timestamp;
use serde_json::Value;

use crate::columns::{self, Column};
use crate::kinds::Kind;
use crate::metadata::MetadataRules;
use crate::name_syntax::NameRule;
use crate::object::Object;
use crate::selector::FieldTable;
use crate::status::FieldError;

pub(crate) use grace_period::{Grace, GracePeriod};

/// The part of an object that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The resource itself: everything except `status`, if that is a subresource.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize`: like [`Part::Main`], plus the finalizers in a namespace's `spec`.
    Finalize,
    /// The subresource `binding`: the server sets a pod's `spec.nodeName` and `status`.
    Binding,
    /// Everything: a direct call on the server.
    All,
}

/// The strategy of one resource.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Strategy {
    pub(crate) metadata: MetadataRules,
    /// Whether `status` is writable only through its own subresource.
    pub(crate) has_status: bool,
    /// Whether create stores the client's `status`, as for a node that a kubelet registers.
    pub(crate) keeps_client_status: bool,
    /// The `status` of a new object without one, as JSON: Go's empty value, or the value that Kubernetes sets.
    pub(crate) initial_status: Option<&'static str>,
    pub(crate) counts_generations: bool,
    /// Whether a change of annotations also increments the generation.
    pub(crate) counts_annotations: bool,
    /// Whether a client's update must name a revision (`AllowUnconditionalUpdate` is false).
    pub(crate) requires_revision: bool,
    /// Whether a PUT creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// Whether a deletion returns the object instead of a `Status` (`ReturnDeletedObject`).
    pub(crate) returns_deleted: bool,
    /// The etcd prefix of the objects, which some messages contain; `None` means the plural.
    pub(crate) stored_at: Option<&'static str>,
    /// The selectable fields.
    pub(crate) fields: FieldTable,
    /// The printer columns.
    pub(crate) columns: &'static [Column],
    pub(crate) hooks: Hooks,
}

/// Functions specific to one resource; each works on a plain object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// Normalizes an object before it is stored (`PrepareForCreate`, `PrepareForUpdate`).
    pub(crate) prepare: fn(&mut Object),
    /// Completes the initial status; the text is the creation time.
    pub(crate) prepare_status: fn(&mut Value, &Object, &str),
    /// Completes a new object after its name is set.
    pub(crate) prepare_create: fn(&mut Object),
    /// Validates a new object (`Validate`).
    pub(crate) validate: fn(&Object) -> Vec<FieldError>,
    /// Restores in the first object the parts of the second that this write can't change.
    pub(crate) prepare_update: fn(&mut Object, &Object, Part),
    /// Validates the update of the second object to the first (`ValidateUpdate`).
    pub(crate) validate_update: fn(&Object, &Object, Part) -> Vec<FieldError>,
    /// Whether the object stays after deletion although `metadata` has no finalizer.
    pub(crate) is_held: fn(&Object) -> bool,
    /// The grace period of a client's deletion, given the requested seconds (`CheckGracefulDelete`).
    pub(crate) grace_period: fn(&Object, Option<i64>, Timestamp) -> GracePeriod,
}

// === impl Strategy ===

impl Strategy {
    /// The strategy for built-in resources without specific behaviour and without the subresource `status`.
    const BUILTIN: Strategy = Strategy {
        metadata: MetadataRules::of(NameRule::Subdomain),
        has_status: false,
        keeps_client_status: false,
        initial_status: None,
        counts_generations: false,
        counts_annotations: false,
        requires_revision: false,
        creates_on_update: false,
        returns_deleted: false,
        stored_at: None,
        fields: FieldTable::NONE,
        columns: columns::ANY,
        hooks: Hooks::NONE,
    };

    /// A custom resource; without `status`.
    const CUSTOM: Strategy = Strategy {
        metadata: MetadataRules::CUSTOM,
        counts_generations: true,
        requires_revision: true,
        fields: FieldTable::CUSTOM,
        ..Strategy::BUILTIN
    };

    /// Returns the strategy of a kind.
    pub(crate) fn of(kind: &Kind) -> Strategy {
        let strategy = if kind.custom {
            Strategy::CUSTOM
        } else {
            builtin::strategy(&kind.group_resource())
        };
        let has_status = kind.has_subresource("status");
        Strategy {
            has_status,
            keeps_client_status: strategy.keeps_client_status || !has_status,
            ..strategy
        }
    }

    /// Returns the `status` of a new object without one; `now` is the creation time.
    pub(crate) fn initial_status(&self, object: &Object, now: &str) -> Option<Value> {
        let status = serde_json::from_str(self.initial_status?);
        let mut status = status.expect("the initial statuses are JSON");
        (self.hooks.prepare_status)(&mut status, object, now);
        Some(status)
    }
}

// === impl Hooks ===

impl Hooks {
    const NONE: Hooks = Hooks {
        prepare: |_| {},
        prepare_status: |_, _, _| {},
        prepare_create: |_| {},
        validate: |_| Vec::new(),
        prepare_update: |_, _, _| {},
        validate_update: |_, _, _| Vec::new(),
        is_held: |_| false,
        grace_period: |_, _, _| GracePeriod::None,
    };
}
