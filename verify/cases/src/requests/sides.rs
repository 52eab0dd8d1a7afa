//! Runs a program on both servers, and finds the first command with different responses.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use futures_util::future;

use super::{draw::Program, known, planted::Bug};
use crate::{
    answer::{Answer, Content},
    case::Case,
    compare, run,
    target::{Connection, Target},
    trace,
};

/// The servers that run the programs.
pub(super) struct Sides {
    pub(super) real: Connection,
    pub(super) embedded: Connection,
    /// Defect of the embedded server.
    pub(super) bug: Option<Bug>,
}

/// What both servers responded.
pub(super) struct Outcome {
    pub(super) case: Case,
    /// Method and status of each response of kube-apiserver.
    pub(super) statuses: Vec<(String, u16)>,
    /// Names of the intentional differences. Nothing after one that may have changed an object is compared.
    pub(super) known: Vec<&'static str>,
    /// The first difference that is not intentional.
    pub(super) difference: Option<Difference>,
}

/// A command with different responses.
#[derive(Clone, Debug)]
pub(super) struct Difference {
    /// The command, as text.
    pub(super) script: String,
    pub(super) real: String,
    pub(super) embedded: String,
}

impl Difference {
    /// Returns the command, and the lines that only one of the servers sent: those of kube-apiserver with `-`.
    pub(super) fn report(&self) -> String {
        compare::report(&self.script, &self.real, &self.embedded)
    }
}

impl Sides {
    /// Starts both servers.
    pub(super) async fn start() -> Result<Self> {
        Ok(Self {
            real: Target::Apiserver.start().await?,
            embedded: Target::Embedded.start().await?,
            bug: None,
        })
    }

    /// Runs `program` on both servers. `name` must be new: it is the name of the namespace.
    ///
    /// # Errors
    /// Returns an error if a command can't be sent, or if a response breaks off.
    pub(super) async fn run(&self, name: &str, program: &Program) -> Result<Outcome> {
        let case = Case::parse(name, &program.text(name))?;
        let mut changed = case.clone();
        if let Some(bug) = self.bug {
            bug.change(&mut changed);
        }
        let real = async { run::run(&case, &self.real).await.context("kube-apiserver") };
        let embedded = async {
            run::run(&changed, &self.embedded)
                .await
                .context("embedded server")
        };
        let (real, mut embedded) = future::try_join(real, embedded).await?;
        if let Some(bug) = self.bug {
            bug.answer(&mut embedded);
        }
        let mut outcome = Outcome {
            statuses: statuses(&case, &real),
            case,
            known: Vec::new(),
            difference: None,
        };
        if trace::texts(&real) != trace::texts(&embedded) {
            outcome.find(&real, &embedded);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Finds the first command whose answers differ.
    ///
    /// A revision that only one server sends changes the ranks in earlier answers too. So the first answers
    /// are compared without the later ones.
    fn find(&mut self, real: &[Answer], embedded: &[Answer]) {
        let mut passed = BTreeSet::new();
        for end in 1..=self.case.steps.len() {
            let texts = trace::texts(&real[..end])
                .into_iter()
                .zip(trace::texts(&embedded[..end]));
            let different = texts
                .enumerate()
                .filter(|(at, (real, embedded))| real != embedded && !passed.contains(at));
            // The last one is the cause, if it differs.
            let Some((at, (real, embedded))) = different.last() else {
                continue;
            };
            let script = self.case.steps[at].script().to_owned();
            let found = Difference {
                script,
                real,
                embedded,
            };
            let Some(name) = known::name(&found) else {
                self.difference = Some(found);
                return;
            };
            self.known.push(name);
            if !known::is_harmless(&found) {
                return;
            }
            passed.insert(at);
        }
    }
}

fn statuses(case: &Case, answers: &[Answer]) -> Vec<(String, u16)> {
    let pairs = case.steps.iter().zip(answers);
    let statuses = pairs.filter_map(|(step, answer)| match answer {
        Answer::Response(response) | Answer::Prepared(response) => {
            let method = match &response.body {
                Content::Stream => "WATCH",
                _ => step.command.method()?,
            };
            Some((method.to_owned(), response.status))
        }
        _ => None,
    });
    statuses.collect()
}
