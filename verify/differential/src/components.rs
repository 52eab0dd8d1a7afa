//! The list of all components that this program compares with client-go.

use crate::{
    component::Component, delta_fifo, in_order, indexer, informer, rate_limiter, requests,
    workqueue,
};

/// All compared components, in the order in which the program compares them.
pub(crate) const COMPONENTS: [&Component; 7] = [
    &delta_fifo::COMPONENT,
    &in_order::COMPONENT,
    &indexer::COMPONENT,
    &informer::COMPONENT,
    &requests::COMPONENT,
    &workqueue::COMPONENT,
    &rate_limiter::COMPONENT,
];

#[cfg(test)]
mod tests {
    use harness::planted::Planted as _;

    use super::*;
    use crate::{draw::Draw, planted::Bug, sequence::Sequence};

    fn sequences(component: &Component) -> impl Iterator<Item = Sequence> {
        (1..40).map(|seed| (component.draw)(&mut Draw::new(component.name, seed)))
    }

    #[test]
    fn a_seed_always_draws_the_same_sequence_and_seeds_differ() {
        for component in COMPONENTS {
            let text = |sequence| serde_json::to_string(&sequence).unwrap();
            let once: Vec<_> = sequences(component).map(text).collect();
            let again: Vec<_> = sequences(component).map(text).collect();
            assert_eq!(once, again, "{}", component.name);
            assert_ne!(once[0], once[1], "{}", component.name);
        }
    }

    #[test]
    fn every_operation_returns_a_step_whose_behaviours_are_in_the_table() {
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
    fn every_bug_belongs_to_a_component_and_changes_its_answers() {
        for &bug in Bug::ALL {
            let of_it = |component: &&&Component| component.name == bug.place();
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
