//! Parses the command line. No other module reads the program's arguments or environment.
//!
//! Guarantees: the result is a valid command, the requested help text, or an error in one line. The line
//! states the error and the valid input.

mod stand_in;

use std::{collections::BTreeSet, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{
    ArgAction, Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};
use kube_informer_apiserver::WatchCache;
use kube_informer_control_plane::{Loop, NotAQuantity, thousandths};
use tracing::level_filters::LevelFilter;

use crate::command::{
    Command,
    demo::{self, Target},
    serve::{self, CacheSize, FaultPlan, Rate, SeedObjects, WatchCaches},
};

const REPLICAS_MAX: u32 = 5_000;

/// Constant part of the demo's default deadline; each pod adds [`DEADLINE_PER_POD`].
const DEADLINE: Duration = Duration::from_secs(15);
const DEADLINE_PER_POD: Duration = Duration::from_millis(20);

/// Default deadline of the demo if it only observes a cluster. The deadline allows time for the cluster's
/// nodes to pull images.
const PATIENCE_IN_CLUSTER: Duration = Duration::from_secs(120);

/// The command to run, and the most verbose level to log.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) verbosity: LevelFilter,
    pub(crate) command: Command,
}

/// Result of parsing the program's arguments.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a program has one such value")]
pub(crate) enum Asked {
    For(Wanted),
    /// The text of the requested help or version.
    Help(String),
    /// One line that states the error in the arguments and the valid input.
    Wrongly(String),
}

/// Run an embedded Kubernetes API server, and a small control plane that observes the server through
/// informers.
#[derive(Debug, Parser)]
#[command(name = "kubectl-informer", version)]
struct Typed {
    /// Log to standard error: -v warnings, -vv also info messages, -vvv everything.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: TypedCommand,
}

#[derive(Debug, Subcommand)]
enum TypedCommand {
    Demo(TypedDemo),
    Serve(TypedServe),
}

/// Watch a control plane at work: its loops, which communicate only through an API server, turn a Deployment
/// into pods, schedule them, run them, and replace those that fail.
#[derive(Args, Debug)]
struct TypedDemo {
    /// Number of replicas of the Deployment.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(..=i64::from(REPLICAS_MAX)))]
    replicas: u32,
    /// Number of pods that fail after a short time and are replaced. Default: 1, or 0 if --replicas is 0 or
    /// the loops only observe a real server.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..=i64::from(REPLICAS_MAX)))]
    pods_fail: Option<u32>,
    /// Leave out one of the loops, to see where progress stops.
    #[arg(long, value_name = "LOOP", value_parser = loop_of_demo())]
    without: Option<Loop>,
    /// CPU request of each pod; a node of the demo has 32 cores.
    #[arg(long, value_name = "QUANTITY", default_value = "100m", value_parser = quantity)]
    cpu: String,
    /// Seconds after which the demo fails; default 15 plus 0.02 per pod, or 120 in a cluster with its own
    /// control plane.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    deadline: Option<u64>,
    /// Use a real API server instead of the embedded one.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; default is its current context.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    context: Option<String>,
    /// Namespace on the real server; default is that of the context.
    #[arg(long, value_name = "NAME", requires = "kubeconfig")]
    namespace: Option<String>,
    /// Let the demo's loops change objects on the real server; use only if that server has no control plane.
    /// Without this flag, the loops only observe a real server.
    #[arg(long, requires = "kubeconfig")]
    act: bool,
    /// Write the embedded server's request log to this file, one JSON object per line.
    #[arg(long, value_name = "FILE", hide = true, conflicts_with = "kubeconfig")]
    request_log: Option<PathBuf>,
}

