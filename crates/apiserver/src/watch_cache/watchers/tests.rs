//! Tests that the index of watchers finds the same watchers for an event as a scan over all watchers.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::super::{Filter, Watcher, WatcherId, inbox};
use super::Watchers;
use crate::kinds::Kinds;
use crate::request_log::LoggedRequest;
use crate::resource::{Registry, Resource};
use crate::route::{ListOptions, Verb};
use crate::selector::Selection;
use crate::storage::{Entry, Event, EventType};

/// Field selectors with zero or more conditions, which require or exclude a value.
const FIELDS: [&str; 9] = [
    "",
    "metadata.name=a",
    "metadata.name!=a",
    "metadata.namespace=x",
    "spec.nodeName=n1",
    "spec.nodeName=",
    "spec.nodeName=n1,spec.nodeName=n2",
    "spec.nodeName=n2,status.phase=Running,metadata.name=b",
    "status.phase!=Running",
];
const NAMESPACES: [&str; 3] = ["", "x/", "y/"];
const LABELS: [&str; 2] = ["", "app=web"];

fn pods() -> Arc<Resource> {
    let registry = Registry::new(&Kinds::builtin());
    let pods = registry.by_path("", "v1", "pods");
    Arc::clone(pods.expect("pods are built in"))
}

fn request() -> LoggedRequest {
    LoggedRequest {
        sequence: 0,
        arrived: std::time::Duration::ZERO,
        user_agent: String::new(),
        verb: Verb::Watch,
        path: String::new(),
        resource: "pods".to_owned(),
        namespace: None,
        name: None,
        subresource: None,
        options: ListOptions::default(),
        status: None,
        revision: None,
        faults: Vec::new(),
    }
}

fn watcher(pods: &Resource, fields: &str, prefix: &str, labels: &str) -> Watcher {
    let filter = Filter {
        prefix: prefix.to_owned(),
        selection: Selection::parse(pods.fields(), labels, fields, || Ok(())).unwrap(),
        after: 0,
        reader: None,
    };
    Watcher {
        filter,
        bookmarks: false,
        request: Arc::new(request()),
        sender: inbox(1).0,
    }
}

/// Returns a pod whose node, phase and label depend on `state` (0 to 11), or `None` if `state` is `None`.
///
/// `key` is `<namespace>/<name>`.
fn state(pods: &Resource, key: &str, state: Option<u8>) -> Option<Arc<Entry>> {
    let state = state?;
    let node = ["", "n1", "n2"][usize::from(state) % 3];
    let phase = ["Pending", "Running"][usize::from(state / 3) % 2];
    let app = ["web", "db"][usize::from(state / 6) % 2];
    let object = json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    });
    let object = object.as_object().expect("it is written as an object");
    Some(Arc::new(Entry::new(pods, key.into(), object, 1)))
}

fn event(old: Option<Arc<Entry>>, new: Option<Arc<Entry>>) -> Event {
    Event::new(1, tokio::time::Instant::now(), old, new)
}

proptest! {
    #[test]
    fn every_concerned_watcher_is_called_once_and_removal_leaves_nothing(
        watches in prop::collection::vec((0..FIELDS.len(), 0..NAMESPACES.len(), 0..LABELS.len()), 1..40),
        events in prop::collection::vec((0..4_usize, prop::option::of(0..12_u8), prop::option::of(0..12_u8)), 1..20),
    ) {
        let pods = pods();
        let make = |(fields, prefix, labels): (usize, usize, usize)| {
            watcher(&pods, FIELDS[fields], NAMESPACES[prefix], LABELS[labels])
        };
        let mut index = Watchers::default();
        for (number, watch) in watches.iter().enumerate() {
            index.insert(WatcherId(number as u64), make(*watch));
        }
        for (key, old, new) in events {
            let key = ["x/a", "x/b", "y/a", "y/b"][key];
            let (old, new) = (state(&pods, key, old), state(&pods, key, new));
            if old.is_none() && new.is_none() {
                continue;
            }
            let event = event(old, new);
            let told = RefCell::new(Vec::new());
            index.retain_concerned(&event, |watcher| {
                let event_type = watcher.filter.event_type(&event);
                told.borrow_mut().extend(event_type.map(EventType::as_str));
                true
            });
            let plain = watches.iter().map(|watch| make(*watch).filter.event_type(&event));
            let mut plain: Vec<_> = plain.flatten().map(EventType::as_str).collect();
            let mut told = told.into_inner();
            plain.sort_unstable();
            told.sort_unstable();
            prop_assert_eq!(told, plain);
        }
        for number in 0..watches.len() {
            index.remove(WatcherId(number as u64));
        }
        prop_assert_eq!(index.len(), 0);
        prop_assert!(index.everything.is_empty() && index.by_value.is_empty());
    }
}

/// Returns the watchers that the index selects when pod `x/a` changes from `old` to `new`.
///
/// [`state()`] explains `old` and `new`.
fn called(old: Option<u8>, new: Option<u8>) -> BTreeSet<&'static str> {
    let pods = pods();
    let mut index = Watchers::default();
    let watches = [
        ("spec.nodeName=n1", ""),
        ("spec.nodeName=n2", ""),
        ("", "y/"),
        ("", ""),
    ];
    for (id, (fields, prefix)) in (0..).zip(watches) {
        index.insert(WatcherId(id), watcher(&pods, fields, prefix, ""));
    }
    let event = event(state(&pods, "x/a", old), state(&pods, "x/a", new));
    let asked = RefCell::new(BTreeSet::new());
    index.retain_concerned(&event, |watcher| {
        let fields = &watcher.filter.selection.fields;
        let demands = fields.demands().map(|(_, value)| value).next();
        asked.borrow_mut().insert(match demands {
            Some("n1") => "node n1",
            Some(_) => "node n2",
            None if watcher.filter.prefix.is_empty() => "all",
            None => "namespace y",
        });
        true
    });
    asked.into_inner()
}

#[test]
fn a_watcher_of_another_value_is_not_called() {
    let set = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(called(None, Some(0)), set(&["all"]), "no node yet");
    assert_eq!(called(Some(0), Some(1)), set(&["all", "node n1"]));
    assert_eq!(
        called(Some(1), Some(2)),
        set(&["all", "node n1", "node n2"]),
        "the pod moves to another node"
    );
    assert_eq!(called(Some(2), None), set(&["all", "node n2"]));
}

#[test]
fn a_watcher_that_returns_false_is_removed_from_any_group() {
    let pods = pods();
    let mut index = Watchers::default();
    for (id, fields) in (0..).zip(FIELDS) {
        index.insert(WatcherId(id), watcher(&pods, fields, "x/", ""));
    }
    assert_eq!(index.len(), FIELDS.len());
    index.retain_one(WatcherId(1), |_| true);
    index.retain_one(WatcherId(1), |_| false);
    index.retain_one(WatcherId(1), |_| panic!("the watcher was removed"));
    index.retain(|watcher| watcher.filter.selection.is_everything());
    assert_eq!(index.len(), 1);
    index.retain_concerned(&event(None, state(&pods, "x/a", Some(0))), |_| false);
    assert_eq!(index.len(), 0);
    assert!(index.everything.is_empty() && index.by_value.is_empty());
}
