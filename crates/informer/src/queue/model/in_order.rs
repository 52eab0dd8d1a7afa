//! Compares [`InOrder`] with a reference implementation in a property test.
//!
//! The reference implementation is a vector of changes, in which a list or a resync is one change.

use super::*;
use crate::queue::InOrder;

#[derive(Default)]
struct Line {
    waiting: Vec<Waiting>,
    sync: Sync,
}

struct Waiting {
    source: u32,
    text: String,
    /// Name of the changed object; `None` for a list, a resync or a bookmark.
    name: Option<String>,
    is_list: bool,
}

impl Line {
    fn wait(&mut self, source: u32, text: String, name: Option<String>) {
        self.waiting.push(Waiting {
            source,
            is_list: text.starts_with("ReplacedAll"),
            text,
            name,
        });
    }

    fn pop(&mut self, size: usize, room: usize) -> Option<Unit> {
        if room == 0 || self.waiting.is_empty() {
            return None;
        }
        let mut unit = Unit::default();
        let mut names = BTreeSet::new();
        let flag = |line: &Self| !line.sync.synced(line.waiting[0].source);
        unit.in_initial_list = flag(self);
        while let Some(head) = self.waiting.first() {
            let Some(name) = head.name.clone() else {
                break;
            };
            let full = unit.deltas.len() == size.min(room);
            if full || flag(self) != unit.in_initial_list || !names.insert(name) {
                return Some(unit);
            }
            unit.deltas.push(self.waiting.remove(0).text);
        }
        if unit.deltas.is_empty() {
            let alone = self.waiting.remove(0);
            if alone.is_list && self.sync.popped(alone.source) {
                unit.completes = Some(alone.source);
            }
            unit.deltas.push(alone.text);
        }
        Some(unit)
    }
}

proptest! {
    #[test]
    fn in_order_does_what_a_list_does(operations in operations(), size in 1..5usize) {
        let mut queue = InOrder::new().batch_size(size);
        let mut line = Line::default();
        let mut cache = Cache::default();
        for (operation, revision) in operations.iter().zip(1..) {
            if let Some(delta) = change(operation, revision) {
                let source = delta.source.number();
                let name = delta.object_name().map(ToString::to_string);
                if name.is_some() {
                    line.sync.populate(source);
                }
                line.wait(source, show_delta(&delta), name);
                queue.push(delta, &cache).unwrap();
            }
            match operation {
                Operation::List(source, names) => {
                    let list = replaced(*source, names, revision);
                    let objects = list.objects.iter().map(|object| format!(" {object:?}"));
                    let objects: String = objects.collect();
                    line.sync.list(*source, 1);
                    line.wait(*source, format!("ReplacedAll {revision}:{objects}"), None);
                    queue.replace(list, &cache).unwrap();
                }
                Operation::Resync => {
                    queue.resync(&cache);
                    if line.waiting.iter().all(|waiting| waiting.text != "SyncAll") {
                        line.wait(0, "SyncAll".to_owned(), None);
                    }
                }
                Operation::Pop(room) => {
                    let batch = queue.pop_batch(*room);
                    prop_assert_eq!(batch.as_ref().map(unit), line.pop(size, *room));
                    batch.iter().flat_map(|batch| &batch.deltas).for_each(|d| cache.apply(d));
                }
                _ => {}
            }
            prop_assert_eq!(queue.len(), line.waiting.len());
            prop_assert_eq!(queue.is_empty(), line.waiting.is_empty());
            prop_assert_eq!(queue.has_synced(), line.sync.all_synced());
        }
        while let Some(batch) = queue.pop_batch(usize::MAX) {
            prop_assert_eq!(Some(unit(&batch)), line.pop(size, usize::MAX));
        }
        prop_assert!(line.waiting.is_empty());
    }
}
