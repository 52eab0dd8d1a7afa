//! Defines [`Error`]: the reason why encoding or decoding failed, and the JSON path of
//! the failed field.

use std::{borrow::Cow, fmt};

use serde::de::{self, Expected, Unexpected};

use crate::wire::WireError;

/// An error of encoding or decoding an object.
///
/// The error text begins with the JSON path of the failed field, such as `spec.containers[1].name`. The text
/// contains no values of the object, unless [`Error::is_of_type`] returns true.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    /// The field's JSON path, innermost step first.
    path: Vec<Step>,
    reason: Reason,
    /// Whether the text of `reason` comes from the decoded type's `Deserialize` implementation
    /// ([`de::Error::custom`]). Such a text may contain a value of the object.
    is_of_type: bool,
}

/// One step of a JSON path.
#[derive(Debug)]
pub(crate) enum Step {
    Member(String),
    Item(usize),
    Key(String),
}

/// The reason without the path of the field.
#[derive(Debug)]
pub(crate) struct Reason(Cow<'static, str>);

impl Reason {
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }
}

impl From<WireError> for Reason {
    fn from(error: WireError) -> Self {
        Self::new(error.to_string())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error {
    /// Returns the JSON path of the failed field. The path is empty if the error concerns
    /// the whole object.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Member(name) if path.is_empty() => path.push_str(name),
                Step::Member(name) => path.extend([".", name]),
                Step::Item(index) => path.extend(["[", &index.to_string(), "]"]),
                Step::Key(key) => path.extend(["[", key, "]"]),
            }
        }
        path
    }

    /// Returns the reason of the error, without the path of the field.
    pub fn reason(&self) -> &str {
        &self.0.reason.0
    }

    /// Returns whether the text of [`Error::reason`] comes from the `Deserialize` implementation of the
    /// decoded type, and not from this crate.
    ///
    /// Such a text may contain a value of the object.
    pub fn is_of_type(&self) -> bool {
        self.0.is_of_type
    }

    /// Adds an outer step to the path of the failed value.
    pub(crate) fn below(mut self, step: Step) -> Self {
        self.enter(step);
        self
    }

    /// Adds an outer step to the path, like [`below`](Self::below).
    pub(crate) fn enter(&mut self, step: Step) {
        self.0.path.push(step);
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Self {
        let path = Vec::new();
        let is_of_type = false;
        Self(Box::new(Inner {
            path,
            reason,
            is_of_type,
        }))
    }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        Reason::from(error).into()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path();
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        self.0.reason.fmt(f)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(text: T) -> Self {
        let mut error = Self::from(Reason::new(text.to_string()));
        error.0.is_of_type = true;
        error
    }

    // The provided methods quote the value, which may be secret.

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Reason::new(format!("another type than expected, which is {expected}")).into()
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Reason::new(format!("another value than expected, which is {expected}")).into()
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Reason::new(format!("none of the values {}", expected.join(", "))).into()
    }
}
