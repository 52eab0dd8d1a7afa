//! Runs random sequences of operations on the library's `Indexer`, and returns the answer to each operation.
//!
//! This module does not compare the answers with those of client-go.

use kube_informer::{
    indexer::{self, Indexer, IndexerWriter, Indexers, NoSuchIndex},
    object::{Deleted, Object, ObjectName, ResourceVersion, SourceId},
    queue::{Batch, InOrder, Queue},
    reflector::{Delta, DeltaKind},
};

use super::{
    ADDED, APP, BATCH_ENDS_MISSED, BATCH_ENDS_TOLD, DELETE_NOT_THERE, DELETE_THERE, INDEX_FOUND,
    INDEX_LATE, INDEX_NOT_FOUND, INDEX_TAKEN, INDEX_UNKNOWN, PUT_EMPTY, PUT_MANY, PUT_MOVES,
    PUT_NEW, PUT_NONE, PUT_STAYS, PUT_UNREVISIONED, REPLACE_DROPS, REPLACE_EMPTY, REPLACE_KEEPS,
    REPLACE_TWICE,
};
use crate::{
    cached::{self, K},
    planted::{Bug, FaultyStore, Store},
    sequence::{Answer, Operation, Sequence, Step, Thing},
};

/// The library's indexer and its writer, without a deliberate bug. [`FaultyStore`] adds such a bug.
pub(crate) struct Sound(Indexer<K>, IndexerWriter<K>);

impl Sound {
    /// Creates an empty store with the index [`APP`].
    fn new() -> Self {
        let (reader, writer) =
            indexer::new(index(Indexers::new(), APP)).expect("one index has no namesake");
        Self(reader, writer)
    }
}

impl Store for Sound {
    fn read(&self) -> &Indexer<K> {
        &self.0
    }

    fn write(&mut self) -> &mut IndexerWriter<K> {
        &mut self.1
    }
}

fn index(indexers: Indexers<K>, name: &'static str) -> Indexers<K> {
    indexers.with(name, move |object: &K| {
        let values = object.data.as_ref().and_then(|data| data.get(name));
        let values = values.map(|values| values.split(',').map(str::to_owned).collect::<Vec<_>>());
        values.unwrap_or_default()
    })
}

/// Runs the operations of a sequence on a new store, which has the deliberate bug `bug`.
pub(crate) fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    match bug {
        None => Replay::over(Sound::new(), sequence),
        Some(bug) => Replay::over(FaultyStore::new(Sound::new(), bug), sequence),
    }
}

struct Replay<S> {
    store: S,
    seen: Vec<&'static str>,
}

impl<S: Store> Replay<S> {
    fn over(store: S, sequence: &Sequence) -> Vec<Step> {
        let mut replay = Self {
            store,
            seen: Vec::new(),
        };
        let operations = sequence.operations.iter();
        let steps = operations.map(|operation| Step {
            answer: replay.step(operation),
            seen: std::mem::take(&mut replay.seen),
        });
        steps.collect()
    }

    fn step(&mut self, operation: &Operation) -> Answer {
        let one = || operation.thing.as_ref().expect("it has an object");
        match operation.verb {
            "add" | "update" => {
                self.see_put(one());
                Answer::accepted(&self.store.write().add(cached::live(one())))
            }
            "delete" => {
                let reached = cached::object(one()).revision().clone();
                self.delete(cached::deleted(one()), vec![(SourceId::default(), reached)])
            }
            "delete_missed" => self.delete(cached::missed(one()), Vec::new()),
            "delete_key" => {
                let name = cached::name(&operation.text);
                self.see_delete(&name);
                self.store.write().delete(&name);
                Answer::ok()
            }
            "replace" => {
                self.see_list(&operation.things);
                let objects = operation.things.iter().map(cached::live).collect();
                let replaced = self.store.replace(objects, &operation.text);
                Answer::said(if replaced { "ok" } else { "error" })
            }
            "batch" => self.batch(&operation.batch),
            "bookmark" => {
                let revision = ResourceVersion::from(operation.text.as_str());
                let delta = Delta::new(
                    SourceId::default(),
                    DeltaKind::Bookmark {
                        revision: revision.clone(),
                    },
                );
                self.apply(vec![delta], vec![(SourceId::default(), revision)])
            }
            // A store has no resync; that belongs to the informer.
            "resync" => Answer::ok(),
            "add_indexers" => self.add_indexers(operation.index),
            _ => self.read(operation),
        }
    }

    fn add_indexers(&mut self, name: &'static str) -> Answer {
        let reader = self.store.read();
        let taken = reader
            .snapshot()
            .index_names()
            .iter()
            .any(|taken| **taken == *name);
        if taken {
            self.seen.push(INDEX_TAKEN);
        } else if !reader.is_empty() {
            self.seen.push(INDEX_LATE);
        }
        Answer::accepted(
            &self
                .store
                .write()
                .add_indexers(index(Indexers::new(), name)),
        )
    }

    fn delete(&mut self, deleted: Deleted<K>, reached: Vec<(SourceId, ResourceVersion)>) -> Answer {
        self.see_delete(deleted.object_name());
        let delta = Delta::new(SourceId::default(), DeltaKind::Deleted(deleted));
        self.apply(vec![delta], reached)
    }

