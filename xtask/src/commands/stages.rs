//! Reads the commands in the stages of the CI script `.ci/run`.
//!
//! A stage runs a command if a line of the stage equals the command. The prefix [`LIMITED`] of a line is
//! ignored. A line with additional options or variables is a different command.

use super::shell;

/// Prefix in the CI script that limits the duration of the command after it.
const LIMITED: &str = "timeout --kill-after=5 \"$RUN_MAX\" ";

/// The commands of all CI stages, in the order of the CI script.
pub(super) struct Stages {
    commands: Vec<(Stage, String)>,
}

/// A stage of the CI script, with its name and its [`Tier`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stage {
    name: String,
    tier: Tier,
}

/// Selects the CI runs that include a stage: every run, or only full runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    EveryChange,
    /// Only CI runs that are started with the argument `full`.
    Full,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = match self.tier {
            Tier::EveryChange => "",
            Tier::Full => " of full",
        };
        write!(f, "stage {}{when}", self.name)
    }
}

impl Stages {
    /// Parses the CI script.
    ///
    /// A stage is a function `stage_NAME` whose `NAME` is in the list `STAGES` or `FULL_STAGES`. Other
    /// functions are ignored.
    pub(super) fn parse(script: &str) -> Stages {
        let mut lists = Vec::new();
        let mut commands = Vec::new();
        let mut inside = None;
        for (_, line) in shell::commands(script.lines().enumerate()) {
            let list = |name: &str| line.strip_prefix(name)?.strip_suffix(')');
            if let Some(names) = list("STAGES=(") {
                lists.push((Tier::EveryChange, names.to_owned()));
            } else if let Some(names) = list("FULL_STAGES=(") {
                lists.push((Tier::Full, names.to_owned()));
            } else if let Some(function) = line.strip_suffix("() {") {
                inside = function.strip_prefix("stage_").map(str::to_owned);
            } else if line == "}" {
                inside = None;
            } else if let Some(name) = &inside {
                commands.push((name.clone(), line));
            }
        }
        let staged = commands.into_iter().filter_map(|(name, line)| {
            let listed = |(_, names): &&(Tier, String)| names.split(' ').any(|it| it == name);
            let tier = lists.iter().find(listed)?.0;
            Some((Stage { name, tier }, line))
        });
        Stages {
            commands: staged.collect(),
        }
    }

    /// Returns the first stage that runs a command.
    pub(super) fn running(&self, command: &str) -> Option<&Stage> {
        let runs = |line: &str| {
            line == command || line.strip_prefix(LIMITED).is_some_and(|it| it == command)
        };
        let (stage, _) = self.commands.iter().find(|(_, line)| runs(line))?;
        Some(stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "STAGES=(test demo)\nFULL_STAGES=(seeds)\n\
        stage_test() {\n    cargo test --workspace # all\n}\n\
        stage_demo() {\n    timeout --kill-after=5 \"$RUN_MAX\" \\\n        cargo run -- demo\n    if x; then\n        y\n    fi\n}\n\
        stage_seeds() {\n    cargo xtask simulate\n}\n\
        stage_forgotten() {\n    cargo fmt\n}\n\
        other() {\n    cargo doc\n}\n";

    fn stage(command: &str) -> Option<String> {
        Stages::parse(SCRIPT).running(command).map(Stage::to_string)
    }

    #[test]
    fn a_stage_runs_a_command_alone_or_within_a_limit() {
        assert_eq!(
            stage("cargo test --workspace").as_deref(),
            Some("stage test")
        );
        assert_eq!(stage("cargo run -- demo").as_deref(), Some("stage demo"));
        assert_eq!(
            stage("cargo xtask simulate").as_deref(),
            Some("stage seeds of full")
        );
    }

    #[test]
    fn no_stage_runs_a_part_of_a_command_or_what_no_tier_lists() {
        for command in ["cargo test", "demo", "cargo fmt", "cargo doc"] {
            assert_eq!(stage(command), None);
        }
    }
}
