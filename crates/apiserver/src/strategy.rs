//! Defines how each resource type behaves on writes and in responses, like Kubernetes' strategies.
//!
//! Guarantees: every resource type has a strategy, including custom types.
//!
//! The module does not access storage. The handlers of the verbs read and write objects, and pass them to the
//! functions of a strategy.

mod api_service;
mod autoscaler;
mod builtin;
mod claim_source;
mod config_data;
mod config_map;
mod container;
pub(crate) mod custom;
pub(crate) mod daemon_set;
pub(crate) mod definition;
mod endpoints;
mod environment;
mod ephemeral_container;
mod event;
mod field;
mod fixed;
mod flow_control;
mod grace_period;
mod ingress;
mod int_or_percent;
mod internal;
mod ip;
mod job;
mod labels;
mod lease;
pub(crate) mod namespace;
mod network_policy;
mod node;
mod persistent_volume;
mod pod;
mod pod_change;
mod pod_spec;
mod port;
mod probe;
mod quality_of_service;
mod quota;
mod rbac;
mod report;
mod reset_fields;
mod resize;
mod resource_name;
mod schedule;
mod scheduling;
mod secret;
mod security;
mod service;
pub(crate) mod signing_request;
mod unchanged;
mod update_checks;
mod volume;
mod volume_path;
mod warnings;
mod workload;
mod workload_status;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::columns::{self, Column};
use crate::kinds::Kind;
use crate::metadata::MetadataRules;
use crate::name_syntax::NameRule;
use crate::object::Object;
use crate::selector::FieldTable;
use crate::status::FieldError;

pub(crate) use fixed::SYSTEM_CLASSES;
pub(crate) use flow_control::{MANDATORY_LEVELS, MANDATORY_SCHEMAS};
pub(crate) use grace_period::{Grace, GracePeriod};
pub(crate) use labels::selector_selects;
pub(crate) use report::Report;
pub(crate) use reset_fields::reset_fields;

/// The part of an object that a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The object itself, not a subresource. The write can change every member, except `status` if the
    /// resource has the subresource `status`.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize`: like [`Part::Main`], but the write can change the `spec` of a namespace.
    ///
    /// A write to [`Part::Main`] of a namespace keeps the stored `spec`.
    Finalize,
    /// The subresource `approval` of a certificate request. The write changes metadata and `status.conditions`.
    Approval,
    /// The subresource `binding` of a pod. The write changes `spec.nodeName`, `status` and annotations.
    Binding,
    /// The subresource `ephemeralcontainers` of a pod. The write changes `spec.ephemeralContainers`.
    EphemeralContainers,
    /// The subresource `resize` of a pod. The write changes the resources of containers and of the pod.
    Resize,
    /// The complete object: the write can change every member, including `status`. Writes by methods of
    /// [`Server`](crate::Server) use this variant.
    All,
}

impl Part {
    /// Returns the part of an object that clients read and write at a subresource.
    ///
    /// Returns `None` for a subresource that is no part of an object, such as `scale`.
    pub(crate) fn of_subresource(kind: &Kind, name: &str) -> Option<Part> {
        match name {
            "status" => Some(Part::Status),
            "finalize" => Some(Part::Finalize),
            "approval" if signing_request::is_kind(kind) => Some(Part::Approval),
            "ephemeralcontainers" if kind.is_builtin("pods") => Some(Part::EphemeralContainers),
            "resize" if kind.is_builtin("pods") => Some(Part::Resize),
            _ => None,
        }
    }

    /// Returns the subresource that `managedFields` names for a write of this part.
    ///
    /// The text is empty for the object itself.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Approval => "approval",
            Part::EphemeralContainers => "ephemeralcontainers",
            Part::Resize => "resize",
            Part::Main | Part::Binding | Part::All => "",
        }
    }
}

/// Determines the metadata of an object after a write of the subresource `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusMetadata {
    /// The object receives the metadata of the request body, but these members keep their stored values.
    Except(&'static [&'static str]),
    /// The metadata does not change.
    Stored,
}

/// The members that Kubernetes' function `ResetObjectMetaForStatus` resets to their stored values.
const RESET_METADATA: [&str; 6] = [
    "deletionTimestamp",
    "selfLink",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
];

