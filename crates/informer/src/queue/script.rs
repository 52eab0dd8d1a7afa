//! Runs test scripts against a queue, and returns a trace of the popped batches. Each line of a script is one
//! operation.
//!
//! ```text
//! known a@1 b@1        sets the content of the store; `known -` empties the store
//! add a@2              queues an addition; update, delete and tombstone queue other changes
//! replace 10: a@2 c@1  queues a list at revision 10
//! bookmark 11          queues a bookmark at revision 11
//! resync               queues a resync
//! pop, pop 2, pop all  pops one batch, one batch of at most 2 changes, or all batches
//! synced?              prints whether the queue has synced
//! ```

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

use super::{Batch, Queue, Replaced};
use crate::{
    object::{Deleted, Known, Object, ObjectName, SourceId},
    reflector::{Delta, DeltaKind},
};

pub(super) type K = ConfigMap;

/// Creates an object from text of the form `name@revision`.
pub(super) fn object(text: &str) -> Object<K> {
    let (name, revision) = text.split_once('@').unwrap();
    Object::new(ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: Some(revision.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    })
    .unwrap()
}

#[derive(Default)]
pub(super) struct Store(BTreeMap<ObjectName, Object<K>>);

impl Known<K> for Store {
    fn known(&self, name: &ObjectName) -> Option<(SourceId, Object<K>)> {
        self.0
            .get(name)
            .map(|object| (SourceId::default(), object.clone()))
    }

    fn for_each(&self, visit: &mut dyn FnMut(SourceId, &ObjectName, &Object<K>)) {
        for (name, object) in &self.0 {
            visit(SourceId::default(), name, object);
        }
    }
}

pub(super) fn show_delta(delta: &Delta<K>) -> String {
    let kind = delta.delta_type();
    match &delta.kind {
        DeltaKind::Deleted(Deleted::FinalStateUnknown { name, last_known }) => match last_known {
            Some(object) => format!("Tombstone {object:?}"),
            None => format!("Tombstone {name}"),
        },
        DeltaKind::ReplacedAll { objects, revision } => {
            let objects: Vec<_> = objects
                .iter()
                .map(|object| format!(" {object:?}"))
                .collect();
            format!("ReplacedAll {revision}:{}", objects.concat())
        }
        DeltaKind::Bookmark { revision } => format!("Bookmark {revision}"),
        DeltaKind::SyncAll => "SyncAll".to_owned(),
        _ => format!("{kind:?} {:?}", delta.object().unwrap()),
    }
}

fn show(batch: &Batch<K>) -> String {
    let deltas: Vec<_> = batch.deltas.iter().map(show_delta).collect();
    let mut line = format!("[{}]", deltas.join(", "));
    if batch.in_initial_list {
        line += " initial";
    }
    if batch.completes.is_some() {
        line += " completes";
    }
    for (_, revision) in &batch.reached {
        line = format!("{line} → {revision}");
    }
    line
}

pub(super) fn play<Q: Queue<K>>(
    queue: &mut Q,
    synced: impl Fn(&Q) -> bool,
    script: &str,
) -> String {
    let mut store = Store::default();
    let mut lines = Vec::new();
    let script = script.split(['\n', ';']).map(str::trim);
    for line in script.filter(|line| !line.is_empty()) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let one = || object(rest);
        let mut push = |kind| {
            let delta = Delta::new(SourceId::default(), kind);
            queue.push(delta, &store).unwrap();
        };
        match (verb, rest) {
            ("known", "-") => store.0.clear(),
            ("known", _) => {
                let objects = rest.split(' ').map(object);
                store.0 = objects.map(|o| (o.object_name().clone(), o)).collect();
            }
            ("add", _) => push(DeltaKind::Added(one())),
            ("update", _) => push(DeltaKind::Updated(one())),
            ("delete", _) => push(DeltaKind::Deleted(Deleted::Known(one()))),
            ("tombstone", _) => {
                push(DeltaKind::Deleted(Deleted::FinalStateUnknown {
                    name: one().object_name().clone(),
                    last_known: Some(one()),
                }));
            }
            ("bookmark", at) => push(DeltaKind::Bookmark {
                revision: at.into(),
            }),
            ("replace", _) => {
                let (revision, objects) = rest.split_once(':').unwrap();
                let list = Replaced {
                    source: SourceId::default(),
                    objects: objects.split_whitespace().map(object).collect(),
                    revision: revision.into(),
                };
                queue.replace(list, &store).unwrap();
            }
            ("resync", _) => queue.resync(&store),
            ("pop", "all") => {
                while let Some(batch) = queue.pop_batch(usize::MAX) {
                    lines.push(show(&batch));
                }
                assert!(queue.is_empty());
                assert_eq!(queue.len(), 0);
            }
            ("pop", room) => {
                let room = room.parse().unwrap_or(usize::MAX);
                let batch = queue.pop_batch(room);
                lines.push(batch.as_ref().map_or("nothing".to_owned(), show));
            }
            ("synced?", _) => lines.push(
                if synced(queue) {
                    "synced"
                } else {
                    "not synced"
                }
                .to_owned(),
            ),
            other => panic!("unknown line {other:?}"),
        }
    }
    lines
        .iter()
        .flat_map(|line| [line.as_str(), "\n"])
        .collect()
}
