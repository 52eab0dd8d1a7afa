//! Runs the command `cargo xtask fuzz`: selects fuzz targets, runs them, and reports the results.

use std::{
    ffi::OsString,
    ops::ControlFlow,
    path::PathBuf,
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use harness::{
    planted::{Planted as _, Search, find_each},
    report::say,
    seeds::hash,
    threads::run_each,
};
use kube_informer_fuzz::{Bug, TARGETS, Target};
use tokio::time::Instant;

use crate::{
    corpus,
    smoke::{Effort, give, note_panics, smoke},
};

/// Default seed of the mutations.
const SEED: u64 = 1;

/// Maximum address space of a process that runs a target, in KiB.
const MEMORY_KIB: u64 = 2 << 20;

/// The arguments of the command line.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask fuzz",
    bin_name = "cargo xtask fuzz",
    about = "Run the fuzz targets on their corpus and on mutations of it"
)]
pub(crate) struct Arguments {
    /// Run only these targets; all by default
    targets: Vec<String>,
    /// Number of mutated inputs per target; the default takes a few seconds
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// The seed of the mutations
    #[arg(long, value_name = "S", default_value_t = SEED)]
    seed: u64,
    /// Also run mutations seeded by this text, for example by the commit's id
    #[arg(long, value_name = "TEXT")]
    fresh: Option<String>,
    /// Start no further mutated input of a target after this number of seconds, including the time for its
    /// corpus
    #[arg(long, value_name = "SECONDS")]
    time: Option<u64>,
    /// Run the named target only on this input, such as a saved failure
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Insert each deliberate bug in turn, and check that its fuzz target finds it; the only value is `all`
    #[arg(long, value_parser = ["all"])]
    planted: Option<String>,
    /// Run the named target in this process, without a memory limit
    #[arg(long, hide = true)]
    here: bool,
}

/// Replays one input, runs the selected targets, or checks that the targets find deliberately inserted bugs.
///
/// Returns true if no target failed, or if the targets found every inserted bug.
///
/// # Errors
/// Returns an error if a target does not exist, or if a file can't be read or written.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let targets = named(&arguments.targets)?;
    if let Some(path) = &arguments.input {
        return replay(&targets, path);
    }
    if arguments.planted.is_some() {
        return find_bugs();
    }
    if arguments.here {
        return here(&targets, arguments);
    }
    let mut good = apart(&targets, arguments, arguments.seed)?;
    if let Some(text) = &arguments.fresh {
        good &= apart(&targets, arguments, hash(text))?;
    }
    Ok(good)
}

fn named(names: &[String]) -> Result<Vec<&'static Target>> {
    if names.is_empty() {
        return Ok(TARGETS.iter().collect());
    }
    let find = |name: &String| {
        let found = TARGETS.iter().find(|target| target.name == name);
        let all = || {
            TARGETS
                .iter()
                .map(|target| target.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        found.with_context(|| format!("no target {name}; there are: {}", all()))
    };
    names.iter().map(find).collect()
}

/// Runs each target in a process with limited memory, and returns whether all passed.
fn apart(targets: &[&Target], arguments: &Arguments, seed: u64) -> Result<bool> {
    say(&format!("seed {seed}"));
    let mut outputs = Vec::new();
    let run = |target: &&Target| child(target, arguments, seed);
    run_each(targets, run, |target, output| {
        outputs.push((target.name, output));
        ControlFlow::Continue(())
    });
    outputs.sort_unstable_by_key(|(name, _)| *name);
    let mut good = true;
    for (name, output) in outputs {
        good &= tell(name, &output?)?;
    }
    Ok(good)
}

fn child(target: &Target, arguments: &Arguments, seed: u64) -> Result<Output> {
    let mut options: Vec<OsString> = vec![target.name.into(), "--here".into()];
    options.extend(["--seed".into(), seed.to_string().into()]);
    if let Some(runs) = arguments.runs {
        options.extend(["--runs".into(), runs.to_string().into()]);
    }
    if let Some(seconds) = arguments.time {
        options.extend(["--time".into(), seconds.to_string().into()]);
    }
    let program = std::env::current_exe().context("this program has no path")?;
    let mut command = if cfg!(unix) {
        let mut command = Command::new("sh");
        let bounded = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
        command.arg("-c").arg(bounded).arg(program);
        command
    } else {
        Command::new(program)
    };
    command
        .args(options)
        .output()
        .context("no process can be started")
}

/// Prints the output of the process of the target `name`. If the process died, also prints its last input.
///
/// Returns whether the process succeeded.
fn tell(name: &str, output: &Output) -> Result<bool> {
    for text in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(text);
        if !text.trim().is_empty() {
            say(text.trim_end());
        }
    }
    // A reported failure exits with 1. Out of memory, a stack overflow and a hanging input end with a
    // signal.
    if output.status.code().is_none_or(|code| code > 1) {
        let path = corpus::left_by(name)?.join("current");
        let input = std::fs::read(&path).unwrap_or_default();
        say(&format!(
            "{name}: FAILED, the process died ({})",
            output.status
        ));
        say(&format!("  input: b\"{}\"", input.escape_ascii()));
        say(&format!(
            "  replay: cargo xtask fuzz {name} --input {}",
            path.display()
        ));
    }
    Ok(output.status.success())
}

fn here(targets: &[&Target], arguments: &Arguments) -> Result<bool> {
    note_panics();
    let [target] = targets else {
        bail!("--here runs exactly one target");
    };
    let began = Instant::now();
    let effort = Effort {
        seed: arguments.seed,
        runs: arguments.runs.unwrap_or(target.runs),
        time: arguments.time.map(Duration::from_secs),
    };
    let tally = smoke(target, effort, None, true)?;
    let (name, seconds) = (target.name, began.elapsed().as_secs_f64());
    let Some(mut failure) = tally.failure else {
        say(&format!(
            "{name}: {} runs, {} corpus, {} new, {seconds:.1} s",
            tally.runs, tally.corpus, tally.new
        ));
        return Ok(true);
    };
    let path = failure.shorten(target, None)?;
    say(&format!(
        "{name}: FAILED at seed {}, {}",
        arguments.seed, failure.origin
    ));
    say(&failure.to_string());
    say(&format!("  replay: cargo xtask fuzz {name} --input {path}"));
    Ok(false)
}

fn replay(targets: &[&Target], path: &PathBuf) -> Result<bool> {
    note_panics();
    let [target] = targets else {
        bail!("--input needs the name of one target");
    };
    let input = std::fs::read(path).with_context(|| format!("{} can't be read", path.display()))?;
    match give(target, &input, None) {
        Ok(way) => say(&format!("{}: {way}", target.name)),
        Err((place, message)) => {
            say(&format!("{}: FAILED: {message}\n  at {place}", target.name));
            return Ok(false);
        }
    }
    Ok(true)
}

fn find_bugs() -> Result<bool> {
    note_panics();
    find_each(Bug::ALL.iter().copied(), |bug| {
        let target = TARGETS.iter().find(|target| target.name == bug.place());
        let target = target.context("a bug names the target that finds it")?;
        let effort = Effort {
            seed: SEED,
            runs: target.runs,
            time: None,
        };
        let Some(mut failure) = smoke(target, effort, Some(bug), false)?.failure else {
            let within = format!("{} runs", target.runs);
            return Ok(Search::Missed { within });
        };
        let by = failure.origin.clone();
        failure.shorten(target, Some(bug))?;
        let shown = failure.to_string();
        Ok(Search::Found { by, shown })
    })
}
