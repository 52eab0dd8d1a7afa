//! Simulates storage: creates and removes the disks to which volumes refer.
//!
//! A disk is only a name in memory. Guarantees: the creation and the removal of a disk are idempotent. A
//! caller can repeat a call whose result it does not know.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::bail;
use k8s_openapi::api::core::v1::HostPathVolumeSource;
use parking_lot::Mutex;
use tokio::sync::Barrier;

/// Key of a label that makes the creation of a claim's disk fail.
///
/// The value of the label is the number of calls of [`Storage::provide`] that fail.
pub(crate) const FAILURES: &str = "kube-informer-example/failures";

/// Key of a label that makes two provisioners create the volume of a claim at the same time.
///
/// If a claim has the label, the first call of [`Storage::provide`] for the claim's disk waits for a second
/// call. The two provisioners of the example make these calls.
pub(crate) const RACE: &str = "kube-informer-example/race";

/// The simulated storage. Clones share the same disks, so several provisioners can use them.
#[derive(Clone)]
pub(crate) struct Storage {
    state: Arc<Mutex<State>>,
    race: Arc<Barrier>,
}

#[derive(Default)]
struct State {
    disks: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
    /// Names of the disks whose race (see [`RACE`]) is over. Later calls of [`Storage::provide`] for these
    /// disks do not wait.
    raced: BTreeSet<String>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            race: Arc::new(Barrier::new(2)),
        }
    }

    /// Creates the disk `name` if it does not exist, and returns its location.
    ///
    /// `labels` are the labels of the claim for which the disk is created. With the label [`RACE`], the first
    /// call for a disk waits for a second call.
    ///
    /// # Errors
    ///
    /// If the label [`FAILURES`] has the value `n`, the first `n` calls for a disk return an error.
    pub(crate) async fn provide(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> anyhow::Result<HostPathVolumeSource> {
        if labels.contains_key(RACE) && !self.state.lock().raced.contains(name) {
            self.race.wait().await;
            self.state.lock().raced.insert(name.to_owned());
        }
        let wanted = labels.get(FAILURES).and_then(|times| times.parse().ok());
        let mut state = self.state.lock();
        let failures = state.failures.entry(name.to_owned()).or_default();
        if *failures < wanted.unwrap_or(0) {
            *failures += 1;
            bail!("no disk is free");
        }
        state.disks.insert(name.to_owned());
        Ok(HostPathVolumeSource {
            path: format!("/disks/{name}"),
            type_: None,
        })
    }

    /// Removes the disk `name` if it exists.
    pub(crate) fn remove(&self, name: &str) {
        self.state.lock().disks.remove(name);
    }

    /// Returns the names of all disks in ascending order.
    pub(crate) fn disks(&self) -> Vec<String> {
        self.state.lock().disks.iter().cloned().collect()
    }
}
