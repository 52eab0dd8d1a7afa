//! `serve`: runs an embedded API server on a port, and writes a kubeconfig for it.
//!
//! Guarantees:
//! - the kubeconfig is readable only by its owner, and never overwrites a file that `serve` did not write;
//! - all seeded objects and faults exist before the server accepts connections;
//! - on a server without stored objects, the same flags result in the same seeded objects, and `--churn`
//!   makes the same changes. On a server with stored objects, only the missing objects are seeded;
//! - at the end, the port is closed and the kubeconfig is removed.

mod churn;
mod controllers;
mod data_dir;
mod definitions;
mod fault_plan;
mod seeding;
mod template;
mod watch_caches;

use std::{
    collections::BTreeSet,
    convert::Infallible,
    fs::{self, OpenOptions},
    io::{self, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::anyhow;
use fastrand::Rng;
use kube_informer_apiserver::{Kubeconfig, Listening, Server, Tls, User};
use kube_informer_control_plane::{ControlPlane, Logs, Loop};
use tokio::time::Instant;

use self::{churn::Churn, seeding::Population};
use super::Ending;
use crate::{
    interrupt::{Interrupt, Signal},
    output,
};

pub(crate) use self::{
    churn::Rate,
    fault_plan::FaultPlan,
    seeding::SeedObjects,
    watch_caches::{CacheSize, WatchCaches},
};

/// First line of every kubeconfig that `serve` writes; only files with this line are replaced.
const MARK: &str = "# Written by kubectl-informer serve, and removed when that ends.";

/// The user of the kubeconfig and of the control loops with RBAC, who may send every request. The name is that of kubeadm.
const ADMIN: &str = "kubernetes-admin";
const MASTERS: &str = "system:masters";

/// The random number generator's seed is the sum of this number and the server's revision at start-up.
const RNG_SEED: u64 = 1;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) listen: SocketAddr,
    pub(crate) kubeconfig: PathBuf,
    /// Directory for the objects; `None` keeps the objects only in memory.
    pub(crate) data_dir: Option<PathBuf>,
    /// Files with the `CustomResourceDefinition`s to install.
    pub(crate) definitions: Vec<PathBuf>,
    pub(crate) watch_caches: WatchCaches,
    pub(crate) seed_objects: Vec<SeedObjects>,
    pub(crate) churn: Option<Rate>,
    pub(crate) faults: Option<FaultPlan>,
    /// The control loops to run.
    pub(crate) controllers: BTreeSet<Loop>,
    pub(crate) collects_garbage: bool,
    pub(crate) authorization: Authorization,
}

/// Value of the flag `--authorization`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Authorization {
    AlwaysAllow,
    Rbac,
}

/// The optional tasks of `serve`: a generator of changes (`--churn`), and control loops (`--controllers`).
struct Company {
    churn: Option<(Churn, Rate)>,
    controllers: Option<ControlPlane>,
}

/// Runs the server until a signal arrives.
pub(crate) async fn run(options: &Options, interrupt: &mut Interrupt) -> anyhow::Result<Ending> {
    let plan = options.faults.as_ref().map(FaultPlan::read).transpose()?;
    let definitions = definitions::read(&options.definitions)?;
    let prepared = async {
        let logs = Logs::default();
        let server = start(options, &logs).await?;
        let installed = definitions::install(&server, definitions)?;
        if !installed.is_empty() {
            output::say(format_args!("definitions: {}", installed.join(", ")));
        }
        let company = Company::prepare(&server, options, &logs).await?;
        anyhow::Ok((server, company))
    };
    let (server, mut company) = match interrupt.unless(prepared).await {
        Ok(prepared) => prepared?,
        Err(signal) => return Ok(Ending::Ended(signal)),
    };
    if let Some(plan) = &plan {
        plan.inject(&server, options.data_dir.is_some())?;
    }
    let signal = serve(options, &server, &mut company, interrupt).await;
    company.end().await;
    Ok(Ending::Ended(signal?))
}

/// Builds the server, and loads the stored objects if a data directory is set.
async fn start(options: &Options, logs: &Logs) -> anyhow::Result<Server> {
    let mut builder = options
        .watch_caches
        .set(Server::builder())
        .default_service_accounts(true)
        .garbage_collection(options.collects_garbage)
        .fault_endpoint(options.faults.is_some())
        .authorization(match options.authorization {
            Authorization::AlwaysAllow => kube_informer_apiserver::Authorization::AlwaysAllow,
            Authorization::Rbac => kube_informer_apiserver::Authorization::Rbac,
        });
    if options.controllers.contains(&Loop::NodeAgent) {
        builder = builder.pod_logs(logs.clone());
    }
    let Some(directory) = &options.data_dir else {
        return Ok(builder.build());
    };
    let directory = std::path::absolute(directory)?;
    let server = data_dir::open(builder, directory.clone()).await?;
    let (shown, revision) = (directory.display(), server.revision());
    output::say(format_args!("data:        {shown}, at revision {revision}"));
    Ok(server)
}

