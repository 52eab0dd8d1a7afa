//! The texts of rules and messages in errors.

use super::super::structural::Rule;

/// Maximum length of the result of a message expression in bytes, as in Kubernetes.
const MAX_BYTES: usize = 5 * 1024;

/// Returns the result of a message expression, unless it is empty, too long or has several lines.
pub(super) fn usable(text: &str) -> Option<String> {
    let trimmed = text.trim();
    let is_usable = !trimmed.is_empty() && trimmed.len() <= MAX_BYTES && !trimmed.contains('\n');
    is_usable.then(|| trimmed.to_owned())
}

impl Rule {
    /// Returns the text that stands for the rule in errors of its evaluation.
    pub(super) fn error_text(&self) -> &str {
        if self.message.is_empty() {
            self.source.trim()
        } else {
            self.message.trim()
        }
    }

    pub(super) fn message_or_default(&self) -> String {
        if self.message.is_empty() {
            format!("failed rule: {}", self.error_text())
        } else {
            self.message.trim().to_owned()
        }
    }
}