impl StatusMetadata {
    const RESET: StatusMetadata = StatusMetadata::Except(&RESET_METADATA);
}

/// What happens to the dependents of a deleted object, if neither the request nor the object determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GarbageCollectionPolicy {
    DeleteDependents,
    OrphanDependents,
    /// The objects of the kind have no dependents, and no propagation policy has an effect.
    Unsupported,
}

/// The behavior of one resource type on writes and in responses.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Strategy {
    pub(crate) metadata: MetadataRules,
    /// Whether clients must update `status` through the subresource `status`.
    pub(crate) has_status: bool,
    pub(crate) status_metadata: StatusMetadata,
    /// Whether a client's create request may set `status`.
    pub(crate) keeps_client_status: bool,
    /// JSON of the `status` that the server sets in a new object without `status`, if it is not one without values.
    pub(crate) initial_status: Option<&'static str>,
    /// Whether writes by methods of [`Server`](crate::Server) are validated too.
    pub(crate) checks_direct_writes: bool,
    pub(crate) counts_generations: bool,
    /// Whether a change of the annotations increments `metadata.generation`.
    pub(crate) counts_annotations: bool,
    /// Whether a client's update must contain a `resourceVersion` (`AllowUnconditionalUpdate` is false).
    pub(crate) requires_revision: bool,
    /// Whether a PUT creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// Whether the response to a deletion is the object instead of a `Status` (`ReturnDeletedObject`).
    pub(crate) returns_deleted: bool,
    /// What happens to the dependents of a deleted object by default (`DefaultGarbageCollectionPolicy`).
    pub(crate) dependents: GarbageCollectionPolicy,
    /// Path of the resource's objects below `/registry/` in Kubernetes' etcd, such as `minions` for nodes.
    /// Error messages contain this path.
    ///
    /// `None` means the plural name, or `group/plural` for a custom resource.
    pub(crate) stored_at: Option<&'static str>,
    pub(crate) fields: FieldTable,
    /// The columns that `kubectl get` prints.
    pub(crate) columns: &'static [Column],
    pub(crate) hooks: Hooks,
}

/// Adds warnings, as [`Hooks::warn`] does.
pub(crate) type Warn = fn(&Object, Option<&Object>, &mut Vec<String>);

/// Adds the errors in a new object to the report, given the stored object, if the write is an update.
type Check = fn(&Object, Option<&Object>, &mut Report);

/// The functions of a strategy, for behavior that is specific to one resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// Changes what Kubernetes changes when it decodes an object: sets defaults, and converts to its internal type.
    pub(crate) decode: fn(&mut Object),
    /// Normalizes an object from a client before a write (`PrepareForCreate`, `PrepareForUpdate`).
    pub(crate) prepare: fn(&mut Object),
    /// Completes the initial `status` of a new object, given the status, the object and the creation time.
    pub(crate) prepare_status: fn(&mut Value, &Object, &str),
    /// Changes members of a new object, which has its name and its uid.
    pub(crate) prepare_create: Option<fn(&mut Object)>,
    /// Adds the errors in the values of an object that a client creates, or of an update, given the new object and the
    /// stored object.
    pub(crate) check: Check,
    /// Adds the errors in the `status` of an update of the subresource `status`, like [`Hooks::check`].
    pub(crate) check_status: Check,
    /// Adds the warnings about a valid object that a client creates, or about an update, given the new object and the
    /// stored object (`WarningsOnCreate`, `WarningsOnUpdate`).
    pub(crate) warn: Option<Warn>,
    /// Returns the errors in the fields of an object that a client creates (`Validate`).
    pub(crate) validate: fn(&Object) -> Vec<FieldError>,
    /// Reverts the forbidden changes of an update, given the new object and the stored object
    /// (`PrepareForUpdate`).
    pub(crate) prepare_update: fn(&mut Object, &Object, Part),
    /// Sets the times that an update of a part lacks.
    ///
    /// The arguments are the new object, the stored object, the part and the current time.
    pub(crate) set_times: Option<fn(&mut Object, &Object, Part, &str)>,
    /// Returns the errors of an update, given the stored object and the new object (`ValidateUpdate`).
    pub(crate) validate_update: fn(&Object, &Object, Part) -> Vec<FieldError>,
    /// Returns whether something other than `metadata.finalizers` delays the removal of the object, such as
    /// `spec.finalizers` of a namespace.
    pub(crate) is_held: fn(&Object) -> bool,
    /// Computes the grace period of a deletion (`CheckGracefulDelete`).
    ///
    /// The arguments are the object, the requested grace period in seconds, and the current time.
    pub(crate) grace_period: fn(&Object, Option<i64>, Timestamp) -> GracePeriod,
}

