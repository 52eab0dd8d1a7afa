//! `demo`: runs the control loops of a small control plane, and prints their steps.
//!
//! The loops are those of a deployment controller, a replica set controller, a scheduler and node agents.
//! They communicate only through an API server. A step is one observation or action of a loop, such as the
//! creation of a pod.
//!
//! Guarantees:
//! - the demo itself creates only the nodes and a Deployment, and the loops do everything else;
//! - each printed step shows the revision of the object that the loop observed;
//! - the demo succeeds if all replicas are ready and all failed pods are replaced;
//! - if the user disables a loop, the demo succeeds when all steps before the first step of this loop are
//!   done. Without the scheduler, for example, the last required step is the creation of the pods;
//! - if the demo does not succeed before its deadline, it fails and prints what is missing;
//! - at the end, also after an error or a signal, the demo removes the objects that it has created.

mod accounts;
mod narration;
mod progress;
mod show;
mod kubeconfig;
mod world;

use std::{path::PathBuf, time::Duration};

use anyhow::anyhow;
use kube_informer_control_plane::{
    ControlPlane, Loop,
    step::{Kind, Step},
};
use tokio::{sync::mpsc, time::Instant};

use self::{
    progress::Goal,
    show::{Show, Verdict},
    world::World,
};
use super::Ending;
use crate::{
    interrupt::{Interrupt, Signal},
    output,
};

/// The loops of the demo, in the order of their first steps.
pub(crate) const LOOPS: [Loop; 4] = [
    Loop::Deployment,
    Loop::ReplicaSet,
    Loop::Scheduler,
    Loop::NodeAgent,
];

/// Maximum number of queued steps, of about 200 bytes each.
const STEPS_MAX: usize = 1_024;

/// `User-Agent` that the deployment controller and the replica set controller send.
const CONTROLLERS: &str = "deployment-and-replica-set-controller";

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) replicas: u32,
    pub(crate) pods_fail: u32,
    pub(crate) without: Option<Loop>,
    /// CPU request of each pod, as a Kubernetes quantity.
    pub(crate) cpu: String,
    pub(crate) deadline: Duration,
    pub(crate) target: Target,
    pub(crate) request_log: Option<PathBuf>,
}

/// The API server that the demo uses.
#[derive(Debug)]
pub(crate) enum Target {
    Embedded,
    Cluster {
        kubeconfig: PathBuf,
        context: Option<String>,
        namespace: Option<String>,
        /// Whether the demo's loops write to the server. If false, the loops only observe.
        act: bool,
    },
}

impl Target {
    fn acts(&self) -> bool {
        match self {
            Target::Embedded => true,
            Target::Cluster { act, .. } => *act,
        }
    }
}

/// The reason why the demo did not complete: a signal or an error.
enum Broken {
    By(Signal),
    Off(anyhow::Error),
}

/// Runs the demo, writes the request log if requested, and removes the created objects.
///
/// # Errors
/// Returns an error if the demo misses its deadline, or if a request, the log or the removal fails.
pub(crate) async fn run(options: &Options, interrupt: &mut Interrupt) -> anyhow::Result<Ending> {
    let world = match interrupt.unless(World::open(options)).await {
        Ok(world) => world?,
        Err(signal) => return Ok(interrupted(signal)),
    };
    let told = tell(options, &world, interrupt).await;
    if let (Some(path), Some(log)) = (&options.request_log, world.requests()) {
        std::fs::write(path, accounts::json_lines(&log))
            .map_err(|error| {
                let shown = path.display();
                anyhow!("can't write the request log {shown}: {error}; name a file in a writable directory with --request-log")
            })?;
    }
    let advice = world.advice();
    let cleaned = tokio::select! {
        biased;
        cleaned = world.clean_up() => cleaned,
        signal = interrupt.next() => {
            output::complain(format_args!("interrupted while removing the demo's objects; {advice}"));
            return Ok(Ending::Ended(signal));
        }
    };
    match told {
        Ok(()) => output::say(cleaned?),
        Err(broken) => {
            match cleaned {
                Ok(removed) => output::say(removed),
                Err(error) => output::complain(format_args!("{error:#}")),
            }
            match broken {
                Broken::By(signal) => return Ok(interrupted(signal)),
                Broken::Off(error) => return Err(error),
            }
        }
    }
    Ok(Ending::Done)
}

fn interrupted(signal: Signal) -> Ending {
    output::complain("interrupted before the demo was complete; run it again to see all steps");
    Ending::Ended(signal)
}

