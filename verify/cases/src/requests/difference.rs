//! A command to which kube-apiserver and the embedded server have responded differently.

use crate::compare;

#[derive(Clone, Debug)]
pub(super) struct Difference {
    pub(super) script: String,
    /// The texts of the answers of kube-apiserver and of the embedded server.
    pub(super) texts: [String; 2],
}

impl Difference {
    /// Returns the text of the command, and the different lines of the answers.
    ///
    /// A line of kube-apiserver starts with `-`, and a line of the embedded server with `+`.
    pub(super) fn report(&self) -> String {
        let [real, embedded] = &self.texts;
        compare::report(&self.script, real, embedded)
    }
}
