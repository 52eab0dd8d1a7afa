//! The storage behind the volumes: makes a disk of a name, and removes it again.
//!
//! Guarantees: both may be asked for any number of times with the same result, so that whoever asked
//! and lost the answer just asks again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use anyhow::bail;
use k8s_openapi::api::core::v1::HostPathVolumeSource;
use parking_lot::Mutex;
use tokio::sync::Barrier;

/// A claim with this label gets its disk only after so many failures.
pub(crate) const FAILURES: &str = "kube-informer-example/failures";

/// The first two provisioners that want a disk for a claim with this label wait for each other, so
/// that neither can see the other's volume in its cache.
pub(crate) const RACE: &str = "kube-informer-example/race";

/// Storage that several provisioners share; clones are the same.
#[derive(Clone)]
pub(crate) struct Storage {
    state: Arc<Mutex<State>>,
    race: Arc<Barrier>,
}

#[derive(Default)]
struct State {
    disks: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
    /// The disks that two provisioners have met over.
    raced: BTreeSet<String>,
}

impl Storage {
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            race: Arc::new(Barrier::new(2)),
        }
    }

    /// Makes a disk, if there is none of this name, and says where it is.
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

    /// Removes a disk, if there is one of this name.
    pub(crate) fn remove(&self, name: &str) {
        self.state.lock().disks.remove(name);
    }

    /// The names of all disks, in order.
    pub(crate) fn disks(&self) -> Vec<String> {
        self.state.lock().disks.iter().cloned().collect()
    }
}
