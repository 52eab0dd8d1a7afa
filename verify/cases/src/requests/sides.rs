//! Runs a sequence of commands on kube-apiserver and on the embedded server, and finds the first command with
//! different responses.

use anyhow::{Context as _, Result};
use futures_util::future;

use super::{difference::Difference, draw::Program, known, planted::Bug};
use crate::{
    answer::{Answer, Content},
    case::Case,
    run,
    target::{Connection, Target},
    trace::{self, Owners},
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
    /// Names of the intentional differences in this run.
    pub(super) known: Vec<&'static str>,
    /// The first difference that is not intentional.
    pub(super) difference: Option<Difference>,
}

impl Sides {
    pub(super) async fn start() -> Result<Self> {
        Ok(Self {
            real: Target::Apiserver.start().await?,
            embedded: Target::Embedded.start().await?,
            bug: None,
        })
    }

    /// Runs `program` on both servers, in a new namespace. The namespace is named after `name`, which must be
    /// different in each call.
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
        let (mut real, mut embedded) = future::try_join(real, embedded).await?;
        if let Some(bug) = self.bug {
            bug.answer(&mut embedded);
        }
        let mut outcome = Outcome {
            statuses: statuses(&case, &real),
            case,
            known: known::settle(&mut real),
            difference: None,
        };
        known::settle(&mut embedded);
        if texts(&real) != texts(&embedded) {
            outcome.find(&real, &embedded);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Finds the first difference.
    ///
    /// Each revision is replaced by its rank among all compared revisions. A revision of only one server
    /// would change the ranks in earlier answers. Therefore, the method compares the answers to the first
    /// command, then those to the first two commands, and so on.
    fn find(&mut self, real: &[Answer], embedded: &[Answer]) {
        for end in 1..=self.case.steps.len() {
            let pairs = texts(&real[..end]).into_iter().zip(texts(&embedded[..end]));
            let mut pairs = pairs.enumerate();
            // The last one is the cause, if it differs.
            let Some((at, (one, other))) = pairs.rfind(|(_, (one, other))| one != other) else {
                continue;
            };
            let found = Difference {
                script: self.case.steps[at].script().to_owned(),
                texts: [one, other],
            };
            self.difference = Some(found);
            return;
        }
    }
}

fn texts(answers: &[Answer]) -> Vec<String> {
    trace::texts(answers, Owners::Shown)
}

fn statuses(case: &Case, answers: &[Answer]) -> Vec<(String, u16)> {
    let pairs = case.steps.iter().zip(answers);
    let statuses = pairs.filter_map(|(step, answer)| {
        let response = answer.response()?;
        let method = match &response.body {
            Content::Stream => "WATCH",
            Content::Json(_) | Content::Other(_) => step.command.method()?,
        };
        Some((method.to_owned(), response.status))
    });
    statuses.collect()
}
