//! Determines whether the server serves an informer's kind, and when reflectors are suspended.
//!
//! A kind counts as not served if two conditions are met: the CRD of the kind was deleted, and the server
//! responds with 404 to requests for the kind. The deletion alone is not sufficient, because the CRD may have
//! been created again. A 404 alone is not sufficient, because a server also responds with 404 while it
//! starts.

use tokio::sync::watch;

use crate::reflector::NotServed;

/// The state of a kind's definition (its CRD), as last received from the server.
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "only a factory follows definitions")
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Definition {
    /// The informer has not received the kind's CRD. A built-in kind has no CRD, so it always has this state.
    #[default]
    Unknown,
    /// The CRD of the kind exists.
    ///
    /// The informer receives this value again after each change of the CRD, because a change can make the
    /// kind available.
    There,
    /// The CRD of the kind existed and was deleted.
    Deleted,
}

/// Whether the reflectors of an informer run or are suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Availability {
    /// The reflectors list and watch. The server serves or may serve the kind.
    Active,
    /// The server does not serve the kind, so the reflectors send no requests.
    Dormant,
}

/// Tracks whether the server serves a kind. Uses the state of the kind's CRD, and the server's 404 responses.
pub(super) struct Following {
    definition: watch::Receiver<Definition>,
    not_served: NotServed,
    answers: watch::Receiver<bool>,
    is_dormant: bool,
}

impl Following {
    pub(super) fn new(definition: watch::Receiver<Definition>, not_served: NotServed) -> Self {
        Self {
            definition,
            answers: not_served.subscribe(),
            not_served,
            is_dormant: false,
        }
    }

    /// Waits until the reflectors must be suspended or restarted.
    ///
    /// Returns [`Availability::Dormant`] if the reflectors must be suspended, and [`Availability::Active`] if
    /// they must be restarted.
    ///
    /// # Cancel safety
    /// Cancel safe: dropping the future loses no change.
    pub(super) async fn changed(&mut self) -> Availability {
        let mut is_new = self.definition.has_changed().unwrap_or_default();
        loop {
            let refused = *self.answers.borrow_and_update();
            let definition = *self.definition.borrow_and_update();
            match (definition, self.is_dormant) {
                (Definition::Deleted, false) if refused => {
                    self.is_dormant = true;
                    return Availability::Dormant;
                }
                (Definition::There, true) => return self.activate(),
                // The change may make the kind available: it is established, or its version is served.
                (Definition::There, false) if refused && is_new => return self.activate(),
                _ => {}
            }
            tokio::select! {
                biased;
                changed = self.definition.changed() => {
                    is_new = true;
                    if changed.is_err() {
                        // The definition is no longer followed.
                        std::future::pending::<()>().await;
                    }
                }
                // This can't fail, because the sender is a field of `self`.
                _ = self.answers.changed() => is_new = false,
            }
        }
    }

    fn activate(&mut self) -> Availability {
        self.is_dormant = false;
        // Discards 404 responses to the previous reflectors, which may be outdated.
        self.not_served.clear();
        Availability::Active
    }
}

/// Waits like [`Following::changed`], or forever if `following` is `None`.
pub(super) async fn next(following: Option<&mut Following>) -> Availability {
    match following {
        Some(following) => following.changed().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn following() -> (watch::Sender<Definition>, NotServed, Following) {
        let (sender, definition) = watch::channel(Definition::Unknown);
        let not_served = NotServed::default();
        let following = Following::new(definition, not_served.clone());
        (sender, not_served, following)
    }

    #[test]
    fn a_kind_is_dormant_when_its_definition_is_gone_and_the_server_answers_404() {
        for refused_first in [true, false] {
            let (sender, not_served, mut following) = following();
            sender.send_replace(Definition::There);
            assert_eq!(following.changed().now_or_never(), None);
            let refuse = || assert!(not_served.set());
            let delete = || _ = sender.send_replace(Definition::Deleted);
            let (first, second): (&dyn Fn(), &dyn Fn()) = if refused_first {
                (&refuse, &delete)
            } else {
                (&delete, &refuse)
            };
            first();
            assert_eq!(following.changed().now_or_never(), None, "one fact alone");
            second();
            let dormant = Some(Availability::Dormant);
            assert_eq!(following.changed().now_or_never(), dormant);
            assert_eq!(following.changed().now_or_never(), None, "once");
            sender.send_replace(Definition::There);
            let active = Some(Availability::Active);
            assert_eq!(following.changed().now_or_never(), active);
            assert!(not_served.set(), "it is asked anew");
        }
    }

    #[test]
    fn a_change_of_the_definition_before_a_refusal_is_no_reason_to_ask_again_at_once() {
        let (sender, not_served, mut following) = following();
        let mut changed = Box::pin(following.changed());
        sender.send_replace(Definition::There);
        assert_eq!(changed.as_mut().now_or_never(), None);
        not_served.set();
        let refused = changed.as_mut().now_or_never();
        assert_eq!(refused, None, "it is refused all the same");
        sender.send_replace(Definition::There);
        assert_eq!(changed.now_or_never(), Some(Availability::Active));
    }

    #[test]
    fn without_a_sender_of_definitions_nothing_changes() {
        let (sender, not_served, mut following) = following();
        drop(sender);
        assert_eq!(following.changed().now_or_never(), None);
        not_served.set();
        assert_eq!(following.changed().now_or_never(), None);
    }

    #[test]
    fn a_change_of_the_definition_counts_once_also_if_it_came_before_the_wait() {
        let (sender, not_served, mut following) = following();
        let active = Some(Availability::Active);
        for _ in 0..2 {
            not_served.set();
            sender.send_replace(Definition::There);
            assert_eq!(following.changed().now_or_never(), active);
            not_served.set();
            let changed = following.changed().now_or_never();
            assert_eq!(changed, None, "no other change");
        }
    }
}
