//! Tests that each batch of `DeltaFifo` reports the completion of at most one reflector's first list.

use crate::{
    object::SourceId,
    queue::{
        Batch, DeltaFifo, Queue, Replaced,
        script::{K, object, show_delta},
    },
};

fn list(source: u32, objects: &[&str]) -> Replaced<K> {
    Replaced {
        source: SourceId::new(source),
        objects: objects.iter().map(|text| object(text)).collect(),
        revision: 9.into(),
    }
}

fn show(batch: &Batch<K>) -> String {
    let deltas: Vec<_> = batch.deltas.iter().map(show_delta).collect();
    let completes = batch.completes.map(SourceId::number);
    format!(
        "{deltas:?} initial: {}, completes {completes:?}",
        batch.in_initial_list
    )
}

#[test]
fn a_unit_that_completes_two_first_lists_is_followed_by_an_empty_batch() {
    let mut fifo = DeltaFifo::<K>::new();
    for source in [1, 2] {
        fifo.replace(list(source, &["a@1"]), &()).unwrap();
    }
    assert!(!fifo.has_synced());
    let popped: Vec<_> = std::iter::from_fn(|| fifo.pop_batch(2))
        .map(|batch| show(&batch))
        .collect();
    assert_eq!(
        popped,
        [
            r#"["Replaced a@1", "Replaced a@1"] initial: true, completes Some(1)"#,
            "[] initial: true, completes Some(2)",
        ]
    );
    assert!(fifo.has_synced() && Queue::is_empty(&fifo));
}
