//! [`Epoch`]: which revisions can be compared, namely those that a server gave out without going back in between.

/// A part of a server's history, in four bytes.
///
/// A server that was restored from a backup gives revisions out again, to other states, so a revision names a state
/// in one epoch only. A reflector hands everything on in its current epoch, and only these enter another one:
///
/// | transition | when | what readers conclude |
/// | --- | --- | --- |
/// | [`after_rollback`](Self::after_rollback) | the reflector has seen that the server has gone back | revisions start over; waits for revisions and pending writes end |
/// | [`after_suspicion`](Self::after_suspicion) | the server may have gone back | an equal revision is no proof of an equal state; nothing else |
///
/// Both count from the epoch of what the store has, so that several of them before the next list make one step. The
/// counts wrap around; by then nothing in a store is of the same epoch, since each list replaces everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// How often the server has gone back.
    rollbacks: u16,
    /// How often it may have.
    suspicions: u16,
}

impl Epoch {
    /// The first one, also that of everything that was just decoded, and of what users make.
    pub(crate) const FIRST: Self = Self {
        rollbacks: 0,
        suspicions: 0,
    };

    /// The epoch of what no reflector has received: no reflector enters it before its first list.
    pub(crate) const NONE: Self = Self {
        rollbacks: u16::MAX,
        suspicions: u16::MAX,
    };

    /// The next one, as the server has gone back since the epoch `known` of what the store has.
    pub(crate) fn after_rollback(self, known: Self) -> Self {
        Self {
            rollbacks: known.rollbacks.wrapping_add(1),
            ..self
        }
    }

    /// The next one, as the server may have gone back since the epoch `known` of what the store has.
    pub(crate) fn after_suspicion(self, known: Self) -> Self {
        Self {
            suspicions: known.suspicions.wrapping_add(1),
            ..self
        }
    }

    /// Whether the server has gone back between the two.
    pub(crate) fn rolled_back_since(self, earlier: Self) -> bool {
        self.rollbacks != earlier.rollbacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_and_a_suspicion_begin_another_epoch_and_only_the_rollback_says_so() {
        let known = Epoch::FIRST;
        let suspected = known.after_suspicion(known);
        let rolled_back = suspected.after_rollback(known);
        assert_ne!(suspected, known);
        assert_ne!(rolled_back, suspected);
        assert!(!suspected.rolled_back_since(known) && rolled_back.rolled_back_since(known));
        assert_eq!(
            rolled_back.after_rollback(known).after_suspicion(known),
            rolled_back,
            "noticed again before anything was listed"
        );
    }

    #[test]
    fn no_number_of_rollbacks_leads_back_to_the_epoch_just_before() {
        let mut epoch = Epoch::FIRST;
        for _ in 0..=2 * u32::from(u16::MAX) {
            let next = epoch.after_rollback(epoch).after_suspicion(epoch);
            assert_ne!(next, epoch);
            epoch = next;
        }
    }
}