// === impl Strategy ===

impl Strategy {
    /// The strategy of built-in resources without specific behavior.
    const BUILTIN: Strategy = Strategy {
        metadata: MetadataRules::of(NameRule::Subdomain),
        has_status: false,
        status_metadata: StatusMetadata::Except(&[]),
        keeps_client_status: false,
        initial_status: None,
        checks_direct_writes: false,
        counts_generations: false,
        counts_annotations: false,
        requires_revision: false,
        creates_on_update: false,
        returns_deleted: false,
        dependents: GarbageCollectionPolicy::DeleteDependents,
        stored_at: None,
        fields: FieldTable::NONE,
        columns: columns::DATED,
        hooks: Hooks::NONE,
    };

    /// The strategy of custom resources.
    const CUSTOM: Strategy = Strategy {
        metadata: MetadataRules::GENERIC,
        status_metadata: StatusMetadata::Stored,
        counts_generations: true,
        requires_revision: true,
        fields: FieldTable::CUSTOM,
        hooks: custom::HOOKS,
        ..Strategy::BUILTIN
    };

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

    /// Sets the `status` of a new object, created at `now`, that has none, or only that of the defaults.
    pub(crate) fn start_status(&self, object: &mut Object, now: &str) {
        let initial = self.initial_status.map(serde_json::from_str);
        let Some(mut status) = initial.transpose().expect("the initial statuses are JSON") else {
            return;
        };
        if object.get("status").is_none_or(|sent| *sent == status) {
            (self.hooks.prepare_status)(&mut status, object, now);
            object.set("status", Some(status));
        }
    }
}

// === impl Hooks ===

impl Hooks {
    const NONE: Hooks = Hooks {
        decode: |_| {},
        prepare: |_| {},
        prepare_status: |_, _, _| {},
        prepare_create: None,
        check: |_, _, _| {},
        check_status: |_, _, _| {},
        warn: None,
        validate: |_| Vec::new(),
        prepare_update: |_, _, _| {},
        set_times: None,
        validate_update: |_, _, _| Vec::new(),
        is_held: |_| false,
        grace_period: |_, _, _| GracePeriod::None,
    };

    const fn checked_by(check: Check) -> Hooks {
        Hooks {
            check,
            ..Hooks::NONE
        }
    }

    /// Returns the errors of a client's write, which creates an object if there is no old one.
    pub(crate) fn errors(&self, old: Option<&Object>, new: &Object, part: Part) -> Vec<FieldError> {
        let mut errors = match old {
            None => (self.validate)(new),
            Some(old) => (self.validate_update)(old, new, part),
        };
        let check = match part {
            Part::Main => self.check,
            Part::Status => self.check_status,
            _ => return errors,
        };
        errors.extend(value_errors(check, old, new));
        errors
    }
}

/// Returns the errors in the values of an object, without those that the old object has too.
///
/// A direct call can store an invalid object. A client can still change it, if the change itself is valid.
fn value_errors(
    check: impl Fn(&Object, Option<&Object>, &mut Report),
    old: Option<&Object>,
    new: &Object,
) -> Vec<FieldError> {
    let check = |old, new| {
        let mut report = Report::default();
        check(new, old, &mut report);
        report.into_errors()
    };
    let errors = check(old, new);
    let Some(old) = old.filter(|_| !errors.is_empty()) else {
        return errors;
    };
    // The change can move an invalid item, and the error can show what has changed.
    let place = |error: &FieldError| {
        let field = error.field.split('[').map(|part| {
            let end = part.find(']').map_or(0, |end| end + 1);
            part[end..].to_owned()
        });
        (field.collect::<String>(), error.reason)
    };
    let known: BTreeSet<_> = check(Some(old), old).iter().map(place).collect();
    errors
        .into_iter()
        .filter(|error| !known.contains(&place(error)))
        .collect()
}
