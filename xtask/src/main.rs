//! The project's own commands, `cargo xtask …`: checks that no other tool makes, and tables that are written by a program.
//!
//! Everything here is for people and CI working on the project; no published crate links it.

mod bench;
mod conformance;
mod crash;
mod fuzz;
mod kinds;
mod simulate;
mod tidy;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};

/// What may be typed after `cargo xtask`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about)]
struct Arguments {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check what compiler and clippy don't: order of modules, sizes, names, docs that point somewhere
    Tidy,
    /// Write the embedded server's table of kinds from the pinned Kubernetes module (needs Go)
    Kinds {
        /// Only compare, and fail if the table is out of date
        #[arg(long)]
        check: bool,
    },
    /// Let informers live through drawn changes and faults, and check that all comes right
    #[command(disable_help_flag = true)]
    Simulate {
        /// --help tells them
        #[arg(
            value_name = "OPTIONS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        options: Vec<String>,
    },
    /// Kill a server with a data directory under writes, and look what is left
    #[command(disable_help_flag = true)]
    Crash {
        /// --help tells them
        #[arg(
            value_name = "OPTIONS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        options: Vec<String>,
    },
    /// Measure the informer and its peers side by side, and write BENCHMARKING.md (needs Go)
    #[command(disable_help_flag = true)]
    Bench {
        /// --help tells them
        #[arg(
            value_name = "OPTIONS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        options: Vec<String>,
    },
    /// Give the fuzz targets their corpus and mutations of it
    #[command(disable_help_flag = true)]
    Fuzz {
        /// --help tells them
        #[arg(
            value_name = "OPTIONS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        options: Vec<String>,
    },
    /// Compare with what others do
    Conformance {
        #[command(subcommand)]
        with: Conformance,
    },
}

#[derive(Debug, Subcommand)]
enum Conformance {
    /// Give client-go and the library the same drawn sequences of operations (needs Go)
    #[command(disable_help_flag = true)]
    Oracle {
        /// --help tells them
        #[arg(
            value_name = "OPTIONS",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        options: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .context("xtask stands in a folder of the workspace")?;
    match task {
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
        Task::Kinds { check } => {
            let mode = if *check {
                kinds::Mode::Check
            } else {
                kinds::Mode::Write
            };
            say(&kinds::run(root, mode)?);
            Ok(ExitCode::SUCCESS)
        }
        Task::Simulate { options } => simulate::run(root, options),
        Task::Crash { options } => crash::run(root, options),
        Task::Bench { options } => bench::run(root, options),
        Task::Fuzz { options } => fuzz::run(root, options),
        Task::Conformance {
            with: Conformance::Oracle { options },
        } => conformance::oracle(root, options),
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a command line's answer goes to standard output"
)]
fn say(line: &str) {
    println!("{line}");
}
