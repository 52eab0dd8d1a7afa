//! Compares the library's `Indexer` and `IndexerWriter` with client-go's `cache.Indexer`, by running the same
//! random operations on both stores.

mod store;

use std::collections::BTreeMap;

use harness::draw::Choose as _;
use kube_informer::indexer::NAMESPACE;

use crate::{
    component::{Accepted, Component, Moment, nothing_more},
    draw::Draw,
    oracle::Version,
    sequence::{Answer, Operation, Sequence, Thing},
};

/// The comparison of the library's `Indexer` with client-go's `cache.Indexer`.
pub(crate) const COMPONENT: Component = Component {
    name: "indexer",
    draw,
    versions,
    replay: store::replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

/// Option of a test sequence: some operations are batches of changes.
///
/// Only client-go 0.37 supports batches.
const BATCHES: &str = "batches";

/// Name of the index that every test store has from its creation.
const APP: &str = "app";
const ADDED: [&str; 2] = ["tags", "node"];
const VALUES: [&str; 4] = ["x", "y", "z", ""];

const PUT_NEW: &str = "Add or Update of a new object";
const PUT_MOVES: &str = "Add or Update of an existing object that changes an index value";
const PUT_STAYS: &str = "Add or Update of an existing object that changes no index value";
const PUT_MANY: &str = "an object with several values in one index";
const PUT_EMPTY: &str = "an object with an empty value in an index";
const PUT_NONE: &str = "an object that is not in an index";
const PUT_UNREVISIONED: &str = "a write without a revision";
const DELETE_THERE: &str = "Delete of an existing object";
const DELETE_NOT_THERE: &str = "Delete of a missing object";
const REPLACE_EMPTY: &str = "Replace: an empty list";
const REPLACE_KEEPS: &str = "Replace: an object that existed before";
const REPLACE_DROPS: &str = "Replace: an object that is not listed";
const REPLACE_TWICE: &str = "Replace: a name that is listed twice";
const INDEX_LATE: &str = "AddIndexers to a store with objects";
const INDEX_TAKEN: &str = "AddIndexers with an existing name";
const INDEX_UNKNOWN: &str = "a read of an index that does not exist";
const INDEX_FOUND: &str = "a read of an index that returns objects";
const INDEX_NOT_FOUND: &str = "a read of an index that returns no objects";
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
    let flags = draw.subset(&[(50, BATCHES)]);
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
            index: draw.weighted(&[(2, ADDED[0]), (1, ADDED[1]), (1, APP), (1, NAMESPACE)]),
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

/// Returns `thing` with random values for the three test indexes `app`, `tags` and `node`.
fn valued(draw: &mut Draw, mut thing: Thing) -> Thing {
    let mut values = BTreeMap::new();
    // Sometimes an object is written unchanged.
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

/// Returns the intentional difference that explains the different revisions of the two stores, if any.
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
