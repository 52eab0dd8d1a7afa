//! Runs a provisioner: a controller that creates a volume for each persistent volume claim.
//!
//! When a claim is deleted, the provisioner deletes the volume of the claim.
//!
//! - The provisioner reads three caches: of claims, of volumes and of storage classes. It starts its workers
//!   when all three are synced.
//! - `main.rs` can pass an informer of claims to a provisioner. The provisioner then neither starts nor stops
//!   this informer.
//! - Caches may be stale and requests may fail. The provisioner retries, and never creates two volumes for a
//!   claim, even if a second provisioner processes the same claim.
//! - The provisioner ignores claims whose storage class names another provisioner.
//!
//! `main.rs` runs the scenario, `controller.rs` contains the provisioner, and `storage.rs` simulates the
//! disks. `binder.rs` binds claims to volumes, because the embedded server has no controller manager. On a
//! cluster with a controller manager, either the binder or the controller manager binds a claim.
//!
//! `cargo run -p kube-informer --example provisioner [-- --kubeconfig FILE --context NAME]`

#[path = "../setting/exit.rs"]
mod exit;
#[path = "../setting/cluster.rs"]
mod cluster;
#[path = "../setting/transcript.rs"]
mod transcript;
mod storage;
mod binder;
mod controller;
mod claims;

use std::{future::Future, process::ExitCode};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube_informer::{Object, SharedInformer, SharedInformerFactory, shared_informer::Stopped};
use kube_informer_apiserver::Server;
use tokio::{sync::watch, task::JoinSet};

use self::{
    binder::Binder,
    claims::Claims,
    cluster::Cluster,
    controller::{Builder, volume_name},
    storage::{FAILURES, RACE, Storage},
    transcript::Transcript,
};

/// Name of a provisioner that does not exist. It is the `provisioner` of the storage class `foreign`.
///
/// The example's provisioner must ignore claims of this class.
const OTHER_PROVISIONER: &str = "other.example.com";

/// Key of a label that the scenario sets on a claim after the provisioner has stopped.
///
/// The informer of claims, which `main.rs` starts and stops, must still deliver this change.
const STATE: &str = "kube-informer-example/state";

/// Names of two storage classes.
///
/// The class `ours` belongs to the provisioner of this run, and the class `foreign` to [`OTHER_PROVISIONER`].
struct Classes {
    ours: String,
    foreign: String,
}

/// The tasks that the scenario starts, and the channel that signals these tasks to stop.
///
/// One task runs the binder, which binds claims to volumes. Each other task runs a provisioner.
struct Company {
    stop: watch::Sender<bool>,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Company {
    fn new() -> Self {
        Self {
            stop: watch::Sender::new(false),
            tasks: JoinSet::new(),
        }
    }

    /// Returns a future that resolves when the scenario signals the binder and the provisioners to stop.
    fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut told = self.stop.subscribe();
        async move {
            // An error means that the program failed.
            let _ = told.wait_for(|stop| *stop).await;
        }
    }

    /// Runs the future `play`, which is one step of the scenario.
    ///
    /// Returns an error if the binder or a provisioner ends before `play` completes.
    async fn during(
        &mut self,
        play: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            Some(ended) = self.tasks.join_next() => {
                ended??;
                bail!("a controller ended early")
            }
            played = play => played,
        }
    }

    async fn end(mut self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(provisioner().await)
}

async fn provisioner() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let ours = Claims::new(cluster.client());
    let shown = show(&cluster, &ours).await;
    let cleared = ours.clear().await;
    cluster.close().await;
    shown.and(cleared.context("can't clean up"))
}

async fn show(cluster: &Cluster, ours: &Claims) -> anyhow::Result<()> {
    let output = Transcript::new();
    let name = ours.provisioner();
    let classes = Classes {
        ours: ours.create_class(&name).await?,
        foreign: ours.create_class(OTHER_PROVISIONER).await?,
    };
    let early = ours.create("early", &classes.ours, &[]).await?;

    let owner = SharedInformerFactory::builder(cluster.client()).build();
    let claims = owner.informer();
    tell_claims(&claims, output)?;
    tell_volumes(&owner.informer(), output)?;

    let storage = Storage::new();
    let provisioner = || Builder::new(cluster.client(), &name, storage.clone(), output).workers(2);
    let mut company = Company::new();
    let binder = Binder::new(cluster.client(), &classes.ours);
    company.tasks.spawn(binder.run(company.stopped()));
    let first = provisioner().claims(claims).build();
    company.tasks.spawn(first.run(company.stopped()));
    // Started after the provisioner, to show that the provisioner waits for a cache that it does not run.
    owner.start();
    company.during(output.shows(&[&bound(&early)])).await?;

    let foreign = ours.create("foreign", &classes.foreign, &[]).await?;
    let left = format!("claim {} belongs to {OTHER_PROVISIONER}", name_of(&foreign));
    company.during(output.shows(&[&left])).await?;
    let two_failures = [(FAILURES, "2")];
    let flaky = ours.create("flaky", &classes.ours, &two_failures).await?;
    let failed = |attempt| {
        let name = name_of(&flaky);
        format!("{name} failed, attempt {attempt}: no disk is free")
    };
    let lines = [failed(1), failed(2), bound(&flaky)];
    let lines = lines.each_ref().map(String::as_str);
    company.during(output.shows(&lines)).await?;

    let second = provisioner().build();
    company.tasks.spawn(second.run(company.stopped()));
    let raced = ours.create("raced", &classes.ours, &[(RACE, "")]).await?;
    let (volume, claim) = (volume_name(&raced), name_of(&raced));
    let once = format!("volume {volume} was created for {claim}");
    let twice = format!("volume {volume} existed already");
    for line in [once, twice, bound(&raced)] {
        company.during(output.shows(&[&line])).await?;
    }

    let all = [early, flaky, raced];
    let deleted = delete(ours, &storage, &all, output);
    company.during(deleted).await?;
    company.end().await?;
    foreign_things_are_untouched(ours, &foreign, output).await?;
    owner.shutdown().await;
    Ok(())
}

