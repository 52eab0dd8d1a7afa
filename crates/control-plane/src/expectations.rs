//! Counts the creations and deletions that a controller has requested but not yet observed.
//!
//! After a creation request, the controller's cache does not immediately contain the new pod. A controller
//! that counts the pods in its cache too early would create too many pods. Therefore it records an
//! expectation for each request before it sends the request. The event handler removes the expectation when
//! the pod's event arrives. The controller counts pods only if no expectation is left.
//! kube-controller-manager's `ControllerExpectations` works in the same way.
//!
//! Guarantees:
//! - an event for which no expectation is recorded does not affect later expectations;
//! - expectations expire after [`EXPECTATION_TIMEOUT`], so a missing event does not block the controller
//!   forever.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube_informer::ObjectName;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time after which an owner's expectations expire; equals `ExpectationsTimeout` in Kubernetes.
pub(crate) const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The events that one controller still expects, grouped by owner.
///
/// An owner is an object that the controller reconciles.
#[derive(Default)]
pub(crate) struct Expectations {
    by_owner: Mutex<BTreeMap<ObjectName, Expected>>,
}

struct Expected {
    since: Instant,
    /// Number of requested creations whose `Added` event has not been observed.
    creations: usize,
    /// Uids of the objects whose deletion was requested and has not been observed.
    deletions: BTreeSet<String>,
}

impl Expectations {
    /// Replaces the expected events of an owner. `deletions` contains the uids of the objects to delete.
    ///
    /// Must be called before the requests are sent, and only if [`Expectations::met`] returned `true`.
    pub(crate) fn expect(&self, owner: &ObjectName, creations: usize, deletions: BTreeSet<String>) {
        let expected = Expected {
            since: Instant::now(),
            creations,
            deletions,
        };
        self.by_owner.lock().insert(owner.clone(), expected);
    }

    /// Reduces the owner's number of expected creations by one.
    ///
    /// Must be called for each `Added` event, and for each creation request that failed or was not sent.
    pub(crate) fn created(&self, owner: &ObjectName) {
        self.change(owner, |expected| {
            expected.creations = expected.creations.saturating_sub(1);
        });
    }

    /// Removes the expected deletion of the object with the uid `uid`.
    ///
    /// Must be called for each deletion event, and for each deletion request that failed or was not sent.
    pub(crate) fn deleted(&self, owner: &ObjectName, uid: &str) {
        self.change(owner, |expected| {
            expected.deletions.remove(uid);
        });
    }

    /// Returns whether the owner has no expected events left, or its expectations have expired.
    pub(crate) fn met(&self, owner: &ObjectName) -> bool {
        let by_owner = self.by_owner.lock();
        by_owner.get(owner).is_none_or(|expected| {
            (expected.creations == 0 && expected.deletions.is_empty())
                || expected.since.elapsed() >= EXPECTATION_TIMEOUT
        })
    }

    /// Removes the expectations of an owner that does not exist any more.
    pub(crate) fn forget(&self, owner: &ObjectName) {
        self.by_owner.lock().remove(owner);
    }

    fn change(&self, owner: &ObjectName, change: impl FnOnce(&mut Expected)) {
        if let Some(expected) = self.by_owner.lock().get_mut(owner) {
            change(expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> ObjectName {
        ObjectName::namespaced("default", "web")
    }

    #[tokio::test(start_paused = true)]
    async fn expectations_are_met_once_all_events_are_observed() {
        let expectations = Expectations::default();
        assert!(expectations.met(&owner()));
        expectations.expect(&owner(), 2, BTreeSet::from(["a".to_owned()]));
        expectations.created(&owner());
        expectations.deleted(&owner(), "a");
        assert!(!expectations.met(&owner()), "one creation was not observed");
        expectations.created(&owner());
        assert!(expectations.met(&owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_observed_twice_counts_once() {
        let expectations = Expectations::default();
        expectations.expect(
            &owner(),
            0,
            BTreeSet::from(["a".to_owned(), "b".to_owned()]),
        );
        expectations.deleted(&owner(), "a");
        expectations.deleted(&owner(), "a");
        assert!(!expectations.met(&owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_expectation_expires() {
        let expectations = Expectations::default();
        expectations.expect(&owner(), 1, BTreeSet::new());
        tokio::time::advance(EXPECTATION_TIMEOUT).await;
        assert!(expectations.met(&owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn additional_creations_are_ignored() {
        let expectations = Expectations::default();
        expectations.expect(&owner(), 1, BTreeSet::new());
        expectations.created(&owner());
        expectations.created(&owner());
        expectations.expect(&owner(), 1, BTreeSet::new());
        assert!(!expectations.met(&owner()));
    }
}
