//! What a controller has asked for and its cache does not show yet.
//!
//! A controller that creates pods because its cache shows too few would create them again until the cache has caught up.
//! So it notes what it expects before it asks, its handler crosses out what it hears of, and it counts anew only when nothing is left.
//! kube-controller-manager's `ControllerExpectations` is the model.
//!
//! Guarantees: what is crossed out before it is expected is not counted twice; an expectation ends by itself after [`EXPECTATION_TIMEOUT`], so an event that never comes delays and does not stop.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kube_informer::ObjectName;
use parking_lot::Mutex;
use tokio::time::Instant;

/// After so long a controller counts anew whatever it has heard (`ExpectationsTimeout` in `controller_utils.go`).
pub(crate) const EXPECTATION_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// The expectations of one controller, by the object that it works for.
#[derive(Default)]
pub(crate) struct Expectations {
    by_owner: Mutex<BTreeMap<ObjectName, Expected>>,
}

struct Expected {
    since: Instant,
    /// Creations asked for and not heard of.
    creations: usize,
    /// The uids whose deletion was asked for and not heard of.
    deletions: BTreeSet<String>,
}

impl Expectations {
    /// To be called before the requests are sent, and only when [`Expectations::met`].
    pub(crate) fn expect(&self, owner: &ObjectName, creations: usize, deletions: BTreeSet<String>) {
        let expected = Expected {
            since: Instant::now(),
            creations,
            deletions,
        };
        self.by_owner.lock().insert(owner.clone(), expected);
    }

    /// One creation has been heard of, or was refused.
    pub(crate) fn created(&self, owner: &ObjectName) {
        self.change(owner, |expected| {
            expected.creations = expected.creations.saturating_sub(1);
        });
    }

    /// A deletion has been heard of, or was refused.
    pub(crate) fn deleted(&self, owner: &ObjectName, uid: &str) {
        self.change(owner, |expected| {
            expected.deletions.remove(uid);
        });
    }

    /// Whether the cache shows all that was asked for.
    pub(crate) fn met(&self, owner: &ObjectName) -> bool {
        let by_owner = self.by_owner.lock();
        by_owner.get(owner).is_none_or(|expected| {
            (expected.creations == 0 && expected.deletions.is_empty())
                || expected.since.elapsed() >= EXPECTATION_TIMEOUT
        })
    }

    /// The owner is gone.
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
    async fn nothing_is_counted_anew_until_all_that_was_asked_for_is_heard_of() {
        let expectations = Expectations::default();
        assert!(expectations.met(&owner()));
        expectations.expect(&owner(), 2, BTreeSet::from(["a".to_owned()]));
        expectations.created(&owner());
        expectations.deleted(&owner(), "a");
        assert!(!expectations.met(&owner()), "one creation is still out");
        expectations.created(&owner());
        assert!(expectations.met(&owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn one_deletion_heard_twice_does_not_stand_for_two() {
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
    async fn an_event_that_never_comes_is_not_waited_for_for_ever() {
        let expectations = Expectations::default();
        expectations.expect(&owner(), 1, BTreeSet::new());
        tokio::time::advance(EXPECTATION_TIMEOUT).await;
        assert!(expectations.met(&owner()));
    }

    #[tokio::test(start_paused = true)]
    async fn more_creations_than_expected_leave_nothing_owed() {
        let expectations = Expectations::default();
        expectations.expect(&owner(), 1, BTreeSet::new());
        expectations.created(&owner());
        expectations.created(&owner());
        expectations.expect(&owner(), 1, BTreeSet::new());
        assert!(!expectations.met(&owner()));
    }
}