/// Deletes the claims one by one. After each deletion, waits until the claim's volume is released and
/// deleted.
///
/// Checks that one disk per claim exists at the start, and that no disk exists at the end.
async fn delete(
    ours: &Claims,
    storage: &Storage,
    claims: &[PersistentVolumeClaim],
    output: Transcript,
) -> anyhow::Result<()> {
    let mut disks: Vec<_> = claims.iter().map(volume_name).collect();
    disks.sort();
    ensure!(
        storage.disks() == disks,
        "the disks do not match the claims: {:?}",
        storage.disks()
    );
    for claim in claims {
        ours.delete(claim).await?;
        let volume = volume_name(claim);
        output
            .shows(&[
                &format!("volume {volume} is Released"),
                &format!("volume {volume} is gone"),
            ])
            .await?;
    }
    ensure!(
        storage.disks().is_empty(),
        "disks remain: {:?}",
        storage.disks()
    );
    Ok(())
}

/// Checks that the claim `foreign`, whose storage class names another provisioner, has no volume.
///
/// Also checks that the informer of claims still delivers events after the provisioner has stopped.
async fn foreign_things_are_untouched(
    ours: &Claims,
    foreign: &PersistentVolumeClaim,
    output: Transcript,
) -> anyhow::Result<()> {
    let now = ours.get(foreign).await?;
    let bound = now.spec.and_then(|spec| spec.volume_name);
    ensure!(bound.is_none(), "the foreign claim is bound to {bound:?}");
    let volume = volume_name(foreign);
    ensure!(
        !ours.has_volume(&volume).await?,
        "the foreign claim has a volume"
    );
    ours.label(foreign, STATE, "still-watched").await?;
    let changed = format!("claim {} is still watched", name_of(foreign));
    output.shows(&[&changed]).await
}

/// Registers a handler that prints the result of [`state`] for a claim whenever the result changes.
fn tell_claims(
    claims: &SharedInformer<PersistentVolumeClaim>,
    output: Transcript,
) -> Result<(), Stopped> {
    let tell = move |old: Option<String>, claim: &Object<PersistentVolumeClaim>| {
        let new = state(claim);
        if let Some(state) = new.as_ref().filter(|_| new != old) {
            output.say(format!("claim {} is {state}", claim.object_name()));
        }
    };
    claims
        .on_add(move |claim, _| tell(None, &claim))
        .on_update(move |old, new| tell(state(&old), &new))
        .register()?;
    Ok(())
}

/// Returns the state of a claim as text, or `None` if the claim has no state to print.
///
/// The text is the value of the label [`STATE`]. If the claim does not have the label but is bound, the text
/// names the volume.
fn state(claim: &Object<PersistentVolumeClaim>) -> Option<String> {
    let labelled = claim.labels().get(STATE);
    labelled.map(|state| state.replace('-', " ")).or_else(|| {
        let claim = claim.get().ok()?;
        let volume = claim.spec.as_ref()?.volume_name.as_ref()?;
        let phase = claim.status.as_ref()?.phase.as_deref();
        (phase == Some("Bound")).then(|| format!("bound to {volume}"))
    })
}

/// Registers a handler that prints each change of a volume's phase, and the deletion of a volume.
fn tell_volumes(
    volumes: &SharedInformer<PersistentVolume>,
    output: Transcript,
) -> Result<(), Stopped> {
    let phase = |volume: &Object<PersistentVolume>| volume.get().ok()?.status.clone()?.phase;
    volumes
        .on_update(move |old, new| {
            if let (before, Some(now)) = (phase(&old), phase(&new))
                && before.as_ref() != Some(&now)
            {
                output.say(format!("volume {} is {now}", new.name()));
            }
        })
        .on_delete(move |gone| output.say(format!("volume {} is gone", gone.object_name())))
        .register()?;
    Ok(())
}

fn bound(claim: &PersistentVolumeClaim) -> String {
    format!(
        "claim {} is bound to {}",
        name_of(claim),
        volume_name(claim)
    )
}

fn name_of(claim: &PersistentVolumeClaim) -> String {
    format!(
        "default/{}",
        claim.metadata.name.as_deref().unwrap_or_default()
    )
}
