//! [`Epoch`] is the number of a period in a server's history. A new period starts when the server is restored
//! from a backup.

/// Number of a period in a server's history. A new period starts when the server is restored from a backup.
///
/// A restored server can use a revision again for another state. Only revision and epoch together identify a
/// state.
///
/// A reflector starts one new epoch when it detects ([`after_rollback`](Self::after_rollback)) or suspects
/// ([`after_suspicion`](Self::after_suspicion)) a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// Number of detected restores of the server.
    rollbacks: u16,
    /// Number of restores of the server that were suspected, but not detected.
    suspicions: u16,
}

impl Epoch {
    /// The epoch before the first detected or suspected restore of the server. Also the epoch of revisions to
    /// which no epoch was assigned, such as revisions created from a string.
    pub(crate) const FIRST: Self = Self {
        rollbacks: 0,
        suspicions: 0,
    };

    /// The epoch of the objects that the user passed to `InformerBuilder::known_objects`.
    ///
    /// The first list has another epoch. The list therefore replaces such an object even if the revisions are
    /// equal.
    pub(crate) const NONE: Self = Self {
        rollbacks: u16::MAX,
        suspicions: u16::MAX,
    };

    /// Returns the epoch that starts when a restore of the server is detected.
    ///
    /// `self` is the reflector's current epoch, and `known` is the epoch of the stored objects. The number of
    /// detected restores is that of `known` plus one. The number of suspected restores is that of `self`.
    ///
    /// Repeated calls before the next list return the same epoch, because only a list changes `known`.
    pub(crate) fn after_rollback(self, known: Self) -> Self {
        Self {
            rollbacks: known.rollbacks.wrapping_add(1),
            ..self
        }
    }

    /// Returns the epoch that starts when a restore of the server is suspected.
    ///
    /// `self` is the reflector's current epoch, and `known` is the epoch of the stored objects. The number of
    /// suspected restores is that of `known` plus one. The number of detected restores is that of `self`.
    ///
    /// Repeated calls before the next list return the same epoch, because only a list changes `known`.
    pub(crate) fn after_suspicion(self, known: Self) -> Self {
        Self {
            suspicions: known.suspicions.wrapping_add(1),
            ..self
        }
    }

    /// Returns whether a restore was detected, and not only suspected, since the `earlier` epoch.
    pub(crate) fn rolled_back_since(self, earlier: Self) -> bool {
        self.rollbacks != earlier.rollbacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollback_and_suspicion_start_a_new_epoch_and_differ_from_each_other() {
        let known = Epoch::FIRST;
        let suspected = known.after_suspicion(known);
        let rolled_back = suspected.after_rollback(known);
        assert_ne!(suspected, known);
        assert_ne!(rolled_back, suspected);
        assert!(!suspected.rolled_back_since(known) && rolled_back.rolled_back_since(known));
        assert_eq!(
            rolled_back.after_rollback(known).after_suspicion(known),
            rolled_back,
            "detected again before a list"
        );
    }

    #[test]
    fn no_number_of_rollbacks_returns_to_the_previous_epoch() {
        let mut epoch = Epoch::FIRST;
        for _ in 0..=2 * u32::from(u16::MAX) {
            let next = epoch.after_rollback(epoch).after_suspicion(epoch);
            assert_ne!(next, epoch);
            epoch = next;
        }
    }
}
