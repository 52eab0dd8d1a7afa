//! Defines the failures of a run ([`Failure`]), such as a killed etcd, and injects each of them.
//!
//! An injection returns when the servers and the proxy work again. The injection of [`Failure::Roll`] also
//! waits until every informer has open watches. The injection of [`Failure::RestoreBack`] also waits until
//! the server has responded to a probe or a list request of every informer. A probe is a list request for one
//! object, with which an informer checks whether the server has gone back to an earlier state.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Result, ensure};
use fastrand::Rng;
use k8s_openapi::api::core::v1::Namespace;
use kube_client::{
    Api, Client,
    api::{Patch, PatchParams},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    cluster::Cluster,
    object::{NAMESPACES, patch},
    proxy::Disturbance,
    setback::Setbacks,
    wire::{Kind, Wire},
    writer::{Pause, Writers},
};

/// Number that is added to the snapshot's revision when etcd is restored with bumped revisions.
///
/// etcd's documentation recommends this number, so that the server's revisions do not decrease.
const BUMP: u64 = 1_000_000_000;

/// Time for which the writers run between a snapshot and its restore. The restore reverts their writes.
const LOST: Duration = Duration::from_secs(5);

/// Number of writes of unwatched objects between the snapshot and the next writes of watched objects.
///
/// After the restore, the server continues at the snapshot's revision. An informer can detect the restore
/// only while the server's revision is lower than the informer's last revision. The writes of unwatched
/// objects increase the difference between these revisions by `GAP`. kube-apiserver's own writes, such as
/// leases, then decrease the difference. kube-apiserver makes fewer than 400 such writes in
/// [`PROBED_WITHIN`], the time in which every informer checks for the restore.
const GAP: usize = 400;

/// Maximum time from the start of the restored server until every source has checked for the restore.
///
/// A source is one list and watch of an informer. A source checks with a list request, or with a probe, which
/// is a list request for one object. After an answered or rejected probe, the next probe follows at least a
/// minute later. After a refused connection, the informer repeats the probe after a pause.
const PROBED_WITHIN: Duration = Duration::from_secs(240);

/// Maximum time from the end of a server until every informer watches again.
///
/// The time is sufficient for several pauses of a reflector, each of up to a minute.
const WATCHED_WITHIN: Duration = Duration::from_secs(180);

/// Duration of a stall. A client with HTTP/2 detects the stall after 45 s.
const STALL: Duration = Duration::from_secs(60);

/// The failures, in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Failure {
    ApiServerKilled,
    RestoreBumped,
    ProxyCuts,
    EtcdKilled,
    Roll,
    ProxyTruncates,
    RestoreBack,
    ProxyDelays,
    ProxyStalls,
}