    fn apply(
        &mut self,
        deltas: Vec<Delta<K>>,
        reached: Vec<(SourceId, ResourceVersion)>,
    ) -> Answer {
        self.store.write().apply(Batch {
            deltas,
            in_initial_list: false,
            completes: None,
            reached,
        });
        Answer::ok()
    }

    /// Passes the changes through a new `InOrder` queue, and applies its batches to the store.
    fn batch(&mut self, changes: &[Operation]) -> Answer {
        let missed = changes
            .last()
            .is_some_and(|last| last.verb == "delete_missed");
        self.seen.push(if missed {
            BATCH_ENDS_MISSED
        } else {
            BATCH_ENDS_TOLD
        });
        let mut queue = InOrder::new();
        for change in changes {
            let thing = change.thing.as_ref().expect("it has an object");
            let kind = match change.verb {
                "add" => DeltaKind::Added(cached::object(thing)),
                "update" => DeltaKind::Updated(cached::object(thing)),
                "delete" => DeltaKind::Deleted(cached::deleted(thing)),
                _ => DeltaKind::Deleted(cached::missed(thing)),
            };
            let pushed = queue.push(Delta::new(SourceId::default(), kind), &());
            debug_assert!(pushed.is_ok(), "a queue in order needs no keys");
        }
        while let Some(batch) = queue.pop_batch(usize::MAX) {
            self.store.write().apply(batch);
        }
        Answer::ok()
    }

    fn read(&mut self, operation: &Operation) -> Answer {
        let reader = self.store.read();
        match operation.verb {
            "revision" => Answer::said(self.store.revision().to_string()),
            "get" => self.get(&cached::name(&operation.text)),
            "get_object" => {
                let thing = operation.thing.as_ref().expect("it has an object");
                self.get(&cached::name(&thing.key))
            }
            "list" => all(&reader.list()),
            "list_keys" => Answer::Set(
                reader
                    .list()
                    .iter()
                    .map(|object| object.object_name().to_string())
                    .collect(),
            ),
            "indexers" => {
                let names = reader.snapshot().index_names();
                Answer::Set(names.iter().map(ToString::to_string).collect())
            }
            _ => {
                let answer = self.ask_index(operation);
                self.seen.push(match &answer {
                    Err(_) => INDEX_UNKNOWN,
                    Ok(Answer::Set(found)) if found.is_empty() => INDEX_NOT_FOUND,
                    Ok(_) => INDEX_FOUND,
                });
                answer.unwrap_or_else(|_| Answer::said("error"))
            }
        }
    }

    fn ask_index(&self, operation: &Operation) -> Result<Answer, NoSuchIndex> {
        let (index, value) = (operation.index, operation.text.as_str());
        let reader = self.store.read();
        Ok(match operation.verb {
            "index" => {
                let thing = operation.thing.as_ref().expect("it has an object");
                all(&reader.index(index, &cached::object(thing))?)
            }
            "by_index" => all(&reader.by_index(index, value)?),
            "index_keys" => Answer::Set(
                self.store
                    .names(index, value)?
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            ),
            "index_values" => Answer::Set(
                reader
                    .index_values(index)?
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
            ),
            other => unreachable!("{other} is not drawn for a store"),
        })
    }

    fn get(&self, name: &ObjectName) -> Answer {
        Answer::said(
            self.store
                .read()
                .get(name)
                .map_or_else(|| "nothing".to_owned(), |object| cached::show(&object)),
        )
    }

    fn see_put(&mut self, thing: &Thing) {
        let object = cached::object(thing);
        let old = self.store.read().get(object.object_name());
        let values = |object: &Object<K>| object.live().and_then(|live| live.data.clone());
        self.seen.push(match old {
            None => PUT_NEW,
            Some(old) if values(&old) == values(&object) => PUT_STAYS,
            Some(_) => PUT_MOVES,
        });
        let has = |which: fn(&String) -> bool| thing.values.values().any(which);
        let shown = [
            (PUT_MANY, has(|values| values.contains(','))),
            (
                PUT_EMPTY,
                has(|values| values.split(',').any(str::is_empty)),
            ),
            (PUT_NONE, thing.values.len() <= ADDED.len()),
            (PUT_UNREVISIONED, thing.revision.is_empty()),
        ];
        self.seen.extend(
            shown
                .into_iter()
                .filter(|(_, is)| *is)
                .map(|(shown, _)| shown),
        );
    }

    fn see_delete(&mut self, name: &ObjectName) {
        let there = self.store.read().get(name).is_some();
        self.seen.push(if there {
            DELETE_THERE
        } else {
            DELETE_NOT_THERE
        });
    }

    fn see_list(&mut self, things: &[Thing]) {
        if things.is_empty() {
            self.seen.push(REPLACE_EMPTY);
        }
        for (at, thing) in things.iter().enumerate() {
            if things[..at].iter().any(|other| other.key == thing.key) {
                self.seen.push(REPLACE_TWICE);
            }
        }
        for object in self.store.read().list() {
            let listed = things
                .iter()
                .any(|thing| thing.key == object.object_name().as_str());
            self.seen
                .push(if listed { REPLACE_KEEPS } else { REPLACE_DROPS });
        }
    }
}

fn all(objects: &[Object<K>]) -> Answer {
    Answer::Set(objects.iter().map(cached::show).collect())
}
