//! Runs the developer commands of this project, `cargo xtask …`: checks, generated tables and releases.
//!
//! The commands are for developers and CI. No published crate depends on the `xtask` crate.

mod mode;
mod program;
mod tree;
mod tidy;
mod api;
mod kinds;
mod release;
mod commands;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::mode::Mode;

/// Command-line arguments of `cargo xtask`.
///
/// The module [`program`] adds the subcommands that run a separate program.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check the rules that neither the compiler nor clippy checks, such as file lengths and dead links
    Tidy,
    /// Write the public API of each published library to its `api.txt`
    Api {
        /// Write nothing, and fail with the differences if an `api.txt` is out of date
        #[arg(long)]
        check: bool,
    },
    /// Write the tables of kinds, messages and printer columns from the pinned Kubernetes modules (needs Go)
    Kinds {
        /// Write nothing, and fail if a table is out of date
        #[arg(long)]
        check: bool,
    },
    /// Build the packages, the archive, the SBOM and the notes of a release, without an upload
    Release {
        /// Only check that a release is possible, without building or writing files
        #[arg(long)]
        check: bool,
    },
    /// Run the commands in the Markdown files to check that they work, except commands that CI runs or that
    /// `exceptions.rs` excludes (needs bash, curl and kubectl)
    Commands {
        /// Run only the commands of these documents, for example `docs/server.md`
        documents: Vec<String>,
    },
}

fn main() -> ExitCode {
    match api::as_rustdoc().unwrap_or_else(run) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask is a folder of the workspace")?;
    let matches = program::add_to(Arguments::command()).get_matches();
    if let Some((program, options)) = program::typed(&matches) {
        return program.run(root, &options);
    }
    match Arguments::from_arg_matches(&matches)?.command {
        Task::Tidy => {
            let findings = tidy::check(root)?;
            for finding in &findings {
                say(&finding.to_string());
            }
            Ok(if findings.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
        Task::Api { check } => {
            say(&api::run(root, Mode::of(check))?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Kinds { check } => {
            say(&kinds::run(root, Mode::of(check))?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Release { check } => {
            say(&release::run(root, Mode::of(check))?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Commands { documents } => {
            commands::run(root, &documents, say)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a command prints its result to standard output"
)]
fn say(line: &str) {
    println!("{line}");
}