/// Run an embedded Kubernetes API server until Ctrl-C, and write a kubeconfig for it.
#[derive(Args, Debug)]
struct TypedServe {
    /// Address to listen on; must be a loopback address; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,
    /// Where to write the kubeconfig; default is a file in the directory for temporary files.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Store the objects in this directory, so that they survive restarts and kills; default is in memory.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Store N objects of about 1 KB before serving, for example pods=100000; with --data-dir only those that
    /// are missing. Can be repeated for several resources.
    #[arg(long, value_name = "RESOURCE=N")]
    seed_objects: Vec<SeedObjects>,
    /// Install the definitions of custom kinds in this YAML or JSON file, and replace those that are stored.
    #[arg(long = "crd", value_name = "FILE")]
    definitions: Vec<PathBuf>,
    /// Create, update and delete seeded objects at this rate, for example 500/s or 30/m.
    #[arg(long, value_name = "RATE", requires = "seed_objects")]
    churn: Option<Rate>,
    /// Inject the faults of a plan: its text, for example 'watch pods: cut after 3 events', or @FILE to read
    /// it from a file. With this flag, the plan can also be changed over HTTP while the server runs.
    #[arg(long, value_name = "PLAN|@FILE")]
    fault: Option<FaultPlan>,
    /// How requests are authorized. With rbac, the stored roles and bindings decide, the server listens with TLS, and
    /// the kubeconfig has a client certificate of an administrator.
    #[arg(long, visible_alias = "authorization-mode", value_name = "MODE", ignore_case = true, default_value_t = serve::Authorization::AlwaysAllow)]
    authorization: serve::Authorization,
    /// Run control loops, so that a Deployment results in running pods: all, or those in the list. A list such as
    /// `*,-job` has all but some.
    #[arg(long, value_name = "LOOPS", num_args = 0..=1, require_equals = true, default_missing_value = "*", value_parser = loops)]
    controllers: Option<Loops>,
    /// Delete the dependents of deleted objects, as the garbage collector of kube-controller-manager does.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    enable_garbage_collector: bool,
    /// Serve lists and watches from a watch cache, as kube-apiserver does; with false, storage serves them.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true", action = ArgAction::Set)]
    watch_cache: bool,
    /// Maximum number of past events that a new watch can request, per resource; 0 disables the watch cache.
    /// Default: the events of the last 75 seconds, but at least 100 and at most 102400 events.
    #[arg(long, value_name = "EVENTS")]
    default_watch_cache_size: Option<usize>,
    /// Overrides --default-watch-cache-size for single resources, for example
    /// pods#1000,deployments.apps#50; unlike in kube-apiserver, sizes other than 0 take effect.
    #[arg(long, value_name = "RESOURCE#EVENTS", value_delimiter = ',')]
    watch_cache_sizes: Vec<CacheSize>,
}

impl ValueEnum for serve::Authorization {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::AlwaysAllow, Self::Rbac]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Self::AlwaysAllow => PossibleValue::new("always-allow").alias("AlwaysAllow"),
            Self::Rbac => PossibleValue::new("rbac"),
        })
    }
}

impl fmt::Display for serve::Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlwaysAllow => "always-allow",
            Self::Rbac => "rbac",
        })
    }
}

/// The control loops of `serve --controllers`.
#[derive(Clone, Debug, Default)]
struct Loops(BTreeSet<Loop>);

/// Parses names of control loops, separated by commas, as `--controllers` of kube-controller-manager has them.
///
/// `*` stands for all loops, and `-name` excludes one.
fn loops(text: &str) -> Result<Loops, String> {
    let mut all = BTreeSet::new();
    let mut excluded = BTreeSet::new();
    for name in text.split(',') {
        let (set, name) = match name.strip_prefix('-') {
            Some(name) => (&mut excluded, name),
            None => (&mut all, name),
        };
        match Loop::named(name) {
            _ if name == "*" => set.extend(Loop::ALL.iter().copied()),
            Some(named) => {
                set.insert(named);
            }
            None => {
                let names: Vec<&str> = Loop::ALL.iter().map(|one| one.as_str()).collect();
                let names = names.join(", ");
                return Err(format!(
                    "no control loop is named {name:?}; there are {names}, and * for all"
                ));
            }
        }
    }
    Ok(Loops(all.difference(&excluded).copied().collect()))
}

/// Returns the parser of a loop of the demo.
fn loop_of_demo() -> impl TypedValueParser<Value = Loop> {
    let names = demo::LOOPS.map(Loop::as_str);
    PossibleValuesParser::new(names).try_map(|name| Loop::named(&name).ok_or("not a loop"))
}

/// Parses the arguments of this process.
pub(crate) fn read() -> Asked {
    let arguments: Vec<_> = std::env::args_os().collect();
    stand_in::read(&arguments).unwrap_or_else(|| read_from(arguments))
}

fn read_from<T: Into<std::ffi::OsString> + Clone>(typed: impl IntoIterator<Item = T>) -> Asked {
    let typed = match Typed::try_parse_from(typed) {
        Ok(typed) => typed,
        Err(error) => return refuse(&error),
    };
    let verbosity = match typed.verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::WARN,
        2 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    };
    let command = match typed.command {
        TypedCommand::Demo(demo) => demo.raise().map(Command::Demo),
        TypedCommand::Serve(serve) => serve.raise().map(Command::Serve),
    };
    match command {
        Ok(command) => Asked::For(Wanted { verbosity, command }),
        Err(what) => Asked::Wrongly(what),
    }
}

