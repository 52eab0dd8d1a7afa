//! Collects the errors of values that don't have their types.

use std::fmt;

/// Maximum number of errors of one value that are collected. Kubernetes has no such limit.
pub(crate) const ERRORS_MAX: usize = 100;

/// Total length in bytes after which no more errors are collected.
const ERRORS_BYTES_MAX: usize = 1 << 20;

/// The errors of one value.
#[derive(Debug, Default)]
pub(super) struct Errors {
    found: Vec<FoundError>,
    /// Total length in bytes of what was found.
    bytes: usize,
}

#[derive(Debug)]
struct FoundError {
    path: String,
    message: String,
}

/// The name of a member as a step of a path.
pub(super) struct Name<'a>(pub(super) &'a str);

impl Errors {
    /// Runs `go`, whose errors are below the visited value.
    pub(super) fn at<T>(
        &mut self,
        step: &dyn fmt::Display,
        go: impl FnOnce(&mut Errors) -> T,
    ) -> T {
        let first = self.found.len();
        let done = go(self);
        if self.found.len() > first {
            let step = step.to_string();
            for error in &mut self.found[first..] {
                error.path.insert_str(0, &step);
                self.bytes += step.len();
            }
        }
        done
    }

    /// Adds an error of the visited value.
    pub(super) fn push(&mut self, message: impl Into<String>) {
        if self.found.len() < ERRORS_MAX && self.bytes < ERRORS_BYTES_MAX {
            let message = message.into();
            self.bytes += message.len();
            self.found.push(FoundError {
                path: String::new(),
                message,
            });
        }
    }

    /// Returns the errors as one message, as an error.
    pub(super) fn into_result(self) -> Result<(), String> {
        let texts: Vec<String> = self.found.iter().map(ToString::to_string).collect();
        match texts.as_slice() {
            [] => Ok(()),
            [error] => Err(error.clone()),
            _ => Err(format!("errors:\n  {}", texts.join("\n  "))),
        }
    }
}

impl fmt::Display for FoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{}", self.0)
    }
}
