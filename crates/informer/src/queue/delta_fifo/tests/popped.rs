//! Tests the methods of [`Popped`](crate::queue::Popped), a key that was popped from a `DeltaFifo` with its
//! deltas.

use crate::{
    queue::{
        DeltaFifo,
        script::{K, object, show_delta},
    },
    reflector::Delta,
};

#[test]
fn a_unit_knows_its_oldest_and_its_newest_delta() {
    let mut fifo = DeltaFifo::<K>::new();
    for revision in 1..=3 {
        fifo.push(Delta::updated(object(&format!("a@{revision}"))))
            .unwrap();
    }
    let popped = fifo.pop().unwrap();
    let ends = [popped.oldest(), popped.newest()].map(|delta| delta.map(show_delta).unwrap());
    assert_eq!(ends, ["Updated a@1", "Updated a@3"]);
}
