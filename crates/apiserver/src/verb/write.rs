//! Defines the parts that all writes share: the options of a write, the address of an object, and the
//! function that stores a change.
//!
//! Guarantees: a write replaces an object only if the object is still in the state from which the change was
//! computed.
//!
//! The modules of the verbs validate changes. This module does not.

use std::ptr;
use std::sync::Arc;

use serde_json::Value;

use super::namespace_content;
use crate::access::approval::Approver;
use crate::access::escalation::RbacWrite;
use crate::field_validation::Warnings;
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::{Shared, State};
use crate::status::ApiError;
use crate::storage::Entry;
use crate::strategy::Part;

/// Maximum number of warnings about the values of an object. A response contains fewer.
const WARNINGS_MAX: usize = 1_000;

/// Origin of a write, which determines the permitted changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A client's request, which is subject to all restrictions of Kubernetes for clients.
    Request,
    /// A Rust method call, such as [`Server::create`](crate::Server::create), instead of a client's request.
    /// The call may change fields that clients can't change.
    Direct,
    /// The creation of a seed while the server is being built. Like [`Origin::Direct`], but the namespace of
    /// the object need not exist.
    Seed,
}

/// Options of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How<'a> {
    pub(crate) origin: Origin,
    pub(crate) part: Part,
    /// Whether the server validates the write and sends the usual response, but stores nothing.
    pub(crate) dry_run: bool,
    /// Receives the warnings about the values of the object. `None` if the write sends no warnings.
    pub(crate) warnings: Option<&'a Warnings>,
    /// How the write changes the owners of the object's fields.
    pub(crate) tracking: Tracking<'a>,
    /// The user whose rights limit a write of an RBAC object. `None` if nothing limits the write.
    pub(crate) rbac: Option<RbacWrite<'a>>,
    /// The user who approves or denies a certificate request. `None` for other writes.
    pub(crate) approver: Option<Approver<'a>>,
}

/// How a write changes `metadata.managedFields`, the owners of the fields of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking<'a> {
    /// Not at all: the object has those that the caller passes.
    Off,
    /// The manager with this name owns the changed fields.
    By(&'a str),
    /// The computed object has its new owners.
    Done,
    /// The object loses all owners, because it is too large with them.
    Removed,
}

/// Address of the object that a request names: resource type, namespace and name.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
}

/// Effect of a write on the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Change,
    /// Stores a change that belongs to a deletion, such as the deletion timestamp. The change is exempt from
    /// the storage quota.
    Mark,
    Remove,
}

// === impl How ===

impl<'a> How<'a> {
    pub(crate) const DIRECT: How<'static> = How {
        origin: Origin::Direct,
        part: Part::All,
        dry_run: false,
        warnings: None,
        tracking: Tracking::Off,
        rbac: None,
        approver: None,
    };

    pub(crate) const SEED: How<'static> = How {
        origin: Origin::Seed,
        ..How::DIRECT
    };

    /// Options of the deletions that follow the deletion of a namespace or of a definition.
    pub(super) const EMPTYING: How<'static> = How::request(Part::All, false);

    /// Returns the options of a client's write to the given part of an object, such as its `status`.
    pub(super) const fn request(part: Part, dry_run: bool) -> How<'a> {
        How {
            origin: Origin::Request,
            part,
            dry_run,
            warnings: None,
            tracking: Tracking::Off,
            rbac: None,
            approver: None,
        }
    }

    /// Returns whether the server adds owners to the object, which is stored without them if it is too large.
    pub(super) fn is_tracked(self) -> bool {
        matches!(self.tracking, Tracking::By(_))
    }

    /// Checks that a written RBAC object gives only rights that the writer has, and that an approver has the right to
    /// approve. `old` is the stored object of an update.
    pub(super) fn check_rights(self, new: &Object, old: Option<&Object>) -> Result<(), ApiError> {
        if let (Some(approver), Some(old)) = (self.approver, old) {
            approver.check(old)?;
        }
        self.rbac.map_or(Ok(()), |write| write.check(new, old))
    }

    /// Adds the warnings about a new object, or about an update, given the stored object.
    pub(super) fn warn(self, resource: &Resource, object: &Object, old: Option<&Object>) {
        if let (Some(warnings), Some(warn)) = (self.warnings, resource.strategy.hooks.warn) {
            let mut texts = Vec::new();
            warn(object, old, &mut texts);
            let sent = texts.into_iter().take(WARNINGS_MAX);
            sent.for_each(|text| warnings.add(text));
        }
    }
}

