//! A command to which kube-apiserver and the embedded server have responded differently.

use crate::{
    answer::{Answer, Response},
    compare,
};

#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) script: String,
    /// The answers of kube-apiserver and of the embedded server.
    pub(super) answers: [Answer; 2],
    /// The texts of `answers`.
    pub(super) texts: [String; 2],
}

impl Difference {
    /// Creates a difference from the command `script` and its two answers.
    #[cfg(test)]
    pub(super) fn new(script: &str, real: &Answer, embedded: &Answer) -> Self {
        let text = |answer: &Answer| crate::trace::texts(std::slice::from_ref(answer)).concat();
        Self {
            script: format!("{script}\n"),
            texts: [text(real), text(embedded)],
            answers: [real.clone(), embedded.clone()],
        }
    }

    /// Returns the first line of the command.
    pub(super) fn command(&self) -> &str {
        let command = self.script.lines().find(|line| line.starts_with("> "));
        command.unwrap_or_default()
    }

    /// Returns whether the command is a request with this method.
    pub(super) fn is(&self, method: &str) -> bool {
        self.command().split(' ').nth(1) == Some(method)
    }

    /// Returns both answers, if they are responses.
    pub(super) fn responses(&self) -> Option<(&Response, &Response)> {
        let [real, embedded] = &self.answers;
        Some((real.response()?, embedded.response()?))
    }

    /// Returns the text of the command, and the different lines of the answers.
    ///
    /// A line of kube-apiserver starts with `-`, and a line of the embedded server with `+`.
    pub(super) fn report(&self) -> String {
        let [real, embedded] = &self.texts;
        compare::report(&self.script, real, embedded)
    }

    /// Returns the lines that only kube-apiserver sent, and those that only the embedded server sent.
    pub(super) fn lines(&self) -> (Vec<String>, Vec<String>) {
        let [real, embedded] = &self.texts;
        let report = compare::report("", real, embedded);
        let only = |mark| {
            let lines = report.lines().filter_map(|line| line.strip_prefix(mark));
            lines.map(|line| line.trim().to_owned()).collect()
        };
        (only('-'), only('+'))
    }
}