impl From<anyhow::Error> for Broken {
    fn from(error: anyhow::Error) -> Self {
        Broken::Off(error)
    }
}

impl From<Signal> for Broken {
    fn from(signal: Signal) -> Self {
        Broken::By(signal)
    }
}

/// Creates the control loops, runs the demo, and stops the loops.
async fn tell(options: &Options, world: &World, interrupt: &mut Interrupt) -> Result<(), Broken> {
    output::say(world.description());
    let (tell, steps) = mpsc::channel(STEPS_MAX);
    let mut stage = Stage {
        options,
        world,
        began: Instant::now(),
        plane: control_plane(options, world, tell.clone()).await?,
        tell,
        steps,
    };
    let ended = stage.play(interrupt).await;
    // Without a receiver, a loop does not wait for space in the channel when it reports a step.
    drop(stage.steps);
    stage.plane.shutdown().await;
    ended
}

/// A running demo.
struct Stage<'a> {
    options: &'a Options,
    world: &'a World,
    began: Instant,
    plane: ControlPlane,
    tell: mpsc::Sender<Step>,
    steps: mpsc::Receiver<Step>,
}

impl Stage<'_> {
    async fn play(&mut self, interrupt: &mut Interrupt) -> Result<(), Broken> {
        let Stage { options, world, .. } = *self;
        interrupt.unless(world.create_nodes()).await??;
        let filling = self.plane.observe(options.deadline);
        let filled = interrupt.unless(filling).await?;
        filled.map_err(|error| {
            anyhow!("the caches did not sync: {error}; check the server, and the permissions of the user in the kubeconfig")
        })?;
        let synced = world.requests().map(|log| accounts::last_sequence(&log));
        output::say("All caches are filled; from here on the loops read from them.\n");
        output::heading();
        if world.acts() {
            self.plane.act();
        }
        let created = interrupt.unless(world.create_deployment(options)).await??;
        let pods = match options.replicas {
            1 => "1 pod".to_owned(),
            number => format!("{number} pods"),
        };
        let text = format!("asks for a Deployment of {pods}");
        let wish = Step::new("user", Kind::Wish, &created, text);
        // `self.steps` is the receiver, so the send succeeds.
        let _ = self.tell.send(wish).await;
        let mut show = Show::new(options, self.began);
        let verdict = show.watch(&mut self.steps, interrupt).await?;
        let (how, missing) = match verdict {
            Verdict::Reached(how) | Verdict::Stopped(how) => (how, None),
            Verdict::NotReached(missing) => ("Not reached.".to_owned(), Some(missing)),
        };
        output::say(format_args!("\n{how}\n"));
        account(world, &self.plane, synced);
        let Some(missing) = missing else {
            return Ok(());
        };
        for line in self.plane.report() {
            output::say(line);
        }
        Err(Broken::Off(anyhow!("the demo did not complete: {missing}")))
    }
}

/// Creates the control loops of the demo, which report to `steps`.
async fn control_plane(
    options: &Options,
    world: &World,
    steps: mpsc::Sender<Step>,
) -> anyhow::Result<ControlPlane> {
    let mut builder = ControlPlane::builder()
        .loops(
            LOOPS
                .into_iter()
                .filter(|one| options.without != Some(*one)),
        )
        .manager(CONTROLLERS)
        .namespace(world.namespace())
        .selector(world.selector().parse()?)
        .nodes(world.nodes())
        .node_prefix(world.prefix())
        .failing_pods(options.pods_fail)
        .events(false)
        .steps(steps);
    if !world.acts() {
        builder = builder.only_observe();
    }
    builder.build(|user_agent| world.client(user_agent)).await
}

/// Prints the numbers of requests and cache reads of each `User-Agent`.
///
/// `synced` is the sequence number of the last logged request at the time when the caches synced.
fn account(world: &World, plane: &ControlPlane, synced: Option<u64>) {
    let log = world.requests();
    let reads = plane.reads();
    let rows = accounts::rows(log.as_ref(), &reads);
    output::table("requests by User-Agent", &accounts::columns(), &rows);
    let (Some(log), Some(synced)) = (log, synced) else {
        output::say("(the requests are not counted: only the embedded server has a log of them)");
        return;
    };
    let lists = accounts::lists_since(&log, synced, &reads);
    let after = "After their caches were filled the loops sent";
    match lists {
        0 => output::say(format_args!(
            "{after} no list: what they read, they read from memory."
        )),
        lists => output::say(format_args!("{after} {lists} list(s).")),
    }
}
