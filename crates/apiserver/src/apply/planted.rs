//! Faulty variants of single steps. A test plants one after the other, and the comparison with Kubernetes must find it.

#[cfg(test)]
use std::cell::Cell;

/// A fault of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bug {
    /// Defaults do not identify list items.
    KeyDefaults,
    /// The fields of an applied atomic object have owners.
    AtomicObjects,
    /// A stored list can't contain an item twice.
    StoredDuplicates,
    /// Removed fields keep their owners.
    RemovedFields,
    /// Fields taken by force keep their owners.
    TakenFields,
    /// A struct remains after the removal of its last field.
    Structs,
    /// Fields of other managers are removed.
    OwnedItems,
    /// Fields without an owner are removed.
    DanglingItems,
    /// An apply without effect has a new time.
    Times,
    /// One manager more is kept.
    Updaters,
    /// Stored items before the applied ones remain there.
    ItemOrder,
    /// Types that became atomic have no effect on owners.
    ChangedTypes,
    /// Names and other metadata have owners.
    Metadata,
    /// Fields of client-side apply conflict.
    LastApplied,
    /// 1 differs from 1.0.
    Numbers,
    /// Steps contain characters with a meaning in HTML.
    Html,
    /// Requests can't remove all owners.
    Reset,
    /// Fields of another subresource have owners.
    IgnoredFields,
    /// The schema of an unknown member does not count.
    PreservedMembers,
}

#[cfg(test)]
impl Bug {
    pub(super) const ALL: [Bug; 19] = [
        Bug::KeyDefaults,
        Bug::AtomicObjects,
        Bug::StoredDuplicates,
        Bug::RemovedFields,
        Bug::TakenFields,
        Bug::Structs,
        Bug::OwnedItems,
        Bug::DanglingItems,
        Bug::Times,
        Bug::Updaters,
        Bug::ItemOrder,
        Bug::ChangedTypes,
        Bug::Metadata,
        Bug::LastApplied,
        Bug::Numbers,
        Bug::Html,
        Bug::Reset,
        Bug::IgnoredFields,
        Bug::PreservedMembers,
    ];
}

#[cfg(test)]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Plants a bug on this thread.
#[cfg(test)]
pub(super) fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Returns whether a bug is planted on this thread.
#[cfg(test)]
pub(super) fn has(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Returns false: bugs are planted only in tests.
#[cfg(not(test))]
pub(super) const fn has(_: Bug) -> bool {
    false
}