/// Listens, writes the kubeconfig, and runs until a signal arrives; then removes the kubeconfig.
async fn serve(
    options: &Options,
    server: &Server,
    company: &mut Company,
    interrupt: &mut Interrupt,
) -> anyhow::Result<Signal> {
    let (listening, kubeconfig) = listen(options, server).await?;
    let path = std::path::absolute(&options.kubeconfig)?;
    write_kubeconfig(&path, &kubeconfig)?;
    let shown = path.display();
    output::say(format_args!("API server:  {}", kubeconfig.server()));
    output::say(format_args!("kubeconfig:  {shown}"));
    if options.faults.is_some() {
        say_faults(server, kubeconfig.server());
    }
    output::say(format_args!("export KUBECONFIG={}", quoted(&path)));
    output::say("try:         kubectl get pods --all-namespaces --watch");
    output::say(if options.data_dir.is_some() {
        "The objects stay in the data directory; Ctrl-C ends the server, and the same command serves them again."
    } else {
        "The server lives in this process, in memory; Ctrl-C ends it."
    });
    let signal = company.until(interrupt).await;
    listening.shutdown().await;
    let removed = fs::remove_file(&path);
    if let Some((churn, _)) = &company.churn {
        output::say(format_args!("Churn made {}.", churn.tally()));
    }
    output::say("The server has ended.");
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(anyhow!(
            "can't remove the kubeconfig {shown}: {error}; remove it, because its server has ended"
        )),
        _ => Ok(signal),
    }
}

/// Listens, and returns the kubeconfig for the port: with RBAC that of an administrator, over TLS.
async fn listen(options: &Options, server: &Server) -> anyhow::Result<(Listening, Kubeconfig)> {
    let failed = |error: io::Error| cant_listen(options.listen, &error);
    if options.authorization == Authorization::AlwaysAllow {
        let listening = server.listen(options.listen).await.map_err(failed)?;
        let kubeconfig = listening.kubeconfig();
        return Ok((listening, kubeconfig));
    }
    let tls = Tls::generate([])?;
    let listening = server
        .listen_tls(options.listen, &tls)
        .await
        .map_err(failed)?;
    let admin = tls.issue(User::new(ADMIN).in_group(MASTERS))?;
    let kubeconfig = listening.kubeconfig().client_certificate(&admin);
    Ok((listening, kubeconfig))
}

// === impl Company ===

impl Company {
    /// Creates the seeded objects on the server, and the controllers if requested.
    async fn prepare(server: &Server, options: &Options, logs: &Logs) -> anyhow::Result<Self> {
        // The seed depends on the revision. A later start must not assign the uids of an earlier start again.
        let mut rng = Rng::with_seed(RNG_SEED.wrapping_add(server.revision()));
        let populations = seed(server, &options.seed_objects, &mut rng).await?;
        let churn = options.churn.map(|rate| {
            output::say(format_args!(
                "churn:       {rate}: creates, updates and deletes among what was seeded"
            ));
            (Churn::new(server.clone(), populations, rng), rate)
        });
        let controllers = if options.controllers.is_empty() {
            None
        } else {
            let loops: Vec<&str> = options.controllers.iter().map(|it| it.as_str()).collect();
            let loops = loops.join(", ");
            let nodes = controllers::NODES.join(" and ");
            output::say(format_args!("controllers: {loops}, for pods on {nodes}"));
            let server = match options.authorization {
                Authorization::AlwaysAllow => server.clone(),
                Authorization::Rbac => server.as_user(User::new(ADMIN).in_group(MASTERS)),
            };
            Some(controllers::open(&server, &options.controllers, logs).await?)
        };
        Ok(Self { churn, controllers })
    }

    /// Runs the changes of `--churn` and the controllers of `--controllers` until a signal arrives, and
    /// returns the signal.
    async fn until(&mut self, interrupt: &mut Interrupt) -> Signal {
        let churn = async {
            match &mut self.churn {
                Some((churn, rate)) => churn.run(*rate).await,
                None => std::future::pending::<Infallible>().await,
            }
        };
        let controllers = async {
            match &mut self.controllers {
                Some(plane) => controllers::run(plane).await,
                None => std::future::pending::<Infallible>().await,
            }
        };
        tokio::select! {
            biased;
            signal = interrupt.next() => signal,
            never = controllers => match never {},
            never = churn => match never {},
        }
    }

