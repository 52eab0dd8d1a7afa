//! Runs a program on both servers, and finds the first command with different responses.

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
        let statuses = statuses(&case, &real);
        let texts = trace::texts(&real).into_iter().zip(trace::texts(&embedded));
        let (mut known, mut difference) = (Vec::new(), None);
        for (step, (real, embedded)) in case.steps.iter().zip(texts) {
            if real == embedded {
                continue;
            }
            let script = step.script().to_owned();
            let found = Difference {
                script,
                real,
                embedded,
            };
            let Some(name) = known::name(&found) else {
                difference = Some(found);
                break;
            };
            known.push(name);
            if !known::is_harmless(&found) {
                break;
            }
        }
        Ok(Outcome {
            case,
            statuses,
            known,
            difference,
        })
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
