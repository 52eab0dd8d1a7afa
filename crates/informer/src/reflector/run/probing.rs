//! Sends probes: LIST requests for one object, before a watch is opened or while a watch is open.
//!
//! A probe shows whether the server has gone back to an earlier state, for example after a restore from a
//! backup. A probe does not delay the events of an open watch. The module does not decide when a probe is
//! due.

use std::sync::Arc;

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    super::{ReflectorStore, Reporter, machine::Action, probe::read_probe},
    Running,
    watch::{Ended, Next, OpenWatch},
    watch_probe::{Answer, WatchProbe},
};
use crate::{
    limits::LIST_STALL,
    object::{ObjectName, ResourceVersion},
    status::Activity,
    transport::{Class, ListOptions, stalled},
};

impl<K, S> Running<K, S>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
    S: ReflectorStore<K>,
{
    /// Sends a LIST request for one object before a watch is opened, to check that the server has not gone
    /// back to an earlier state. Returns the reflector's next action.
    pub(super) async fn probe(&mut self, options: &ListOptions) -> Action {
        self.activity(Activity::Opening);
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let read = read_probe(&*lister_watcher, options, self.reflector.requests.limits());
        let read = timeout(LIST_STALL, read).await;
        let read = read.map_err(|_| stalled()).flatten();
        let now = Instant::now();
        match read.and_then(|revision| self.machine.probed(&revision, now)) {
            Ok(action) => action,
            Err(error) => {
                self.meter.probe_failed(error.class());
                let error = self.failed(error, None);
                self.machine.probe_failed(&error, now)
            }
        }
    }

    /// Sends or schedules a probe if one is required and none is scheduled or in flight.
    ///
    /// The probe is a LIST request for one object, in parallel to the open watch. The probe shows whether the
    /// server has gone back to an earlier state.
    pub(super) fn begin_probe(&mut self, opened: &mut OpenWatch<K>) {
        if opened.probe.is_none() && self.machine.requires_probe() {
            opened.probe = self.watch_probe(Instant::now());
        }
    }

    /// Processes the response to the probe of an open watch. If `answered` is `None`, the scheduled probe is
    /// due, and the function sends the probe.
    ///
    /// Returns [`Next::Ended`] if the response shows that the server may have returned to an earlier state.
    pub(super) fn probed(
        &mut self,
        opened: &mut OpenWatch<K>,
        answered: Option<(ResourceVersion, Answer)>,
    ) -> Next<K> {
        opened.probe = None;
        let Some((asked, answer)) = answered else {
            opened.probe = self.watch_probe(Instant::now());
            return Next::Nothing;
        };
        let ended = self.watch_probe_answered(&asked, answer);
        ended.map_or(Next::Nothing, Next::Ended)
    }

    /// Returns the revision of the object `name` in the store, if this reflector delivered the object.
    pub(super) fn cached(&self, name: &ObjectName) -> Option<ResourceVersion> {
        let (source, object) = self.reflector.store.known()?.known(name)?;
        (source == self.reflector.source).then(|| object.revision().clone())
    }

    fn watch_probe(&self, now: Instant) -> Option<WatchProbe> {
        let (due, options) = self.machine.watch_probe(now)?;
        if now < due {
            return Some(WatchProbe::Waits(Box::pin(sleep_until(due))));
        }
        let lister_watcher = Arc::clone(&self.reflector.lister_watcher);
        let limits = self.reflector.requests.limits();
        let asked = options.resource_version.clone();
        let answer = async move {
            let read = read_probe(&*lister_watcher, &options, limits);
            timeout(LIST_STALL, read)
                .await
                .map_err(|_| stalled())
                .flatten()
        };
        Some(WatchProbe::Sent(asked, Box::pin(answer)))
    }

    /// Processes the response to a probe, and returns a reason to end the watch, if any.
    ///
    /// The probe requested revision `asked` or a newer one.
    fn watch_probe_answered(&mut self, asked: &ResourceVersion, answer: Answer) -> Option<Ended> {
        let now = Instant::now();
        let probed =
            answer.and_then(|revision| self.machine.watch_probe_answered(asked, &revision, now));
        match probed {
            Ok(is_unordered) => {
                if is_unordered {
                    let Reporter { name, expects, .. } = &self.reflector.report;
                    tracing::info!(reflector = %name, %expects, "events arrive in no order of revision; they are not checked against the server until the next list");
                }
                None
            }
            Err(error) if went_back(error.class()) => Some(Ended::WentBack(error)),
            Err(error) => {
                let error = self.failed(error, None);
                self.machine.watch_probe_failed(&error, now);
                None
            }
        }
    }
}

/// Returns whether a probe's error shows that the server may have returned to an earlier state.
fn went_back(class: Class) -> bool {
    matches!(class, Class::TooLargeResourceVersion | Class::WentBack)
}
