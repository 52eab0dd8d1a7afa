//! Reports unknown fields and duplicate members of request bodies.
//!
//! A complaint is the message about one unknown field or duplicate member. The query parameter
//! `fieldValidation` selects how the module reports complaints.
//!
//! Guarantees:
//! - complaints have Kubernetes' wording. As in Kubernetes, their number is limited;
//! - `Strict` returns the complaints as one error, `Warn` (the default) sends them as warnings, and `Ignore`
//!   drops them.

mod warnings;

use std::collections::BTreeSet;
use std::fmt;

use crate::quote::Quoted;
use crate::status::ApiError;

pub(crate) use warnings::Warnings;

/// Maximum number of complaints about a request body, as in `sigs.k8s.io/json` (`saveStrictError`).
const COMPLAINTS_MAX: usize = 100;

/// Start of the message about repeated keys of a YAML text, before a line for each.
pub(crate) const YAML_ERRORS: &str = "yaml: unmarshal errors:\n";

/// Maximum length in bytes of a field's path in a message about the field; longer paths are truncated.
const PATH_SHOWN_MAX: usize = 4 * 1024;

/// Value of the query parameter `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    Ignore,
    Warn,
    Strict,
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wrong {
    Unknown,
    Duplicate,
    /// The complaint is a message about a YAML text.
    Yaml,
}

/// The unknown and duplicate fields of a request body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Complaints {
    ordered: Vec<Complaint>,
    /// What [`Complaints::add`] has added.
    seen: BTreeSet<Complaint>,
}

/// A field that is unknown or a duplicate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Complaint {
    wrong: Wrong,
    /// What the field is part of, such as `json patch `. Empty for a field of an object.
    of: &'static str,
    /// The path of the field, or the message about a YAML text.
    path: String,
}

// === impl Directive ===

impl Directive {
    /// Parses the query parameter `fieldValidation`; the default is [`Directive::Warn`].
    pub(crate) fn of(text: Option<&str>) -> Directive {
        match text {
            Some("Ignore") => Directive::Ignore,
            Some("Strict") => Directive::Strict,
            _ => Directive::Warn,
        }
    }

    /// Ignores the complaints (`Ignore`), adds them to `warnings` (`Warn`), or rejects the request
    /// (`Strict`).
    ///
    /// # Errors
    ///
    /// `Strict` returns a 400 error that contains all complaints, if there are any.
    pub(crate) fn judge(
        self,
        complaints: &Complaints,
        warnings: &Warnings,
    ) -> Result<(), ApiError> {
        match self {
            _ if complaints.ordered.is_empty() => Ok(()),
            Directive::Ignore => Ok(()),
            Directive::Strict => Err(ApiError::bad_request(format!(
                "strict decoding error: {}",
                complaints.texts().collect::<Vec<_>>().join(", ")
            ))),
            Directive::Warn => {
                for text in complaints.texts() {
                    // As Kubernetes' `parseYAMLWarnings`: each repeated key of a YAML text is a warning.
                    match text.strip_prefix(YAML_ERRORS) {
                        Some(lines) => lines
                            .lines()
                            .for_each(|line| warnings.add(line.trim().to_owned())),
                        None => warnings.add(text),
                    }
                }
                Ok(())
            }
        }
    }
}

// === impl Complaints ===

impl Complaints {
    /// Returns the messages of Kubernetes.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.ordered.iter().map(Complaint::to_string)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// Adds a complaint about the field with this path.
    pub(crate) fn add(&mut self, wrong: Wrong, path: &str) {
        if self.ordered.len() >= COMPLAINTS_MAX {
            return;
        }
        let complaint = Complaint {
            wrong,
            of: "",
            path: cut(path),
        };
        if self.seen.insert(complaint.clone()) {
            self.ordered.push(complaint);
        }
    }

    /// Adds the message about the repeated keys of a YAML text before all other complaints.
    pub(crate) fn add_first(&mut self, message: String) {
        let complaint = Complaint {
            wrong: Wrong::Yaml,
            of: "",
            path: message,
        };
        self.ordered.insert(0, complaint);
    }

    /// Adds a complaint about each unknown field, given by its path.
    pub(crate) fn add_unknown(&mut self, paths: &[String]) {
        for path in paths {
            self.add(Wrong::Unknown, path);
        }
    }

    /// Returns the paths of the unknown fields.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = &str> {
        let unknown = self
            .ordered
            .iter()
            .filter(|one| one.wrong == Wrong::Unknown);
        unknown.map(|one| one.path.as_str())
    }

    /// Appends the complaints in `found` that `old` does not contain, and returns the result.
    pub(crate) fn and_new(mut self, found: Complaints, old: &Complaints) -> Complaints {
        let new = found
            .ordered
            .into_iter()
            .filter(|one| !old.ordered.contains(one));
        self.ordered.extend(new);
        self
    }

    /// Returns the complaints as those about a JSON patch.
    pub(crate) fn of_json_patch(mut self) -> Complaints {
        for complaint in &mut self.ordered {
            complaint.of = "json patch ";
        }
        self
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = match self.wrong {
            Wrong::Unknown => "unknown",
            Wrong::Duplicate => "duplicate",
            Wrong::Yaml => return f.write_str(&self.path),
        };
        write!(f, "{}{wrong} field {}", self.of, Quoted(&self.path))
    }
}

/// Returns the start of a path, as it is in messages.
fn cut(path: &str) -> String {
    let mut shown = path.len().min(PATH_SHOWN_MAX);
    while !path.is_char_boundary(shown) {
        shown -= 1;
    }
    let (path, rest) = path.split_at(shown);
    let dots = if rest.is_empty() { "" } else { "..." };
    format!("{path}{dots}")
}
