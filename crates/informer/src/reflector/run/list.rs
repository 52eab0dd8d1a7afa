//! [`List`]: the objects of a list in progress, either from pages or from a stream.

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

/// The received objects of an incomplete list.
enum Staged<K> {
    /// From LIST, in the order of the response.
    Listed(Vec<Object<K>>),
    /// From a streaming list, which can change and delete objects until its end.
    Streamed(BTreeMap<ObjectName, Object<K>>),
}

/// A list in progress, including its immediate repetitions.
pub(super) struct List<K> {
    staged: Staged<K>,
    /// Counts the list's time, pages, objects and bytes, and limits them.
    pub(super) budget: ListBudget,
    pub(super) steps: ListSteps,
    /// Number of objects that were broken or left out.
    skipped: usize,
    /// The epoch in which an object was taken from the store instead of decoded; `None` if all were decoded.
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

    /// Returns an empty list that starts again at the first page, as part of the same attempt.
    pub(super) fn begin_again(self, limits: Limits) -> Self {
        Self {
            steps: self.steps,
            ..Self::listed(limits)
        }
    }

    /// Adds the durations of a page that was just received. `asked` is the time of its request, and
    /// `answered` the time of its response headers.
    pub(super) fn page(&mut self, asked: Instant, answered: Option<Instant>) {
        self.steps.page(asked, answered);
    }

    pub(super) fn len(&self) -> usize {
        match &self.staged {
            Staged::Listed(objects) => objects.len(),
            Staged::Streamed(objects) => objects.len(),
        }
    }

    /// Adds an object to the list. Returns whether the object is new to the list; always `true` for a LIST.
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

    /// Removes an object that was deleted during a streaming list.
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

    /// Returns a decoded object if the store can keep it. Reports errors of decoding.
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

    /// Reports an error about an object that is broken or was left out. Logs the first of these errors;
    /// [`List::end`] logs the number of all if there were more.
    pub(super) fn report(&mut self, error: &Error, report: &Reporter) {
        self.skipped += 1;
        if self.skipped <= LINES_PER_WINDOW {
            report.log_skipped(error);
        }
        report.tell_handler(error);
    }

    /// Logs a summary, after the store has accepted the list or the list has failed.
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
    /// Removes and returns all objects.
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

/// Returns a decoded object if the store can keep it. Passes errors of decoding to `skipped`.
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