impl Failure {
    pub(crate) const ALL: [Self; 9] = [
        Self::ApiServerKilled,
        Self::RestoreBumped,
        Self::ProxyCuts,
        Self::EtcdKilled,
        Self::Roll,
        Self::ProxyTruncates,
        Self::RestoreBack,
        Self::ProxyDelays,
        Self::ProxyStalls,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ApiServerKilled => "kube-apiserver killed",
            Self::RestoreBumped => "etcd restored, revisions bumped",
            Self::ProxyCuts => "connections cut",
            Self::EtcdKilled => "etcd killed",
            Self::Roll => "two kube-apiservers rolled",
            Self::ProxyTruncates => "connections truncated",
            Self::RestoreBack => "etcd restored, revisions reused",
            Self::ProxyDelays => "bytes delayed",
            Self::ProxyStalls => "connections stalled",
        }
    }

    /// Returns whether the failure breaks connections, so that informers pause before they reconnect.
    ///
    /// After the server has closed a watch without an error, an informer reconnects without a pause.
    pub(crate) fn breaks_connections(self) -> bool {
        !matches!(self, Self::Roll | Self::EtcdKilled | Self::ProxyDelays)
    }

    /// Returns a message if the sources did not react to the failure as expected, or `None` if they did.
    ///
    /// `sources` is the number of sources of all informers. `reconnected` is the number of sources that have
    /// sent a request since the failure. `reasons` is the number of responses since the failure after which a
    /// source must list again, such as a 410.
    pub(crate) fn missing_effect(
        self,
        reconnected: usize,
        reasons: usize,
        sources: usize,
    ) -> Option<String> {
        let broken = match self {
            Self::ApiServerKilled | Self::RestoreBumped | Self::RestoreBack | Self::ProxyCuts => {
                sources
            }
            // A source that is between two watches is not affected.
            Self::Roll | Self::ProxyTruncates | Self::ProxyStalls => sources / 2,
            Self::EtcdKilled | Self::ProxyDelays => 0,
        };
        if reconnected < broken {
            return Some(format!(
                "only {reconnected} of {sources} sources reconnected"
            ));
        }
        let restores = matches!(self, Self::RestoreBumped | Self::RestoreBack);
        let has_none = restores && reasons == 0;
        has_none.then(|| "no source has noticed the restore".to_owned())
    }

    /// Injects the failure, and waits until the servers work again.
    ///
    /// Returns a [`Pause`] if the writers must stay paused.
    ///
    /// # Errors
    /// Returns an error if a server can't be restarted.
    pub(crate) async fn inject(self, mut parts: Parts<'_>) -> Result<Option<Pause>> {
        match self {
            Self::ApiServerKilled => {
                parts.cluster.plane.kill_api_server();
                parts.down().await;
                parts.cluster.plane.start_api_server().await?;
            }
            Self::EtcdKilled => {
                parts.cluster.plane.kill_etcd();
                // kube-apiserver repeats its requests for a short time.
                sleep(Duration::from_millis(parts.rng.u64(5000..15_000))).await;
                parts.cluster.plane.start_etcd()?;
                parts.cluster.plane.ready_again().await?;
            }
            Self::Roll => roll(parts.cluster, parts.wires).await?,
            Self::RestoreBumped => {
                parts.restore(BUMP).await?;
            }
            Self::RestoreBack => return parts.restore_back().await.map(Some),
            Self::ProxyCuts => parts.repeat(Disturbance::Cut).await,
            Self::ProxyTruncates => {
                parts.repeat(Disturbance::Truncate).await;
                // Otherwise a connection without bytes so far would be truncated during the checks.
                parts.cluster.proxy.disturb(Disturbance::Pass);
            }
            Self::ProxyDelays => {
                let delay = Duration::from_millis(parts.rng.u64(100..800));
                parts.cluster.proxy.disturb(Disturbance::Delay(delay));
                sleep(Duration::from_secs(15)).await;
                parts.cluster.proxy.disturb(Disturbance::Pass);
            }
            Self::ProxyStalls => {
                parts.cluster.proxy.disturb(Disturbance::Stall);
                sleep(STALL).await;
                parts.cluster.proxy.disturb(Disturbance::Pass);
            }
        }
        Ok(None)
    }
}

pub(crate) struct Parts<'a> {
    pub(crate) cluster: &'a mut Cluster,
    /// The client of the run itself.
    pub(crate) client: &'a Client,
    pub(crate) writers: &'a Writers,
    pub(crate) wires: &'a [Arc<Wire>],
    pub(crate) setbacks: &'a Setbacks,
    pub(crate) rng: &'a mut Rng,
}