    async fn end(self) {
        if let Some(controllers) = self.controllers {
            controllers.shutdown().await;
        }
    }
}

/// Creates the requested objects on the server, and prints the number of each kind.
async fn seed(
    server: &Server,
    wanted: &[SeedObjects],
    rng: &mut Rng,
) -> anyhow::Result<Vec<Population>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let shown: Vec<_> = wanted.iter().map(SeedObjects::to_string).collect();
    let shown = shown.join(", ");
    output::say(format_args!("Seeding {shown} …"));
    let began = Instant::now();
    let populations = seeding::fill(server, wanted, rng).await?;
    let seconds = began.elapsed().as_secs_f64();
    let shown: Vec<_> = populations.iter().map(Population::to_string).collect();
    let shown = shown.join(", ");
    output::say(format_args!("seeded:      {shown} in {seconds:.1} s"));
    Ok(populations)
}

/// Prints the URL that configures fault injection, and the configured faults.
fn say_faults(server: &Server, address: &str) {
    output::say(format_args!(
        "faults:      {address}/faults reads (GET), extends (POST) and clears (DELETE) the plan:"
    ));
    for line in server.faults().plan().lines() {
        output::say(format_args!("               {line}"));
    }
}

fn cant_listen(address: SocketAddr, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => anyhow!(
            "can't listen on {address}: the port is in use; stop the program that uses it, or use a free port with --listen {}:0",
            address.ip()
        ),
        io::ErrorKind::PermissionDenied if !address.ip().is_loopback() => anyhow!(
            "can't listen on {address}: other machines could reach it, and there is no authentication; use --listen 127.0.0.1:{}",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => anyhow!(
            "can't listen on {address}: permission denied; use a port above 1023, or a free port with --listen 127.0.0.1:0"
        ),
        _ => {
            anyhow!("can't listen on {address}: {error}; use a free port with --listen 127.0.0.1:0")
        }
    }
}

fn write_kubeconfig(path: &Path, kubeconfig: &Kubeconfig) -> anyhow::Result<()> {
    let shown = path.display();
    if fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK)) {
        fs::remove_file(path).map_err(|error| {
            anyhow!("can't replace the kubeconfig {shown}: {error}; name another file with --kubeconfig-out")
        })?;
    }
    let failed = |error: io::Error| {
        anyhow!(
            "can't write the kubeconfig {shown}: {error}; name a file in a writable directory with --kubeconfig-out"
        )
    };
    // Only a new file is created, so no symbolic link is followed and no other file is overwritten.
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(anyhow!(
                "can't write the kubeconfig {shown}: the file exists, and kubectl-informer did not write it; name a new file with --kubeconfig-out"
            ));
        }
        other => other.map_err(failed)?,
    };
    write!(file, "{MARK}\n{kubeconfig}").map_err(failed)
}

/// Returns the path as one word for a POSIX shell, in quotes if necessary.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%:,".contains(c);
    if text.chars().all(plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_address_that_can_not_be_listened_on_is_reported_with_the_next_step() {
        let lines = [
            ("127.0.0.1:8001", io::ErrorKind::AddrInUse),
            ("0.0.0.0:8001", io::ErrorKind::PermissionDenied),
            ("127.0.0.1:80", io::ErrorKind::PermissionDenied),
            ("127.0.0.2:80", io::ErrorKind::AddrNotAvailable),
        ]
        .map(|(address, kind)| {
            let error = cant_listen(address.parse().unwrap(), &io::Error::from(kind));
            format!("{error:#}\n")
        });
        expect![[r#"
            can't listen on 127.0.0.1:8001: the port is in use; stop the program that uses it, or use a free port with --listen 127.0.0.1:0
            can't listen on 0.0.0.0:8001: other machines could reach it, and there is no authentication; use --listen 127.0.0.1:8001
            can't listen on 127.0.0.1:80: permission denied; use a port above 1023, or a free port with --listen 127.0.0.1:0
            can't listen on 127.0.0.2:80: address not available; use a free port with --listen 127.0.0.1:0
        "#]].assert_eq(&lines.concat());
    }

    #[test]
    fn a_path_survives_the_shell() {
        assert_eq!(
            quoted(Path::new("/tmp/a-1.kubeconfig")),
            "/tmp/a-1.kubeconfig"
        );
        assert_eq!(
            quoted(Path::new("/tmp/it's $HOME")),
            r"'/tmp/it'\''s $HOME'"
        );
    }
}
