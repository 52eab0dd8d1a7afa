//! `cargo xtask bench`: our informer and its peers beside the neutral source, one after the other, round
//! for round.
//!
//! Guarantees: every program is built in release and measured by itself, against a source of its own that
//! has just begun; programs alternate (ABC ABC …), so that what the machine does meanwhile befalls all;
//! what is shown is the median of the rounds, with the least and the most beside it.

mod output;
mod machine;
mod plan;
mod samples;
mod options;
mod case;
mod child;
mod goal;
mod table;
mod plot;
mod document;
mod summary;
mod real;

use std::{path::Path, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

use self::{
    case::Case,
    child::{Chunks, Programs, root},
    document::Document,
    options::Common,
    output::say,
    plan::{Plan, Topic},
    samples::Samples,
};

/// What may be asked for.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Compares the informer with its peers",
    args_conflicts_with_subcommands = true
)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// How often each program is measured
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Pods in the source
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    pods: u32,
    /// Only this; may be given several times
    #[arg(long, value_enum, value_name = "TOPIC")]
    only: Vec<Topic>,
    /// Where the chunks of the source's lists and watches end; BENCHMARKING.md is written only with those of
    /// a server
    #[arg(long, value_enum, default_value_t = Chunks::Server)]
    chunks: Chunks,
    /// One round with 2,000 pods, under two minutes once built; writes nothing
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measures what a first list and events cost a real kube-apiserver (needs Go)
    Real(real::Options),
}

fn main() -> ExitCode {
    let options = Options::parse();
    let done = match &options.command {
        Some(Command::Real(options)) => real::run(options),
        None => run(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let root = root()?;
    let mut plan = Plan::full(options.rounds, options.pods);
    if options.quick {
        plan = Plan::quick();
    }
    if !options.only.is_empty() {
        plan.topics.clone_from(&options.only);
    }
    let programs = Programs::of(root, options.chunks);
    if options.common.builds() {
        programs.build(&["--workspace"])?;
    }
    let settings = machine::settings(&programs.versions()?)?;
    say(&settings)?;
    let samples = if let Some(samples) = options.common.logged()? {
        samples
    } else {
        let wanted = |case: &Case| case.name.contains(&options.common.program);
        measure(&plan, &programs, wanted)?
    };
    let mut document = Document::read(root.join("BENCHMARKING.md"))?;
    let mut readme = Document::read(root.join("README.md"))?;
    document.set("settings", &settings);
    for (name, text) in table::sections(&plan, &samples) {
        say(&format!("\n## {name}\n\n{text}"))?;
        document.set(&name, &text);
    }
    let is_part = !options.common.program.is_empty() || options.chunks != Chunks::Server;
    if options.quick || is_part {
        return Ok(());
    }
    if plan.topics.contains(&Topic::Scale) {
        let pictures = root.join("docs").join("benchmarks");
        draw(&pictures, &samples)?;
    }
    summary::set(&mut document, &mut readme);
    document.write()?;
    readme.write()
}

/// Each case once a round.
fn measure(plan: &Plan, programs: &Programs, wanted: impl Fn(&Case) -> bool) -> Result<Samples> {
    let mut samples = Samples::default();
    let cases: Vec<_> = case::cases(plan).into_iter().filter(wanted).collect();
    for round in 1..=plan.rounds {
        for case in cases.iter().filter(|case| round <= case.rounds) {
            if !case.has_room(&samples, machine::available_kib()?) {
                eprintln!("{}: left out, for there is not so much memory", case.name);
                continue;
            }
            eprintln!("round {round} of {}: {}", plan.rounds, case.name);
            let line = programs.run(case).with_context(|| case.name.clone())?;
            eprintln!("  {line}");
            samples.add(&case.name, &line)?;
        }
    }
    Ok(samples)
}

/// The plots of the topic `scale`.
fn draw(folder: &Path, samples: &Samples) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    for picture in &plot::PICTURES {
        picture.draw(folder, samples)?;
    }
    Ok(())
}