impl Parts<'_> {
    /// Waits for the time in which a killed server does not run.
    async fn down(&mut self) {
        sleep(Duration::from_millis(self.rng.u64(0..4000))).await;
    }

    /// Begins a disturbance of the open connections three times.
    async fn repeat(&mut self, disturbance: Disturbance) {
        for _ in 0..3 {
            self.cluster.proxy.disturb(disturbance);
            sleep(Duration::from_millis(self.rng.u64(500..4000))).await;
        }
    }

    /// Restores etcd from a snapshot that is older than the last writes.
    ///
    /// With a `bump` above zero, the revisions of the restored etcd continue at the snapshot's revision plus
    /// `bump`. Returns a guard that keeps the writers paused until the guard is dropped. Also returns the
    /// number of requests that each [`Wire`] had recorded before the restored servers started.
    async fn restore(&mut self, bump: u64) -> Result<(Pause, Vec<usize>)> {
        let pause = self.writers.pause().await;
        let plane = &mut self.cluster.plane;
        let file: PathBuf = plane.folder().join("snapshot.db");
        let _ = std::fs::remove_file(&file);
        tokio::task::block_in_place(|| plane.save_snapshot(&file))?;
        advance(self.client, GAP).await?;
        drop(pause);
        sleep(LOST).await;
        // No write may be acknowledged after the restore and before the informers have noticed it.
        let pause = self.writers.pause().await;
        // Restored objects are older than in the caches, also if the revision of the list is not.
        self.setbacks.set(true);
        plane.kill_api_server();
        plane.kill_etcd();
        tokio::task::block_in_place(|| plane.restore_snapshot(&file, bump))?;
        let before = self.wires.iter().map(|wire| wire.count()).collect();
        plane.start_etcd()?;
        plane.start_api_server().await?;
        Ok((pause, before))
    }

    /// Restores etcd from an older snapshot, and waits until the server has responded to a probe or a list
    /// request of every source.
    ///
    /// A restored server rejects a probe at a revision that the server has not reached. A watch does not show
    /// the restore, because the server accepts a watch from such a revision.
    async fn restore_back(&mut self) -> Result<Pause> {
        let (pause, before) = self.restore(0).await?;
        let until = Instant::now() + PROBED_WITHIN;
        loop {
            let all = self.wires.iter().zip(&before);
            let unaware = all.filter(|(wire, before)| !has_probed(wire, **before));
            let mut unaware = unaware.map(|(wire, _)| wire.name());
            let Some(first) = unaware.next() else {
                return Ok(pause);
            };
            let others = unaware.count();
            ensure!(
                Instant::now() < until,
                "{first} and {others} others have not probed {PROBED_WITHIN:?} after a restore"
            );
            sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Updates Namespace objects, which no informer watches, at least `revisions` times in total.
async fn advance(client: &Client, revisions: usize) -> Result<()> {
    let mut writing = JoinSet::new();
    for namespace in NAMESPACES {
        let api: Api<Namespace> = Api::all(client.clone());
        writing.spawn(async move {
            for number in 0..revisions.div_ceil(NAMESPACES.len()) {
                let patch = Patch::Merge(patch(number as u64));
                let options = PatchParams::default();
                api.patch(namespace, &options, &patch).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(written) = writing.join_next().await {
        written??;
    }
    Ok(())
}

/// Returns whether the server has responded to a probe, a list request or a streaming list. Ignores the first
/// `before` requests.
///
/// A probe is a list request for one object. Errors count as responses only if they require a new list.
fn has_probed(wire: &Wire, before: usize) -> bool {
    let requests = wire.requests();
    let checks = requests.iter().skip(before);
    let mut checks = checks.filter(|sent| sent.kind != Kind::Watch);
    checks.any(|sent| sent.status == 200 || sent.reason.is_some())
}

/// Replaces the kube-apiserver by a second one, and then the second one by the first one.
async fn roll(cluster: &mut Cluster, wires: &[Arc<Wire>]) -> Result<()> {
    let plane = &mut cluster.plane;
    let (first, second) = (plane.api_server_port(), plane.second_api_server_port());
    let flags = cluster.policy.flags(1);
    plane.start_second_api_server(&flags).await?;
    cluster.backends.set(&[first, second]);
    sleep(Duration::from_secs(2)).await;
    cluster.backends.set(&[second]);
    plane.terminate_api_server().await?;
    // Otherwise the first server would be back before the informers reconnect.
    watched_again(wires).await?;
    plane.start_api_server().await?;
    cluster.backends.set(&[first, second]);
    sleep(Duration::from_secs(2)).await;
    cluster.backends.set(&[first]);
    plane.terminate_second_api_server().await?;
    watched_again(wires).await
}

/// Waits until each source has had an open watch in ten consecutive checks.
///
/// A source is one list and watch of an informer. One check is not enough: an informer may not have detected
/// yet that the server has closed its connection.
async fn watched_again(wires: &[Arc<Wire>]) -> Result<()> {
    const CHECKS: u32 = 10;
    let until = Instant::now() + WATCHED_WITHIN;
    let mut checks = 0;
    while checks < CHECKS {
        sleep(Duration::from_millis(200)).await;
        let mut missing = wires.iter().filter(|wire| !wire.is_watching());
        let Some(first) = missing.next() else {
            checks += 1;
            continue;
        };
        checks = 0;
        let (first, others) = (first.name(), missing.count());
        ensure!(
            Instant::now() < until,
            "{first} and {others} others have no watch {WATCHED_WITHIN:?} after the end of a server"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_without_effect_is_found() {
        let found = |failure: Failure, reconnected, reasons| {
            failure.missing_effect(reconnected, reasons, 100).is_some()
        };
        assert!(found(Failure::ProxyCuts, 99, 0));
        assert!(!found(Failure::ProxyCuts, 100, 0));
        assert!(found(Failure::ProxyStalls, 49, 0));
        assert!(!found(Failure::ProxyStalls, 50, 0));
        assert!(found(Failure::RestoreBack, 100, 0));
        assert!(!found(Failure::RestoreBack, 100, 1));
        assert!(!found(Failure::EtcdKilled, 0, 0));
    }
}