// === impl Subject ===

impl Subject<'_> {
    pub(crate) fn key(&self) -> String {
        self.resource.key(self.namespace, self.name)
    }

    /// Checks that the namespace in a request body is empty or that of the path.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if it is another one.
    pub(super) fn check_namespace(&self, sent: &str) -> Result<(), ApiError> {
        if sent.is_empty() || self.namespace.is_none_or(|expected| expected == sent) {
            return Ok(());
        }
        Err(ApiError::other_namespace())
    }

    pub(crate) fn not_found(&self) -> ApiError {
        ApiError::not_found(&self.resource.kind, self.name)
    }

    /// Returns the newest durable state of the object, which read requests return.
    pub(crate) fn read(&self, shared: &Shared) -> Result<(Arc<Entry>, Object), ApiError> {
        let state = shared.lock();
        let entry = state
            .storage
            .get(self.resource.collection, &self.key())
            .cloned();
        drop(state);
        let (entry, object) = self.parsed(entry)?;
        entry.check_readable(self.resource)?;
        Ok((entry, object))
    }

    /// Returns the newest accepted state of the object, durable or not, as the base of a write.
    ///
    /// Does not check that the object can be read without a webhook: the server itself deletes objects that can't.
    pub(crate) fn newest(&self, shared: &Shared) -> Result<(Arc<Entry>, Object), ApiError> {
        let state = shared.lock();
        let entry = state.newest(self.resource.collection, &self.key()).cloned();
        drop(state);
        self.parsed(entry)
    }

    fn parsed(&self, entry: Option<Arc<Entry>>) -> Result<(Arc<Entry>, Object), ApiError> {
        let entry = entry.ok_or_else(|| self.not_found())?;
        let object = Object::stored(entry.object(self.resource));
        Ok((entry, object))
    }
}

/// Returns the response object of a write that does not store `new`, such as a dry run or a removal.
///
/// The object has the revision of `entry`, and `link` as its `selfLink`. Kubernetes removes the `selfLink` of
/// a request only when it stores the object.
pub(super) fn not_stored(
    resource: &Resource,
    entry: &Entry,
    new: &Object,
    link: Option<Value>,
) -> Arc<Entry> {
    let mut shown = new.clone();
    shown.set_meta("selfLink", link.filter(|link| *link != ""));
    entry.changed(resource, &shown, entry.revision)
}

/// Replaces the stored object `entry` by `new`, or removes the object if `step` is [`Step::Remove`].
///
/// Returns an entry with the content of `new` and the revision of this write, even if the write removes the
/// object. Returns `None` and changes nothing if `entry` is no longer the newest state of the object.
pub(super) fn replace(
    shared: &Shared,
    resource: &Resource,
    entry: &Entry,
    new: &Object,
    step: Step,
) -> Result<Option<Arc<Entry>>, ApiError> {
    replace_in(shared, &mut shared.lock(), resource, (entry, new), step)
}

/// Replaces an object as [`replace`] does, in a state that the caller has locked.
pub(super) fn replace_in(
    shared: &Shared,
    state: &mut State,
    resource: &Resource,
    (entry, new): (&Entry, &Object),
    step: Step,
) -> Result<Option<Arc<Entry>>, ApiError> {
    // Revisions do not identify a state: one that was rolled back is assigned again.
    let still = state.newest(resource.collection, &entry.key);
    if still.is_none_or(|current| !ptr::eq(Arc::as_ptr(current), entry)) {
        return Ok(None);
    }
    let stored = entry.changed(resource, new, state.next_revision());
    if step == Step::Change {
        shared.check_room(state, Some(entry), &stored)?;
    }
    let kept = (step != Step::Remove).then(|| Arc::clone(&stored));
    shared.commit(state, resource, &entry.key, kept);
    if step == Step::Remove {
        namespace_content::complete(shared, state, resource, &entry.key);
    }
    Ok(Some(stored))
}
