//! Collects the objects of a list in progress, from the pages of a LIST or from a streaming list.
//!
//! The module sends no requests, and delivers nothing to the store.

use std::{collections::BTreeMap, sync::Arc};

use tokio::time::Instant;

use super::super::{Error, Reporter, list_steps::ListSteps};
use crate::{
    decode::{Decoded, OtherKind},
    limits::Limits,
    logs::LINES_PER_WINDOW,
    object::{Epoch, Object, ObjectName},
    offload::{OFFLOADED_MIN, offload},
    transport::ListBudget,
};

/// The objects of a list in progress.
enum Staged<K> {
    /// Objects of a LIST, in the order of the responses.
    Listed(Vec<Object<K>>),
    /// Objects of a streaming list, by name.
    ///
    /// Later events of the list can change or delete these objects.
    Streamed(BTreeMap<ObjectName, Object<K>>),
}

/// A LIST or a streaming list in progress: its objects, limits and statistics.
pub(super) struct List<K> {
    staged: Staged<K>,
    /// Counts pages, objects and bytes, and returns an error if a limit is exceeded.
    pub(super) budget: ListBudget,
    pub(super) steps: ListSteps,
    /// Number of reported errors: objects that failed to decode or are not of the requested kind, and events
    /// of an unknown type.
    skipped: usize,
    /// Epoch in which the list last reused a stored object. `None` if the list has reused no object.
    ///
    /// A new epoch starts when the server may have been restored from a backup. Equal revisions may then mean
    /// different states. A list that reused objects in an earlier epoch is therefore discarded.
    pub(super) known_in: Option<Epoch>,
}

impl<K> List<K> {
    fn begin(staged: Staged<K>, limits: Limits) -> Self {
        Self {
            staged,
            budget: ListBudget::begin(limits),
            steps: ListSteps::begin(),
            skipped: 0,
            known_in: None,
        }
    }

    pub(super) fn listed(limits: Limits) -> Self {
        Self::begin(Staged::Listed(Vec::new()), limits)
    }

    pub(super) fn streamed(limits: Limits) -> Self {
        Self::begin(Staged::Streamed(BTreeMap::new()), limits)
    }

    /// Returns a list without objects, for a restart from the first page.
    ///
    /// The number and the durations of the requests so far are kept for the log.
    pub(super) fn begin_again(self, limits: Limits) -> Self {
        Self {
            steps: self.steps,
            ..Self::listed(limits)
        }
    }

    /// Records a completed or failed request of the list.
    ///
    /// The request was sent at `asked`. The response headers arrived at `answered`; `None` if none arrived.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        self.steps.page(asked, answered);
    }

    pub(super) fn len(&self) -> usize {
        match &self.staged {
            Staged::Listed(objects) => objects.len(),
            Staged::Streamed(objects) => objects.len(),
        }
    }

    /// Adds an object. In a streaming list, replaces the object with the same name.
    ///
    /// Returns `false` if an object was replaced.
    pub(super) fn stage(&mut self, object: Object<K>) -> bool {
        match &mut self.staged {
            Staged::Listed(objects) => {
                objects.push(object);
                true
            }
            Staged::Streamed(objects) => {
                let name = object.object_name().clone();
                objects.insert(name, object).is_none()
            }
        }
    }

    pub(super) fn unstage(&mut self, name: &ObjectName) {
        if let Staged::Streamed(objects) = &mut self.staged {
            objects.remove(name);
        }
    }

    pub(super) fn objects(&self) -> Vec<Object<K>> {
        match &self.staged {
            Staged::Listed(objects) => objects.clone(),
            Staged::Streamed(objects) => objects.values().cloned().collect(),
        }
    }

    /// Returns the decoded object if it can be stored, and reports errors.
    pub(super) fn usable(
        &mut self,
        decoded: Decoded<K>,
        epoch: Epoch,
        report: &Reporter,
    ) -> Option<Object<K>> {
        if matches!(decoded, Decoded::Known(_)) {
            self.known_in = Some(epoch);
        }
        usable(decoded, report, |error| self.report(error, report))
    }

    /// Sends an error to the error handler. Also logs the error if it is one of the list's first 10 errors
    /// ([`LINES_PER_WINDOW`]).
    pub(super) fn report(&mut self, error: &Error, report: &Reporter) {
        self.skipped += 1;
        if self.skipped <= LINES_PER_WINDOW {
            report.log_skipped(error);
        }
        report.tell_handler(error);
    }

    /// Logs the durations of the steps of a slow list. Also logs the number of errors if
    /// [`report`](Self::report) did not log all of them.
    ///
    /// `handed_on` is whether the store accepted the list.
    pub(super) fn end(&self, report: &Reporter, objects: usize, handed_on: bool) {
        let Reporter { name, expects, .. } = report;
        if self.skipped > LINES_PER_WINDOW {
            let skipped = self.skipped;
            tracing::warn!(reflector = %name, %expects, skipped, "a list had more objects like these");
        }
        self.steps.end(name, expects, objects, handed_on);
    }
}

impl<K: Send + Sync + 'static> List<K> {
    /// Removes and returns all objects; those of a streaming list are sorted by name.
    pub(super) async fn take(&mut self) -> Vec<Object<K>> {
        match std::mem::replace(&mut self.staged, Staged::Listed(Vec::new())) {
            Staged::Listed(objects) => objects,
            Staged::Streamed(objects) => {
                let is_long = objects.len() >= OFFLOADED_MIN;
                let in_order = move || objects.into_values().collect();
                if is_long {
                    offload(in_order).await
                } else {
                    in_order()
                }
            }
        }
    }
}

/// Returns the decoded object, or `None` if the object can't be stored.
///
/// An object can't be stored if its name, namespace or revision is invalid, or if its kind is not the
/// expected one. Any other object that failed to decode is returned without content. In all these cases, the
/// function calls `skipped` with the error.
pub(super) fn usable<K>(
    decoded: Decoded<K>,
    report: &Reporter,
    skipped: impl FnOnce(&Error),
) -> Option<Object<K>> {
    match decoded {
        Decoded::Object(object) => {
            if let Some(error) = object.broken() {
                skipped(&Error::Decode(error.clone()));
            }
            Some(object)
        }
        Decoded::Known(object) => Some(object),
        Decoded::Unreadable(error) => {
            skipped(&Error::Decode(error));
            None
        }
        Decoded::OtherKind(OtherKind { name, found }) => {
            skipped(&Error::OtherKind {
                expected: Arc::clone(&report.expects),
                found,
                object: name,
            });
            None
        }
    }
}
