//! Defines how each resource type behaves on writes and in responses, like Kubernetes' strategies.
//!
//! Guarantees: every resource type has a strategy, including custom types.
//!
//! The module does not access storage. The handlers of the verbs read and write objects, and pass them to the
//! functions of a strategy.

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
    /// The object itself: every member, except `status` if the resource has the subresource `status`.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize`: the members of [`Part::Main`], and `spec.finalizers` of a namespace.
    Finalize,
    /// The subresource `binding` of a pod. The server changes `spec.nodeName` and `status`.
    Binding,
    /// Every member, including `status`. The methods of [`Server`](crate::Server) change this part.
    All,
}

/// The behavior of one resource type on writes and in responses.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Strategy {
    pub(crate) metadata: MetadataRules,
    /// Whether the resource has the subresource `status`.
    ///
    /// If this is true, clients can update `status` only through the subresource.
    pub(crate) has_status: bool,
    /// Whether a client's create request may set `status`, as for a node that a kubelet registers.
    pub(crate) keeps_client_status: bool,
    /// The `status` that the server sets in a new object without `status`, as JSON.
    ///
    /// `None` if the server sets no status.
    pub(crate) initial_status: Option<&'static str>,
    pub(crate) counts_generations: bool,
    /// Whether a change of the annotations increments `metadata.generation`, as a change of the spec does.
    pub(crate) counts_annotations: bool,
    /// Whether a client's update must contain a `resourceVersion` (`AllowUnconditionalUpdate` is false).
    pub(crate) requires_revision: bool,
    /// Whether a PUT creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// Whether the response to a deletion is the object instead of a `Status` (`ReturnDeletedObject`).
    pub(crate) returns_deleted: bool,
    /// Prefix of the resource's etcd keys. Some error messages of Kubernetes contain this prefix.
    ///
    /// `None` if the prefix is the plural name of the resource.
    pub(crate) stored_at: Option<&'static str>,
    /// The fields that field selectors can compare.
    pub(crate) fields: FieldTable,
    /// The columns that `kubectl get` prints.
    pub(crate) columns: &'static [Column],
    pub(crate) hooks: Hooks,
}

/// The functions of a strategy, for behavior that is specific to one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// Normalizes an object that a client sent, before the object is created or updated.
    ///
    /// The function corresponds to `PrepareForCreate` and `PrepareForUpdate` of Kubernetes' strategies.
    pub(crate) prepare: fn(&mut Object),
    /// Completes the initial `status` of a new object.
    ///
    /// The arguments are the status, the object, and the creation time as text.
    pub(crate) prepare_status: fn(&mut Value, &Object, &str),
    /// Adds required members to a new object, after the name of the object has been set.
    pub(crate) prepare_create: fn(&mut Object),
    /// Returns the errors of a new object's fields (`Validate`).
    pub(crate) validate: fn(&Object) -> Vec<FieldError>,
    /// Reverts the changes that an update must not make to an object (`PrepareForUpdate`).
    ///
    /// The arguments are the new object, the stored object, and the part that the write changes.
    pub(crate) prepare_update: fn(&mut Object, &Object, Part),
    /// Returns the errors of an update (`ValidateUpdate`).
    ///
    /// The arguments are the stored object, the new object, and the part that the write changes.
    pub(crate) validate_update: fn(&Object, &Object, Part) -> Vec<FieldError>,
    /// Returns whether anything except `metadata.finalizers` delays the removal of an object that is being
    /// deleted, such as the finalizers in the `spec` of a namespace.
    pub(crate) is_held: fn(&Object) -> bool,
    /// Computes the effect of a client's deletion on the object's grace period (`CheckGracefulDelete`).
    ///
    /// The arguments are the object, the requested grace period in seconds, and the current time.
    /// The requested grace period is `None` if the request contains no grace period.
    pub(crate) grace_period: fn(&Object, Option<i64>, Timestamp) -> GracePeriod,
}

// === impl Strategy ===

impl Strategy {
    /// The strategy of built-in resources without specific behavior.
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

    /// The strategy of custom resources.
    const CUSTOM: Strategy = Strategy {
        metadata: MetadataRules::CUSTOM,
        counts_generations: true,
        requires_revision: true,
        fields: FieldTable::CUSTOM,
        ..Strategy::BUILTIN
    };

    /// Returns the strategy of a kind.
    ///
    /// The strategy depends on whether the kind has the subresource `status`.
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

    /// Returns the `status` for a new object without `status`, or `None` if the server sets no status.
    ///
    /// `now` is the creation time.
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
