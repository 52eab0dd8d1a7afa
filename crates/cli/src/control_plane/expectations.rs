//! Requests of a controller that its cache does not show yet.
//!
//! A controller that creates pods because its cache contains too few would create them again until the cache has caught
//! up.
//! So it records expected events before it sends requests, its handler removes the observed ones, and it counts pods
//! only when none is left.
//! The model is kube-controller-manager's `ControllerExpectations`.
//!
//! Guarantees: an event observed before it is expected does not count twice; an expectation expires after [`EXPECTATION_TIMEOUT`],
//! so a missing event delays the controller but does not block it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube_informer::ObjectName;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time after which expectations expire (`ExpectationsTimeout` in `controller_utils.go`).
pub(crate) const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The expectations of one controller, by the object that it reconciles.
#[derive(Default)]
pub(crate) struct Expectations {
    by_owner: Mutex<BTreeMap<ObjectName, Expected>>,
}

struct Expected {
    since: Instant,
    /// Number of requested creations that have not been observed.
    creations: usize,
    /// The uids whose deletion was requested and has not been observed.
    deletions: BTreeSet<String>,
}

impl Expectations {
    /// Records expectations; must be called before the requests, and only if [`Expectations::met`].
    pub(crate) fn expect(&self, owner: &ObjectName, creations: usize, deletions: BTreeSet<String>) {
        let expected = Expected {
            since: Instant::now(),
            creations,
            deletions,
        };
        self.by_owner.lock().insert(owner.clone(), expected);
    }

    /// Records that one creation was observed or rejected.
    pub(crate) fn created(&self, owner: &ObjectName) {
        self.change(owner, |expected| {
            expected.creations = expected.creations.saturating_sub(1);
        });
    }

    /// Records that a deletion was observed or rejected.
    pub(crate) fn deleted(&self, owner: &ObjectName, uid: &str) {
        self.change(owner, |expected| {
            expected.deletions.remove(uid);
        });
    }

    /// Whether the controller's cache shows all changes that the controller requested for the owner.
    pub(crate) fn met(&self, owner: &ObjectName) -> bool {
        let by_owner = self.by_owner.lock();
        by_owner.get(owner).is_none_or(|expected| {
            (expected.creations == 0 && expected.deletions.is_empty())
                || expected.since.elapsed() >= EXPECTATION_TIMEOUT
        })
    }

    /// Removes the expectations of an owner that was deleted.
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