impl TypedDemo {
    fn raise(self) -> Result<demo::Options, String> {
        let observes = self.kubeconfig.is_some() && !self.act;
        let flag = match (&self.without, &self.pods_fail) {
            (Some(_), _) => Some("--without"),
            (None, Some(_)) => Some("--pods-fail"),
            (None, None) => None,
        };
        if let Some(flag) = flag.filter(|_| observes) {
            return Err(format!(
                "{flag} needs loops that act; add --act if the server has no control plane of its own, or omit --kubeconfig"
            ));
        }
        if self.replicas == 0 && self.pods_fail.is_some_and(|fail| fail > 0) {
            return Err(
                "--pods-fail needs a pod that can fail; set --replicas to 1 or more".to_owned(),
            );
        }
        let runs_pods = !observes && self.replicas > 0;
        let pods_fail = self.pods_fail.unwrap_or(u32::from(runs_pods));
        let default = if observes {
            PATIENCE_IN_CLUSTER
        } else {
            DEADLINE + DEADLINE_PER_POD * (self.replicas + pods_fail)
        };
        let target = match self.kubeconfig {
            None => Target::Embedded,
            Some(kubeconfig) => Target::Cluster {
                kubeconfig,
                context: self.context,
                namespace: self.namespace,
                act: self.act,
            },
        };
        Ok(demo::Options {
            replicas: self.replicas,
            pods_fail,
            without: self.without,
            cpu: self.cpu,
            deadline: self.deadline.map_or(default, Duration::from_secs),
            target,
            request_log: self.request_log,
        })
    }
}

impl TypedServe {
    fn raise(self) -> Result<serve::Options, String> {
        let seeded = self.seed_objects.iter().map(SeedObjects::resource);
        if let Some(resource) = twice(seeded) {
            return Err(format!(
                "--seed-objects has {resource} twice; set one number per resource"
            ));
        }
        let watch_caches = self.watch_caches()?;
        let kubeconfig = self.kubeconfig_out.unwrap_or_else(|| {
            let name = format!("kubectl-informer-{}.kubeconfig", std::process::id());
            std::env::temp_dir().join(name)
        });
        Ok(serve::Options {
            listen: self.listen,
            kubeconfig,
            data_dir: self.data_dir,
            definitions: self.definitions,
            watch_caches,
            seed_objects: self.seed_objects,
            churn: self.churn,
            faults: self.fault,
            controllers: self.controllers.unwrap_or_default().0,
            collects_garbage: self.enable_garbage_collector,
            authorization: self.authorization,
        })
    }

    fn watch_caches(&self) -> Result<WatchCaches, String> {
        let sizes = &self.watch_cache_sizes;
        if let Some(resource) = twice(sizes.iter().map(|size| size.resource.clone())) {
            return Err(format!(
                "--watch-cache-sizes has {resource} twice; set one size per resource"
            ));
        }
        let default = match (self.watch_cache, self.default_watch_cache_size) {
            (true, None) => WatchCache::Adaptive,
            (true, Some(events)) => WatchCache::Size(events),
            (false, None) if sizes.is_empty() => WatchCache::Off,
            (false, _) => {
                return Err(
                    "--watch-cache=false disables the caches, so they have no size; omit it, or omit --default-watch-cache-size and --watch-cache-sizes"
                        .to_owned(),
                );
            }
        };
        Ok(WatchCaches {
            default,
            sizes: sizes.clone(),
        })
    }
}

/// Returns the first name that equals an earlier one in `names`, if any.
fn twice(names: impl IntoIterator<Item = String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(name.clone()))
}

/// Converts an error of clap to the result of parsing the command line.
///
/// An error message is joined into one line, without clap's usage text.
fn refuse(error: &clap::Error) -> Asked {
    let asked_for = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    let text = error.to_string();
    if asked_for.contains(&error.kind()) {
        return if error.use_stderr() {
            Asked::Wrongly("no command; add demo or serve (see --help)".to_owned())
        } else {
            Asked::Help(text)
        };
    }
    let first: Vec<_> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    let what = first.join(" ");
    let what = what.strip_prefix("error: ").unwrap_or(&what);
    Asked::Wrongly(format!("{what} (see --help)"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "expected an IP address and a port, such as 127.0.0.1:8001".to_owned())
}

fn quantity(text: &str) -> Result<String, NotAQuantity> {
    thousandths(text).map(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
