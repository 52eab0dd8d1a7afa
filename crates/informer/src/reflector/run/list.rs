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

/// Received objects of a list that is not complete. The store has not received these objects yet.
enum Staged<K> {
    /// Objects of a LIST, in the order of the responses.
    Listed(Vec<Object<K>>),
    /// Objects of a streaming list by name. The stream can change and delete objects until its end bookmark.
    Streamed(BTreeMap<ObjectName, Object<K>>),
}

/// A LIST or a streaming list in progress: the objects received so far, with their limits and statistics.
pub(super) struct List<K> {
    staged: Staged<K>,
    /// Counter of the pages, objects and bytes of the list. The counter returns an error if one of these
    /// numbers, or the duration of the list, exceeds its limit.
    pub(super) budget: ListBudget,
    pub(super) steps: ListSteps,
    /// Number of errors in the list. An object that failed to decode, an object of another kind and an event
    /// of an unknown type each count as one error.
    skipped: usize,
    /// Epoch of the reflector when the list last reused a stored object; `None` if every received object was
    /// decoded.
    ///
    /// The list fails if the reflector's epoch changes later. The server may then have used the revision of
    /// the reused object again for a different state.
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

    /// Returns an empty list for a LIST that restarts from its first page. The new list keeps the durations
    /// of the requests that were sent before the restart.
    pub(super) fn begin_again(self, limits: Limits) -> Self {
        Self {
            steps: self.steps,
            ..Self::listed(limits)
        }
    }

    /// Records the duration of a request that ends now. `asked` is the time at which the request was sent.
    /// `answered` is the time at which the response headers arrived; `None` if none arrived.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        self.steps.page(asked, answered);
    }

    pub(super) fn len(&self) -> usize {
        match &self.staged {
            Staged::Listed(objects) => objects.len(),
            Staged::Streamed(objects) => objects.len(),
        }
    }

    /// Adds an object to the list. If a streaming list already contains an object with the same name, the
    /// new object replaces it, and the function returns `false`. Otherwise returns `true`.
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

    /// Removes the object with this name, because the streaming list has reported its deletion. Does nothing
    /// for a LIST.
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

    /// Returns the object of a decoding result; `None` if the object can't be stored.
    ///
    /// If the object failed to decode, logs the error and passes it to the error handler. If the decoder
    /// reused a stored object, sets [`List::known_in`] to `epoch`, the current epoch of the reflector.
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

    /// Sends an error to the error handler. Also logs the error, up to [`LINES_PER_WINDOW`] errors per list.
    pub(super) fn report(&mut self, error: &Error, report: &Reporter) {
        self.skipped += 1;
        if self.skipped <= LINES_PER_WINDOW {
            report.log_skipped(error);
        }
        report.tell_handler(error);
    }

    /// Logs a summary of the list, if the list took more than ten seconds or had errors that
    /// [`report`](Self::report) did not log.
    ///
    /// `objects` is the number of objects in the list. `handed_on` is `true` if the store has accepted the
    /// list, and `false` if the list has failed.
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
    /// Removes all objects from the list, and returns them. Sorts the objects of a streaming list by name.
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

/// Returns the object of a decoding result; `None` if the object can't be stored.
///
/// Calls `skipped` with the error if the object failed to decode or is of another kind. An object that failed
/// to decode can be stored, without its content, if its name and revision are readable.
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
