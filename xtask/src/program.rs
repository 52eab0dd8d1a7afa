//! Adds subcommands to `cargo xtask` that build and run the separate programs of this project.
//!
//! All options after such a subcommand are passed to the program unchanged. Each program is a separate
//! package. The `xtask` package therefore does not depend on the library or the server.

use std::{
    path::Path,
    process::{Command as Process, ExitCode},
};

use anyhow::{Context as _, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};

/// A separate program that `cargo xtask` builds and runs as a subcommand.
pub(crate) struct Program {
    name: &'static str,
    /// Parent subcommand, such as `conformance`, if any.
    group: Option<&'static Group>,
    about: &'static str,
    /// Folder of the Cargo workspace, relative to the repository root; empty for the root.
    workspace: &'static str,
    package: &'static str,
    profile: &'static str,
    /// Subcommand of the program, if it has several.
    subcommand: Option<&'static str>,
}

/// A parent subcommand of `cargo xtask`, such as `conformance` in `cargo xtask conformance oracle`.
struct Group {
    name: &'static str,
    about: &'static str,
}

const CONFORMANCE: Group = Group {
    name: "conformance",
    about: "Compare the library and the embedded server with the originals",
};

/// All programs that `cargo xtask` can run, in the order of the help output.
const PROGRAMS: [Program; 9] = [
    Program {
        name: "simulate",
        group: None,
        about: "Run informers under random changes and faults, and check that they reach the correct state",
        workspace: "",
        package: "kube-informer-simulation",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "crash",
        group: None,
        about: "Kill a server with a data directory during writes, and check the remaining data",
        workspace: "",
        package: "kube-informer-crash",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "soak",
        group: None,
        about: "Run informers against a real kube-apiserver and etcd that fail (needs Go)",
        workspace: "",
        package: "kube-informer-soak",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "bench",
        group: None,
        about: "Measure the informer and its peers, and write BENCHMARKING.md (needs Go)",
        workspace: "bench",
        package: "runner",
        profile: "release",
        subcommand: None,
    },
    Program {
        name: "apiserver",
        group: None,
        about: "Build and run a real kube-apiserver and etcd until Ctrl-C (needs Go)",
        workspace: "",
        package: "kube-informer-realserver",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "fuzz",
        group: None,
        about: "Run the fuzz targets on their corpus and on mutations of it",
        workspace: "",
        package: "kube-informer-fuzz",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "oracle",
        group: Some(&CONFORMANCE),
        about: "Run the same random sequences of operations in client-go and the library (needs Go)",
        workspace: "",
        package: "kube-informer-differential",
        profile: "dev",
        subcommand: None,
    },
    Program {
        name: "cases",
        group: Some(&CONFORMANCE),
        about: "Run API cases on the embedded server or a real kube-apiserver, and compare the responses",
        workspace: "",
        package: "kube-informer-cases",
        profile: "dev",
        subcommand: Some("cases"),
    },
    Program {
        name: "requests",
        group: Some(&CONFORMANCE),
        about: "Run random API requests on the embedded server and a real kube-apiserver, and compare the responses (needs Go)",
        workspace: "",
        package: "kube-informer-cases",
        profile: "dev",
        subcommand: Some("requests"),
    },
];

/// Adds a subcommand for each program in [`PROGRAMS`] to the command `xtask`.
pub(crate) fn add_to(xtask: Command) -> Command {
    PROGRAMS.iter().fold(xtask, |xtask, program| {
        let command = program.command();
        let Some(group) = program.group else {
            return xtask.subcommand(command);
        };
        if xtask.find_subcommand(group.name).is_some() {
            return xtask.mut_subcommand(group.name, |group| group.subcommand(command));
        }
        let group = Command::new(group.name).about(group.about);
        let group = group.subcommand_required(true).arg_required_else_help(true);
        xtask.subcommand(group.subcommand(command))
    })
}

/// Returns the program that the command line of `xtask` names, and the options after its subcommand.
pub(crate) fn typed(xtask: &ArgMatches) -> Option<(&'static Program, Vec<String>)> {
    PROGRAMS.iter().find_map(|program| {
        let inside = match program.group {
            Some(group) => xtask.subcommand_matches(group.name)?,
            None => xtask,
        };
        let options = inside.subcommand_matches(program.name)?;
        let options = options.get_many(OPTIONS).unwrap_or_default();
        Some((program, options.cloned().collect()))
    })
}

const OPTIONS: &str = "options";

impl Program {
    fn command(&self) -> Command {
        let options = Arg::new(OPTIONS)
            .value_name("OPTIONS")
            .help("Options of the program; --help lists them")
            .action(ArgAction::Append)
            .num_args(1..)
            .trailing_var_arg(true)
            .allow_hyphen_values(true);
        Command::new(self.name)
            .about(self.about)
            .disable_help_flag(true)
            .arg(options)
    }

    /// Builds the program with Cargo, and runs it with `options`.
    ///
    /// # Errors
    /// Returns an error if Cargo can't be started.
    pub(crate) fn run(&self, root: &Path, options: &[String]) -> Result<ExitCode> {
        let status = Process::new(env!("CARGO"))
            .current_dir(root.join(self.workspace))
            .args(["run", "--quiet", "--profile", self.profile])
            .args(["--package", self.package, "--"])
            .args(self.subcommand)
            .args(options)
            .status()
            .context("cargo can't be run")?;
        Ok(if status.success() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Option<(&'static str, Vec<String>)> {
        let xtask = add_to(Command::new("xtask")).try_get_matches_from(line);
        typed(&xtask.unwrap()).map(|(program, options)| (program.package, options))
    }

    #[test]
    fn all_options_after_a_program_are_passed_to_it() {
        let line = ["xtask", "simulate", "--seeds", "1..3", "--help"];
        let options = ["--seeds", "1..3", "--help"].map(str::to_owned);
        assert_eq!(
            parsed(&line),
            Some(("kube-informer-simulation", options.to_vec()))
        );
        assert_eq!(
            parsed(&["xtask", "conformance", "oracle", "--fixed"]),
            Some(("kube-informer-differential", vec!["--fixed".to_owned()]))
        );
        assert_eq!(
            parsed(&["xtask", "conformance", "cases"]),
            Some(("kube-informer-cases", Vec::new()))
        );
        assert_eq!(parsed(&["xtask", "bench"]), Some(("runner", Vec::new())));
        assert_eq!(parsed(&["xtask"]), None);
    }
}
