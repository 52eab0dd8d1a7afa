//! Which revisions can be compared: those that a server gave out without going back in between.

/// A part of a server's history as one reflector has heard it, in four bytes.
///
/// A server that was restored from a backup gives revisions out again, to other states, so a revision
/// names a state on one timeline only. A reflector begins another one with the first list after it has
/// noticed such a thing, or may have missed it. The numbers come round, and then nothing is left of what
/// had them before, for each list replaces everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Timeline {
    /// How often the server was seen to have gone back.
    setbacks: u16,
    /// How often it may have.
    doubts: u16,
}

impl Timeline {
    /// The one that everything begins on: what was just decoded, and what users make.
    pub(crate) const FIRST: Self = Self {
        setbacks: 0,
        doubts: 0,
    };

    /// That of what was known before anything was heard, from wherever: like none that a reflector comes
    /// to before its first list.
    pub(crate) const UNHEARD: Self = Self {
        setbacks: u16::MAX,
        doubts: u16::MAX,
    };

    /// The next one, as the server has gone back behind what is known, which is of `known`.
    pub(crate) fn after_setback(self, known: Self) -> Self {
        Self {
            setbacks: known.setbacks.wrapping_add(1),
            ..self
        }
    }

    /// The next one, as the server may have gone back behind what is known, which is of `known`.
    pub(crate) fn after_doubt(self, known: Self) -> Self {
        Self {
            doubts: known.doubts.wrapping_add(1),
            ..self
        }
    }

    /// Whether the server is known to have gone back between the two.
    pub(crate) fn went_back_since(self, earlier: Self) -> bool {
        self.setbacks != earlier.setbacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_and_a_setback_begin_another_timeline_and_only_the_setback_says_so() {
        let known = Timeline::FIRST;
        let doubted = known.after_doubt(known);
        let put_back = doubted.after_setback(known);
        assert_ne!(doubted, known);
        assert_ne!(put_back, doubted);
        assert!(!doubted.went_back_since(known) && put_back.went_back_since(known));
        assert_eq!(
            put_back.after_setback(known).after_doubt(known),
            put_back,
            "noticed again before anything was listed"
        );
    }

    #[test]
    fn no_number_of_setbacks_leads_back_to_what_was_known_just_before() {
        let mut timeline = Timeline::FIRST;
        for _ in 0..=2 * u32::from(u16::MAX) {
            let next = timeline.after_setback(timeline).after_doubt(timeline);
            assert_ne!(next, timeline);
            timeline = next;
        }
    }
}
