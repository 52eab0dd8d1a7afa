//! The ways to write a handler, side by side on one informer: closures, async closures, a type, a
//! type that blocks and has a thread, and one that is told everything again every second.
//!
//! Each is told one event at a time and has its own buffer: a slow one holds back nobody.
//!
//! `cargo run -p kube-informer --example handlers [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{fs::File, io::Write, process::ExitCode, thread, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Cause, Event, EventHandler, InformerOptions, SharedInformerFactory};
use kube_informer_apiserver::Server;
use tokio::sync::mpsc;

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
    transcript::Transcript,
};

/// How often the resync handler is told everything again; shorter periods are raised to this.
const RESYNC: Duration = Duration::from_secs(1);

/// Writes into a file which thread it runs on and what has changed: an audit log must be on disk
/// before the next event, so this handler blocks.
struct Audit {
    file: File,
}

impl EventHandler<Pod> for Audit {
    async fn handle(&mut self, event: Event<Pod>) {
        if let Event::Updated {
            old,
            new,
            cause: Cause::Watch,
        } = event
        {
            let thread = thread::current();
            let thread = thread.name().unwrap_or("unnamed");
            let line = format!(
                "{thread}: {} {} → {}",
                new.name(),
                old.revision(),
                new.revision()
            );
            let written = writeln!(self.file, "{line}").and_then(|()| self.file.sync_data());
            if let Err(error) = written {
                eprintln!("the audit log misses {line:?}: {error}");
            }
        }
    }
}

/// Counts how often it was told of each pod although nothing had happened to it.
struct Resynced {
    output: Transcript,
    times: u32,
}

impl EventHandler<Pod> for Resynced {
    async fn handle(&mut self, event: Event<Pod>) {
        if let Event::Updated {
            new,
            cause: Cause::Resync,
            ..
        } = event
        {
            self.times += 1;
            let line = format!("resync {}: {}", self.times, new.name());
            self.output.say(line);
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    cluster::exit_code(handlers().await)
}

async fn handlers() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let output = Transcript::new();
    let ours = Pods::new(cluster.client(), "handlers").await?;
    let created = ours.create("handled").await?;

    let factory = SharedInformerFactory::builder(cluster.client()).build();
    let selector = format!("{LABEL}=handlers").parse()?;
    let options = InformerOptions::new().labels(selector).resync(RESYNC);
    let pods = factory.informer_with::<Pod>(options)?;

    pods.on_add(move |pod, _| output.say(format!("closure: added {}", pod.name())))
        .on_delete(move |gone| output.say(format!("closure: deleted {}", gone.object_name())))
        .resync(Duration::ZERO)
        .register()?;

    let (sender, mut receiver) = mpsc::channel(1);
    pods.on_add(move |pod, in_initial_list| {
        let sender = sender.clone();
        async move {
            // An error says that nobody wants to hear any more.
            let _ = sender
                .send((pod.object_name().clone(), in_initial_list))
                .await;
        }
    })
    .resync(Duration::ZERO)
    .register()?;

    let path = std::env::temp_dir().join(format!("kube-informer-{}.log", std::process::id()));
    let file = File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
    let audit = pods
        .handler(Audit { file })
        .name("audit")
        .dedicated_thread()
        .resync(Duration::ZERO)
        .register()?;
    let resynced = pods.handler(Resynced { output, times: 0 }).register()?;

    factory.start();
    audit
        .wait_for_sync()
        .deadline(Duration::from_secs(30))
        .await?;
    let (name, initial) = receiver.recv().await.context("the async closure is gone")?;
    output.say(format!("async closure: added {name}, initial {initial}"));
    let changed = ours.label("handled", "tier", "web").await?;
    output
        .shows(&["resync 1: handled", "resync 2: handled"])
        .await?;
    resynced.remove().await;
    ours.delete("handled").await?;
    output
        .shows(&["closure: added handled", "closure: deleted default/handled"])
        .await?;
    output
        .shows(&["async closure: added default/handled, initial true"])
        .await?;

    // Removing waits until the callback in progress has ended, so the log is complete.
    audit.remove().await;
    let log = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    output.say(log.trim_end());
    let revision = |pod: Pod| pod.metadata.resource_version.unwrap_or_default();
    let (old, new) = (revision(created), revision(changed));
    ensure!(
        log == format!("handler audit: handled {old} → {new}\n"),
        "the audit log is wrong"
    );

    factory.shutdown().await;
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}
