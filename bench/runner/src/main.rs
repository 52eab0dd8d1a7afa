//! Runs `cargo xtask bench`, which compares the informer of this project with client-go and kube-rs.
//!
//! All measured programs read from the source, a server of generated objects.
//!
//! Guarantees: each program is a release build, and runs alone with a newly started source. A figure is the
//! median of the rounds, followed by the minimum and the maximum.
//!
//! `cargo xtask bench real` measures the CPU time and memory of an API server.

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

/// Command-line options of `cargo xtask bench`.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Compares the informer with its peers",
    args_conflicts_with_subcommands = true
)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Number of rounds; each round measures each program once
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Number of pods in the source, the server of generated objects
    #[arg(long, default_value_t = 50_000, value_name = "N")]
    pods: u32,
    /// Measure only this topic; may be repeated for several topics
    #[arg(long, value_enum, value_name = "TOPIC")]
    only: Vec<Topic>,
    /// Rule by which the source splits responses into chunks; with a rule other than `server`, write no
    /// results
    #[arg(long, value_enum, default_value_t = Chunks::Server)]
    chunks: Chunks,
    /// Run one round with 2,000 pods, in less than two minutes, and write no results
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the CPU time and memory that a real kube-apiserver uses for lists and watches (needs Go)
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

/// Runs the cases of `plan` for which `wanted` returns true.
fn measure(plan: &Plan, programs: &Programs, wanted: impl Fn(&Case) -> bool) -> Result<Samples> {
    let mut samples = Samples::default();
    let cases: Vec<_> = case::cases(plan).into_iter().filter(wanted).collect();
    for round in 1..=plan.rounds {
        for case in cases.iter().filter(|case| round <= case.rounds) {
            if !case.has_room(&samples, machine::available_kib()?) {
                eprintln!("{}: skipped, not enough memory", case.name);
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

/// Writes SVG plots into `folder`, which show time and memory against the number of objects.
fn draw(folder: &Path, samples: &Samples) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("can't create {}", folder.display()))?;
    for picture in &plot::PICTURES {
        picture.draw(folder, samples)?;
    }
    Ok(())
}
