//! `Indexer` and its writer against `cache.Indexer`.

use std::collections::BTreeMap;

use kube_informer::{
    indexer::{self, Indexer, IndexerWriter, Indexers, NAMESPACE, NoSuchIndex},
    object::{Deleted, Object, ObjectName, ResourceVersion, SourceId},
    queue::{Batch, InOrder, Queue},
    reflector::{Delta, DeltaKind},
};

use crate::{
    cached::{self, K},
    compare::Moment,
    component::{Accepted, Component, nothing_more},
    draw::Draw,
    oracle::Version,
    planted::{Bug, FaultyStore},
    sequence::{Answer, Operation, Sequence, Step, Thing},
};

/// See the module.
pub const COMPONENT: Component = Component {
    name: "indexer",
    draw,
    versions,
    replay,
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

/// Changes come in batches too, which only 0.37 takes.
const BATCHES: &str = "batches";

/// The index that every sequence begins with, and those that may be added.
const APP: &str = "app";
const ADDED: [&str; 2] = ["tags", "node"];
const VALUES: [&str; 4] = ["x", "y", "z", ""];

const PUT_NEW: &str = "Add or Update of an object that is not there";
const PUT_MOVES: &str = "Add or Update of an object that is there, which moves in an index";
const PUT_STAYS: &str = "Add or Update of an object that is there, which stays in all indices";
const PUT_MANY: &str = "an object of several values in one index";
const PUT_EMPTY: &str = "an object of an empty value in an index";
const PUT_NONE: &str = "an object that is not in an index";
const PUT_UNREVISIONED: &str = "a write without a revision";
const DELETE_THERE: &str = "Delete of an object that is there";
const DELETE_NOT_THERE: &str = "Delete of an object that is not there";
const REPLACE_EMPTY: &str = "Replace: an empty list";
const REPLACE_KEEPS: &str = "Replace: an object that was there";
const REPLACE_DROPS: &str = "Replace: an object that is not listed";
const REPLACE_TWICE: &str = "Replace: a name that is listed twice";
const INDEX_LATE: &str = "AddIndexers to a store that has objects";
const INDEX_TAKEN: &str = "AddIndexers of a name that is taken";
const INDEX_UNKNOWN: &str = "an index is asked that does not exist";
const INDEX_FOUND: &str = "an index is asked and has objects";
const INDEX_NOT_FOUND: &str = "an index is asked and has no objects";
const BATCH_ENDS_MISSED: &str = "a batch that ends with a tombstone";
const BATCH_ENDS_TOLD: &str = "a batch that ends with a change";

const BEHAVIOURS: &[&str] = &[
    "add",
    "update",
    "delete",
    "delete_missed",
    "delete_key",
    "replace",
    "resync",
    "add_indexers",
    "batch",
    "bookmark",
    "revision",
    "get",
    "get_object",
    "list",
    "list_keys",
    "index",
    "by_index",
    "index_keys",
    "index_values",
    "indexers",
    PUT_NEW,
    PUT_MOVES,
    PUT_STAYS,
    PUT_MANY,
    PUT_EMPTY,
    PUT_NONE,
    PUT_UNREVISIONED,
    DELETE_THERE,
    DELETE_NOT_THERE,
    REPLACE_EMPTY,
    REPLACE_KEEPS,
    REPLACE_DROPS,
    REPLACE_TWICE,
    INDEX_LATE,
    INDEX_TAKEN,
    INDEX_UNKNOWN,
    INDEX_FOUND,
    INDEX_NOT_FOUND,
    BATCH_ENDS_MISSED,
    BATCH_ENDS_TOLD,
];

fn draw(draw: &mut Draw) -> Sequence {
    let flags = draw.flags(&[(50, BATCHES)]);
    let mut verbs = vec![
        (10, "add"),
        (12, "update"),
        (5, "delete"),
        (2, "delete_missed"),
        (2, "delete_key"),
        (4, "replace"),
        (1, "resync"),
        (2, "add_indexers"),
        (2, "bookmark"),
        (9, "revision"),
        (3, "get"),
        (2, "get_object"),
        (3, "list"),
        (3, "list_keys"),
        (5, "index"),
        (8, "by_index"),
        (6, "index_keys"),
        (5, "index_values"),
        (1, "indexers"),
    ];
    if flags.contains(&BATCHES) {
        verbs.push((6, "batch"));
    }
    let length = draw.length();
    let operations = (0..length).map(|_| operation(draw, &verbs)).collect();
    Sequence {
        component: COMPONENT.name,
        flags,
        limiter: None,
        operations,
    }
}

fn operation(draw: &mut Draw, verbs: &[(u32, &'static str)]) -> Operation {
    let operation = Operation::new(draw.weighted(verbs));
    match operation.verb {
        "add" | "update" | "delete" | "delete_missed" | "get_object" => {
            operation.about(thing(draw))
        }
        "delete_key" | "get" => operation.text(draw.key()),
        "replace" => Operation {
            things: draw
                .things()
                .into_iter()
                .map(|thing| valued(draw, thing))
                .collect(),
            ..operation.text(draw.revision())
        },
        "batch" => {
            let verbs = [
                (3, "add"),
                (3, "update"),
                (2, "delete"),
                (2, "delete_missed"),
            ];
            let length = draw.number(1..=6);
            let change = |_| Operation::new(draw.weighted(&verbs)).about(thing(draw));
            Operation {
                batch: (0..length).map(change).collect(),
                ..operation
            }
        }
        "bookmark" => operation.text(draw.revision()),
        "add_indexers" => Operation {
            index: *draw.one(&[ADDED[0], ADDED[0], ADDED[1], APP, NAMESPACE]),
            ..operation
        },
        "index" => Operation {
            index: index_name(draw),
            ..operation.about(thing(draw))
        },
        "by_index" | "index_keys" | "index_values" => {
            let index = index_name(draw);
            let value = if index == NAMESPACE {
                draw.one(&["n1", "n2", "", "n3"])
            } else {
                draw.one(&VALUES)
            };
            let value = if operation.verb == "index_values" {
                ""
            } else {
                *value
            };
            Operation {
                index,
                ..operation.text(value)
            }
        }
        _ => operation,
    }
}

fn index_name(draw: &mut Draw) -> &'static str {
    draw.weighted(&[(5, APP), (5, ADDED[0]), (3, ADDED[1]), (3, NAMESPACE)])
}

fn thing(draw: &mut Draw) -> Thing {
    let mut thing = draw.thing();
    if draw.chance(4) {
        thing.revision.clear();
    }
    valued(draw, thing)
}

/// In "app" an object has one value or none, in "tags" up to three, in "node" always one.
fn valued(draw: &mut Draw, mut thing: Thing) -> Thing {
    let mut values = BTreeMap::new();
    // Often enough an object comes back as it was.
    if draw.chance(25) {
        thing.values = [(APP, "x"), (ADDED[0], "x,y"), (ADDED[1], "z")]
            .map(|(index, values)| (index, values.to_owned()))
            .into();
        return thing;
    }
    if draw.chance(80) {
        values.insert(APP, (*draw.one(&VALUES)).to_owned());
    }
    let tags: Vec<_> = (0..draw.number(0..=3))
        .map(|_| *draw.one(&VALUES))
        .collect();
    if !tags.is_empty() {
        values.insert(ADDED[0], tags.join(","));
    }
    values.insert(ADDED[1], (*draw.one(&VALUES)).to_owned());
    thing.values = values;
    thing
}

fn versions(sequence: &Sequence) -> &'static [Version] {
    if sequence.has(BATCHES) {
        &[Version::V37]
    } else {
        &Version::ALL
    }
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let nothing = moment.their()? == &Answer::Set(Vec::new());
    match moment.verb() {
        "index_values" if moment.saw(INDEX_UNKNOWN) && nothing => {
            Some(Accepted::Here("values_of_no_index"))
        }
        "revision" => revision_differs(moment),
        _ => None,
    }
}

/// Which write has left client-go's store at another revision than ours.
fn revision_differs(moment: &Moment<'_>) -> Option<Accepted> {
    let before = moment.sequence.operations[..moment.at].iter().rev();
    for operation in before {
        let one = |operation: &Operation| {
            operation
                .thing
                .as_ref()
                .is_some_and(|thing| thing.revision.is_empty())
        };
        match operation.verb {
            "add" | "update" | "delete" if one(operation) => {
                return Some(Accepted::Here("a_write_without_a_revision"));
            }
            "batch" => {
                let last = operation.batch.last()?;
                if last.verb == "delete_missed" {
                    let told = operation
                        .batch
                        .iter()
                        .any(|change| change.verb != "delete_missed" && !one(change));
                    if told {
                        return Some(Accepted::Here("a_batch_that_ends_with_a_tombstone"));
                    }
                } else {
                    return one(last).then_some(Accepted::Here("a_write_without_a_revision"));
                }
            }
            "add" | "update" | "delete" | "replace" | "bookmark" => return None,
            _ => {}
        }
    }
    None
}

/// What is asked of a store, so that a faulty one can answer.
pub trait Store {
    /// Its reading end.
    fn read(&self) -> &Indexer<K>;
    /// Its writing end.
    fn write(&mut self) -> &mut IndexerWriter<K>;
    /// The names that an index has under a value.
    fn names(&self, index: &str, value: &str) -> Result<Vec<ObjectName>, NoSuchIndex> {
        self.read().index_keys(index, value)
    }
    /// Makes it hold what a list has.
    fn replace(&mut self, objects: Vec<K>, revision: &str) -> bool {
        self.write().replace(objects, revision).is_ok()
    }
    /// The store's revision.
    fn revision(&self) -> ResourceVersion {
        self.read().snapshot().revision()
    }
}

/// A store as it is.
pub struct Sound(Indexer<K>, IndexerWriter<K>);

impl Sound {
    /// An empty one.
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

fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
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
        let one = || operation.thing.as_ref().expect("it is about an object");
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
            // A store has nothing to tell again: that is the informer's.
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

    /// Changes go through a queue, which says how far the store has come with them.
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
            let thing = change.thing.as_ref().expect("it is about an object");
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
                let thing = operation.thing.as_ref().expect("it is about an object");
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
                    Err(NoSuchIndex::Name(_) | NoSuchIndex::Token(_)) => INDEX_UNKNOWN,
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
                let thing = operation.thing.as_ref().expect("it is about an object");
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
