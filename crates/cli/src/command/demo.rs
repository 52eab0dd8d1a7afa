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
use tokio::{sync::mpsc, time::Instant};

use self::{
    progress::Goal,
    show::{Show, Verdict},
    world::World,
};
use super::Ending;
use crate::{
    control_plane::{
        ControlPlane, deployment,
        node_agent::{self, Fates, Logs},
        replica_set,
        scheduler::{self, Reach},
        step::{Kind, Loop, STEPS_MAX, Step, Teller},
    },
    interrupt::{Interrupt, Signal},
    output,
};

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

/// Creates the control loops, runs the demo, and always stops the loops.
async fn tell(options: &Options, world: &World, interrupt: &mut Interrupt) -> Result<(), Broken> {
    output::say(world.description());
    let (tell, steps) = mpsc::channel(STEPS_MAX);
    let mut stage = Stage {
        options,
        world,
        began: Instant::now(),
        user: Teller::new("user", tell.clone()),
        plane: ControlPlane::new(world.scope()?, tell),
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
    user: Teller,
    plane: ControlPlane,
    steps: mpsc::Receiver<Step>,
}

impl Stage<'_> {
    async fn play(&mut self, interrupt: &mut Interrupt) -> Result<(), Broken> {
        let Stage { options, world, .. } = *self;
        self.open_controllers().await?;
        self.open_scheduler().await?;
        self.open_agents()?;
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
        let pods = deployment::pods(options.replicas.cast_signed());
        let text = format!("asks for a Deployment of {pods}");
        self.user.tell(Kind::Wish, &created, text).await;
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

    fn has(&self, one: Loop) -> bool {
        self.options.without != Some(one)
    }

    async fn open_controllers(&mut self) -> anyhow::Result<()> {
        if !self.has(Loop::Deployment) && !self.has(Loop::ReplicaSet) {
            return Ok(());
        }
        let client = self.world.client(CONTROLLERS)?;
        let mut process = self.plane.process(CONTROLLERS, client);
        if self.has(Loop::Deployment) {
            deployment::open(&mut self.plane, &mut process).await?;
        }
        if self.has(Loop::ReplicaSet) {
            replica_set::open(&mut self.plane, &mut process).await?;
        }
        self.plane.host(process);
        Ok(())
    }

    async fn open_scheduler(&mut self) -> anyhow::Result<()> {
        if !self.has(Loop::Scheduler) {
            return Ok(());
        }
        let name = Loop::Scheduler.as_str();
        let mut process = self.plane.process(name, self.world.client(name)?);
        let reach = if self.world.acts() {
            Reach::PodsAndNodes
        } else {
            Reach::Pods
        };
        scheduler::open(&mut self.plane, &mut process, reach).await?;
        self.plane.host(process);
        Ok(())
    }

    fn open_agents(&mut self) -> anyhow::Result<()> {
        if !self.has(Loop::NodeAgent) {
            return Ok(());
        }
        if !self.world.acts() {
            let name = Loop::NodeAgent.as_str();
            let mut process = self.plane.process(name, self.world.client(name)?);
            node_agent::observe_all(&mut process)?;
            self.plane.host(process);
        }
        let fates = Fates::new(self.options.pods_fail);
        for (short, node) in self.world.nodes() {
            let name = format!("{}/{short}", Loop::NodeAgent);
            let mut process = self.plane.process(&name, self.world.client(&name)?);
            node_agent::open(
                &mut self.plane,
                &mut process,
                &node,
                (&fates, &Logs::default()),
            )?;
            self.plane.host(process);
        }
        Ok(())
    }
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
