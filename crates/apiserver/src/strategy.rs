//! What the server does with the objects of one resource, on a write and when it shows them.
//!
//! Guarantees:
//! - a strategy is resolved once, when its resource is made; a write finds nothing by the name of a resource;
//! - a strategy is plain data and a few functions, and can be made for a custom resource at any time.
//!
//! It does not read or write the store: the verbs do, and call the functions here on plain objects.

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

/// Which part of an object a write changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The resource itself: everything but `status`, if that is a subresource.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize`: as [`Part::Main`], and the finalizers in a namespace's `spec`.
    Finalize,
    /// The subresource `binding`: the server sets `spec.nodeName` and `status` of a pod.
    Binding,
    /// Everything: a direct call of the server's owner.
    All,
}

/// The strategy of one resource.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Strategy {
    pub(crate) metadata: MetadataRules,
    /// Whether `status` is written through its own subresource only.
    pub(crate) has_status: bool,
    /// Whether create stores the `status` that a client sends; a kubelet registers its node with one.
    pub(crate) keeps_client_status: bool,
    /// The `status` of a new object that has none, as JSON: what Go writes for the empty one, or what Kubernetes sets.
    pub(crate) initial_status: Option<&'static str>,
    pub(crate) counts_generations: bool,
    /// Whether a change of the annotations is a new generation too.
    pub(crate) counts_annotations: bool,
    /// Whether a client's update must name a revision (`AllowUnconditionalUpdate` is false).
    pub(crate) requires_revision: bool,
    /// Whether a PUT creates an object that does not exist (`AllowCreateOnUpdate`).
    pub(crate) creates_on_update: bool,
    /// Whether a deletion returns the object, not a `Status` (`ReturnDeletedObject`).
    pub(crate) returns_deleted: bool,
    /// Where etcd has the objects, which some messages contain; `None` is under the plural.
    pub(crate) stored_at: Option<&'static str>,
    /// The selectable fields.
    pub(crate) fields: FieldTable,
    /// The printer columns.
    pub(crate) columns: &'static [Column],
    pub(crate) hooks: Hooks,
}

/// What a resource does that no other does; each is called on a plain object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// Normalizes an object that is about to be stored (`PrepareForCreate`, `PrepareForUpdate`).
    pub(crate) prepare: fn(&mut Object),
    /// Completes the initial status; the text is the time of creation.
    pub(crate) prepare_status: fn(&mut Value, &Object, &str),
    /// Completes a new object whose name is known.
    pub(crate) prepare_create: fn(&mut Object),
    /// Rejects a new object (`Validate`).
    pub(crate) validate: fn(&Object) -> Vec<FieldError>,
    /// Restores in the first object what a write to this part of the second does not change.
    pub(crate) prepare_update: fn(&mut Object, &Object, Part),
    /// Rejects what a write to this part makes of the second object (`ValidateUpdate`).
    pub(crate) validate_update: fn(&Object, &Object, Part) -> Vec<FieldError>,
    /// Whether the object stays after its deletion although it has no finalizer in `metadata`.
    pub(crate) is_held: fn(&Object) -> bool,
    /// The grace period that a client's deletion gives, by the seconds that it asks for (`CheckGracefulDelete`).
    pub(crate) grace_period: fn(&Object, Option<i64>, Timestamp) -> GracePeriod,
}

// === impl Strategy ===

impl Strategy {
    /// A built-in resource that differs from no other; without `status`.
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

    /// Resolves the strategy of a kind.
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

    /// The `status` of a new object that has none; `now` is the time of its creation.
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
