//! The storage of the volumes: creates and removes disks by name.
//!
//! Guarantees: both operations are idempotent, so a caller can repeat a call whose result it lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::bail;
use k8s_openapi::api::core::v1::HostPathVolumeSource;
use parking_lot::Mutex;
use tokio::sync::Barrier;

/// The label with the number of failures before a claim receives its disk.
pub(crate) const FAILURES: &str = "kube-informer-example/failures";

/// The label of claims for which the first two provisioners wait for each other.
///
/// Neither provisioner can then see the volume of the other one in its cache.
pub(crate) const RACE: &str = "kube-informer-example/race";

/// Storage that several provisioners share; clones share the same disks.
#[derive(Clone)]
pub(crate) struct Storage {
    state: Arc<Mutex<State>>,
    race: Arc<Barrier>,
}

#[derive(Default)]
struct State {
    disks: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
    /// The disks for which two provisioners have waited for each other.
    raced: BTreeSet<String>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            race: Arc::new(Barrier::new(2)),
        }
    }

    /// Creates a disk if none of this name exists, and returns its location.
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

    /// Removes the disk of this name, if it exists.
    pub(crate) fn remove(&self, name: &str) {
        self.state.lock().disks.remove(name);
    }

    /// Returns the names of all disks in order.
    pub(crate) fn disks(&self) -> Vec<String> {
        self.state.lock().disks.iter().cloned().collect()
    }
}
