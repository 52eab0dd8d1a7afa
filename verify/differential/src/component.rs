//! [`Component`]: a part of the library that has a counterpart in client-go. What each must be able to
//! do stands in its table; everything else is the same for all.

use crate::{
    compare::Moment,
    delta_fifo,
    draw::Draw,
    in_order, indexer, informer,
    oracle::{Counterpart, Version},
    planted::Bug,
    rate_limiter, requests,
    sequence::{Sequence, Step},
    workqueue,
};

/// How a component is drawn, asked and judged.
pub(crate) struct Component {
    /// Its name, on both sides.
    pub(crate) name: &'static str,
    /// Draws a sequence.
    pub(crate) draw: fn(&mut Draw) -> Sequence,
    /// Which versions of client-go can be asked it.
    pub(crate) versions: fn(&Sequence) -> &'static [Version],
    /// Carries it out here, faultily if a bug is planted: a step per operation.
    pub(crate) replay: fn(&Sequence, Option<Bug>) -> Vec<Step>,
    /// Whom client-go's side of it talks to in the midst of a sequence, if it does.
    pub(crate) counterpart: Option<NewCounterpart>,
    /// What a run has to have shown: verbs, types of deltas, branches.
    pub(crate) behaviours: &'static [&'static str],
    /// Which divergence it is that two answers differ, if it is one.
    pub(crate) recognise: fn(&Moment<'_>) -> Option<Accepted>,
    /// What is wrong with a step whatever client-go says: what a divergence promises of ours.
    pub(crate) must_not: fn(&Step) -> Option<&'static str>,
}

/// Makes whom a sequence is a conversation with.
pub(crate) type NewCounterpart = fn(&Sequence) -> Box<dyn Counterpart>;

/// A difference that is on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// This one; what follows can be compared.
    Here(&'static str),
    /// All of these; what follows can be compared.
    Several(Vec<&'static str>),
    /// This one; from here on both are in different states.
    FromHere(&'static str),
}

/// All of them, in the order in which they run.
pub(crate) const COMPONENTS: [&Component; 7] = [
    &delta_fifo::COMPONENT,
    &in_order::COMPONENT,
    &indexer::COMPONENT,
    &informer::COMPONENT,
    &requests::COMPONENT,
    &workqueue::COMPONENT,
    &rate_limiter::COMPONENT,
];

/// For components that have no such rule.
pub(crate) fn nothing_more(_: &Step) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequences(component: &Component) -> impl Iterator<Item = Sequence> {
        (1..40).map(|seed| (component.draw)(&mut Draw::new(component.name, seed)))
    }

    #[test]
    fn a_seed_draws_the_same_sequence_each_time_and_another_seed_another_one() {
        for component in COMPONENTS {
            let text = |sequence| serde_json::to_string(&sequence).unwrap();
            let once: Vec<_> = sequences(component).map(text).collect();
            let again: Vec<_> = sequences(component).map(text).collect();
            assert_eq!(once, again, "{}", component.name);
            assert_ne!(once[0], once[1], "{}", component.name);
        }
    }

    #[test]
    fn every_operation_gives_a_step_that_shows_what_the_table_has() {
        for component in COMPONENTS {
            for sequence in sequences(component) {
                let steps = (component.replay)(&sequence, None);
                assert_eq!(steps.len(), sequence.operations.len());
                for step in &steps {
                    assert_eq!((component.must_not)(step), None);
                    for seen in &step.seen {
                        assert!(component.behaviours.contains(seen), "{seen}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_bug_belongs_to_a_component_and_changes_what_it_says() {
        for bug in Bug::ALL {
            let of_it = |component: &&&Component| component.name == bug.component();
            let component = COMPONENTS.iter().find(of_it).unwrap();
            let answers = |sequence: &Sequence, bug| {
                let steps = (component.replay)(sequence, bug);
                steps
                    .into_iter()
                    .map(|step| step.answer)
                    .collect::<Vec<_>>()
            };
            let differs =
                |sequence: Sequence| answers(&sequence, Some(bug)) != answers(&sequence, None);
            assert!(sequences(component).any(differs), "{bug}");
        }
    }
}
