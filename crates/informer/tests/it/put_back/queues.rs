//! Builders of informers with each type of queue.

use std::collections::VecDeque;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    object::{Deleted, Known},
    queue::{Batch, DeltaFifo, InOrder, KeyError, KeyErrors, Queue, Replaced},
    reflector::{Delta, DeltaKind},
    shared_informer::Builder,
};

pub(super) const QUEUES: usize = 5;

/// Returns one informer builder for each type of queue, with the name of the type.
pub(super) fn over_each_queue(
    informer: impl Fn() -> Builder<Pod>,
) -> [(&'static str, Builder<Pod>); QUEUES] {
    [
        ("in order", informer()),
        (
            "one by one",
            informer().queue(InOrder::new().batch_size(1)).batch_size(1),
        ),
        ("by keys", informer().queue(DeltaFifo::new())),
        (
            "as sync",
            informer().queue(DeltaFifo::new().emit_replaced(false)),
        ),
        ("plain", informer().queue(Plain::default())),
    ]
}

/// A custom queue that returns a batch for each delta, and recreates the delta with `Delta::new`.
#[derive(Default)]
struct Plain(VecDeque<Batch<Pod>>);

impl Plain {
    fn single(&mut self, delta: Delta<Pod>) {
        let reached: Vec<_> = match &delta.kind {
            DeltaKind::Bookmark { revision } => vec![(delta.source, revision.clone())],
            _ => Vec::new(),
        };
        self.0.push_back(Batch {
            in_initial_list: false,
            completes: reached.first().map(|(source, _)| *source),
            deltas: vec![Delta::new(delta.source, delta.kind)],
            reached,
        });
    }
}

impl Queue<Pod> for Plain {
    fn push(&mut self, delta: Delta<Pod>, _: &dyn Known<Pod>) -> Result<(), KeyError<Pod>> {
        self.single(delta);
        Ok(())
    }

    fn replace(
        &mut self,
        list: Replaced<Pod>,
        known: &dyn Known<Pod>,
    ) -> Result<(), KeyErrors<Pod>> {
        let Replaced {
            source,
            objects,
            revision,
        } = list;
        known.for_each(&mut |from, name, object| {
            if from == source && objects.iter().all(|listed| listed.object_name() != name) {
                let gone = Deleted::FinalStateUnknown {
                    name: name.clone(),
                    last_known: Some(object.clone()),
                };
                self.single(Delta::new(source, DeltaKind::Deleted(gone)));
            }
        });
        for object in objects {
            self.single(Delta::new(source, DeltaKind::Replaced(object)));
        }
        self.single(Delta::new(source, DeltaKind::Bookmark { revision }));
        Ok(())
    }

    fn resync(&mut self, _: &dyn Known<Pod>) {}

    fn pop_batch(&mut self, room: usize) -> Option<Batch<Pod>> {
        if room == 0 {
            return None;
        }
        self.0.pop_front()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}
