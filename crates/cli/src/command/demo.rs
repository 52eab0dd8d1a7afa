//! `demo`: a control plane at work, told by the loops themselves.
//!
//! Guarantees:
//! - nothing is scripted: a Deployment is made, and all the rest is what the loops do about it;
//! - a line is printed when a loop observes something, with the revision of the object it observed;
//! - it ends with success when the goal is reached or, with a loop left out, when everything before that loop's part has happened and nothing moves any more; with the step that is missing otherwise; and at once on a signal. Whatever the end, what was made is removed.

mod accounts;
mod narration;
mod progress;
mod show;
mod world;

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
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
        node_agent::{self, Fates},
        replica_set,
        scheduler::{self, Reach},
        step::{Kind, Loop, STEPS_MAX, Step, Teller},
    },
    interrupt::{Interrupt, Signal},
    output,
};

/// The User-Agent of the process that has two controllers.
const CONTROLLERS: &str = "deployment-and-replica-set-controller";

/// What `demo` is to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) replicas: u32,
    pub(crate) pods_fail: u32,
    pub(crate) without: Option<Loop>,
    /// The cores that a pod asks for, as a Kubernetes quantity.
    pub(crate) cpu: String,
    /// How long it may take until the goal is reached.
    pub(crate) deadline: Duration,
    pub(crate) target: Target,
    /// Where the embedded server's request log is written.
    pub(crate) request_log: Option<PathBuf>,
}

/// Where the demo takes place.
#[derive(Debug)]
pub(crate) enum Target {
    Embedded,
    Cluster {
        kubeconfig: PathBuf,
        context: Option<String>,
        namespace: Option<String>,
        /// Whether our loops act, or only observe.
        act: bool,
    },
}

/// Why a demo did not come to its own end.
enum Broken {
    By(Signal),
    Off(anyhow::Error),
}

/// Runs the demo.
///
/// # Errors
/// The server can't be reached, a step was not reached in time, or something that was made could not be removed.
pub(crate) async fn run(options: &Options, interrupt: &mut Interrupt) -> anyhow::Result<Ending> {
    let world = match interrupt.unless(World::open(options)).await {
        Ok(world) => world?,
        Err(signal) => return Ok(interrupted(signal)),
    };
    let told = tell(options, &world, interrupt).await;
    if let (Some(path), Some(log)) = (&options.request_log, world.requests()) {
        std::fs::write(path, accounts::json_lines(&log))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    let cleaned = tokio::select! {
        biased;
        cleaned = world.clean_up() => cleaned,
        signal = interrupt.next() => return Ok(interrupted(signal)),
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
    output::complain("interrupted before the end; run it again to see the rest");
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

/// Opens the loops, plays, and closes them again, however it ends.
async fn tell(options: &Options, world: &World, interrupt: &mut Interrupt) -> Result<(), Broken> {
    let began = Instant::now();
    output::say(world.description());
    let (tell, mut steps) = mpsc::channel(STEPS_MAX);
    let user = Teller::new("user", tell.clone());
    let mut plane = ControlPlane::new(world.scope()?, tell);
    let ended = async {
        open_loops(&mut plane, world, options).await?;
        let show = Show::new(options, began);
        play(
            options,
            world,
            &mut plane,
            (show, &mut steps, user),
            interrupt,
        )
        .await
    }
    .await;
    // Whoever still wants to tell something must not wait for it.
    drop(steps);
    plane.shutdown().await;
    ended
}

async fn open_loops(
    plane: &mut ControlPlane,
    world: &World,
    options: &Options,
) -> anyhow::Result<()> {
    let with = |one| options.without != Some(one);
    if with(Loop::Deployment) || with(Loop::ReplicaSet) {
        let mut process = plane.process(CONTROLLERS, world.client(CONTROLLERS)?);
        if with(Loop::Deployment) {
            deployment::open(plane, &mut process).await?;
        }
        if with(Loop::ReplicaSet) {
            replica_set::open(plane, &mut process).await?;
        }
        plane.host(process);
    }
    if with(Loop::Scheduler) {
        let name = Loop::Scheduler.as_str();
        let mut process = plane.process(name, world.client(name)?);
        let reach = match world.acts() {
            true => Reach::PodsAndNodes,
            false => Reach::Pods,
        };
        scheduler::open(plane, &mut process, reach).await?;
        plane.host(process);
    }
    if !with(Loop::NodeAgent) {
        return Ok(());
    }
    if !world.acts() {
        let name = Loop::NodeAgent.as_str();
        let mut process = plane.process(name, world.client(name)?);
        node_agent::observe_all(&mut process)?;
        plane.host(process);
    }
    let fates = Fates::new(options.pods_fail);
    for node in world.nodes() {
        let name = format!("{}/{node}", Loop::NodeAgent);
        let mut process = plane.process(&name, world.client(&name)?);
        node_agent::open(plane, &mut process, &node, &fates)?;
        plane.host(process);
    }
    Ok(())
}

async fn play(
    options: &Options,
    world: &World,
    plane: &mut ControlPlane,
    (mut show, steps, user): (Show, &mut mpsc::Receiver<Step>, Teller),
    interrupt: &mut Interrupt,
) -> Result<(), Broken> {
    interrupt.unless(world.create_nodes()).await??;
    let filled = interrupt.unless(plane.observe(options.deadline)).await?;
    filled.map_err(|error| {
        let lines = error.to_string().replace('\n', "; ");
        anyhow::anyhow!(
            "the caches can't be filled: {lines}; check the server and the user's rights"
        )
    })?;
    let synced = world.requests().map(|log| accounts::last_sequence(&log));
    output::say(
        "All caches are filled. From here on the loops read from them, and ask the server for nothing but changes.\n",
    );
    if world.acts() {
        plane.act();
    }
    let created = interrupt.unless(world.create_deployment(options)).await??;
    let text = format!(
        "asks for a Deployment of {}",
        deployment::pods(options.replicas.cast_signed())
    );
    user.tell(Kind::Wish, &created, text).await;
    let verdict = show.watch(steps, interrupt).await?;
    output::say("");
    let missing = match verdict {
        Verdict::Reached(how) | Verdict::Stopped(how) => {
            output::say(how);
            None
        }
        Verdict::NotReached(missing) => Some(missing),
    };
    output::say("");
    account(world, plane, synced);
    if let Some(missing) = missing {
        for line in plane.report() {
            output::say(line);
        }
        return Err(Broken::Off(anyhow::anyhow!("not reached: {missing}")));
    }
    Ok(())
}

/// Shows what was asked of the server, and what was not.
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
