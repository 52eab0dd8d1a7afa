//! Registers different types of handlers on one informer.
//!
//! The handlers are closures, async closures, a type that implements `EventHandler` and blocks its own
//! thread, a handler that is resynced every second, and a handler whose buffer merges updates of the same
//! object.
//!
//! Each handler receives one event at a time and has its own buffer. A slow handler does not delay other
//! handlers.
//!
//! `cargo run -p kube-informer --example handlers [-- --kubeconfig FILE --context NAME]`

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;
#[path = "setting/pods.rs"]
mod pods;
#[path = "setting/transcript.rs"]
mod transcript;

use std::{fs::File, io::Write, process::ExitCode, sync::Arc, thread, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube_informer::{
    Cause, Event, EventHandler, InformerOptions, Object, SharedInformer, SharedInformerFactory,
    shared_informer::{ListenerBuffer, Stopped},
};
use kube_informer_apiserver::Server;
use tokio::{sync::Semaphore, time::sleep};

use self::{
    cluster::Cluster,
    pods::{LABEL, Pods},
    transcript::Transcript,
};

/// Resync period of the informer. The library raises shorter periods to one second.
const RESYNC: Duration = Duration::from_secs(1);

/// Time for which the async closures sleep before they print an event.
const SLOW: Duration = Duration::from_millis(100);

/// Maximum time of each wait for the informer, such as the wait for the initial sync.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A handler that writes one line per update of a pod to a log file.
///
/// A line also contains the name of the handler's thread. The handler blocks until the line is on disk, so it
/// runs on a dedicated thread.
struct Audit {
    file: File,
    output: Transcript,
}

impl Audit {
    fn log(&mut self, old: &Object<Pod>, new: &Object<Pod>) -> std::io::Result<()> {
        let thread = thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        let (name, from, to) = (new.name(), old.revision(), new.revision());
        let line = format!("{thread}: {name} {from} → {to}");
        writeln!(self.file, "{line}")?;
        self.file.sync_data()?;
        self.output.say(line);
        Ok(())
    }
}

impl EventHandler<Pod> for Audit {
    async fn handle(&mut self, event: Event<Pod>) {
        if let Event::Updated {
            old,
            new,
            cause: Cause::Watch,
        } = event
            && let Err(error) = self.log(&old, &new)
        {
            eprintln!("can't log an update of {}: {error}", new.name());
        }
    }
}

/// A handler that prints each resync event, numbered consecutively across all pods.
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
    exit::code(handlers().await)
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
    closures(&pods, output)?;
    let path = std::env::temp_dir().join(format!("kube-informer-{}.log", std::process::id()));
    let file = File::create(&path).with_context(|| format!("can't write {}", path.display()))?;
    let audit = pods
        .handler(Audit { file, output })
        .name("audit")
        .dedicated_thread()
        .resync(Duration::ZERO)
        .register()?;
    let resynced = pods.handler(Resynced { output, times: 0 }).register()?;
    factory.start();
    let synced = audit.wait_for_sync();
    synced.deadline(TIMEOUT).await?;

    let changed = ours.label("handled", "tier", "web").await?;
    let revision = |pod: Pod| pod.metadata.resource_version.unwrap_or_default();
    let (old, new) = (revision(created), revision(changed));
    let logged = format!("handler audit: handled {old} → {new}");
    output.shows(&[&logged]).await?;
    let resyncs = ["resync 1: handled", "resync 2: handled"];
    output.shows(&resyncs).await?;
    // The handler receives no more events. Dropping the registration would not remove the handler.
    resynced.remove().await;
    only_the_latest(&pods, &ours, output).await?;
    ours.delete("handled").await?;
    for kind in ["closure", "async closure"] {
        let line = |what: &str| format!("{kind}: {what} default/handled");
        let lines = ["added", "deleted"].map(line);
        output.shows(&lines.each_ref().map(String::as_str)).await?;
    }

    factory.shutdown().await;
    let log = std::fs::read_to_string(&path)?;
    std::fs::remove_file(&path)?;
    ensure!(
        log.lines().next() == Some(&logged),
        "the log starts differently: {log:?}"
    );
    ours.clear().await?;
    cluster.close().await;
    Ok(())
}

/// Registers two handlers that print additions and deletions of pods.
///
/// The closures of the first handler print immediately. The async closures of the second handler print after
/// a delay.
fn closures(pods: &SharedInformer<Pod>, output: Transcript) -> Result<(), Stopped> {
    pods.on_add(move |pod, _| output.say(format!("closure: added {}", pod.object_name())))
        .on_delete(move |gone| output.say(format!("closure: deleted {}", gone.object_name())))
        .resync(Duration::ZERO)
        .register()?;
    pods.on_add(move |pod, _| async move {
        sleep(SLOW).await;
        output.say(format!("async closure: added {}", pod.object_name()));
    })
    .on_delete(move |gone| async move {
        sleep(SLOW).await;
        output.say(format!("async closure: deleted {}", gone.object_name()));
    })
    .resync(Duration::ZERO)
    .register()?;
    Ok(())
}

/// Registers a handler whose buffer merges updates of the same object, and checks the result.
///
/// One pod is updated three times while the handler is busy. The function checks that the handler receives
/// only one update, with the state after the third update.
async fn only_the_latest(
    pods: &SharedInformer<Pod>,
    ours: &Pods,
    output: Transcript,
) -> anyhow::Result<()> {
    let free = Arc::new(Semaphore::new(0));
    let busy = Arc::clone(&free);
    let handler = pods
        .on_add(move |_, _| {
            let busy = Arc::clone(&busy);
            async move {
                // The semaphore is closed after all changes.
                let _ = busy.acquire().await;
            }
        })
        .on_update(move |_, pod| async move {
            let step = pod.labels().get("step").map_or("none", |step| step);
            output.say(format!("latest: step {step} of {}", pod.name()));
        })
        .name("latest")
        .buffer(ListenerBuffer::Coalesce)
        .resync(Duration::ZERO)
        .register()?;
    let mut changed = Pod::default();
    for step in ["1", "2", "3"] {
        changed = ours.label("handled", "step", step).await?;
    }
    pods.wait_for_revision(&changed, TIMEOUT).await?;
    // The cache contains a change slightly before the handlers' buffers receive it.
    let merged = async {
        while handler.coalesced() < 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, merged).await?;
    free.close();
    output.shows(&["latest: step 3 of handled"]).await?;
    ensure!(
        handler.coalesced() == 2,
        "the other updates were delivered too"
    );
    Ok(())
}
