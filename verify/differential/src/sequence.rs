//! Defines the random operations that client-go and the library both run ([`Sequence`]), and the results of
//! the operations ([`Answer`]).
//!
//! The Go programs in `verify/differential/oracle` read sequences and write answers as JSON. `Display`
//! formats operations and answers for reports.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A sequence of random operations on one component, such as the work queue.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sequence {
    /// Name of the component that runs the operations, such as `workqueue`.
    pub(crate) component: &'static str,
    /// The enabled options of the component, such as `streaming`.
    pub(crate) flags: Vec<&'static str>,
    pub(crate) limiter: Option<Limiter>,
    pub(crate) operations: Vec<Operation>,
}

/// One operation on a component. The verb of the operation determines which fields are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Operation {
    /// The name of the operation, such as `add`.
    pub(crate) verb: &'static str,
    /// The object that the operation affects; `None` if the operation affects none or several.
    pub(crate) thing: Option<Thing>,
    /// The objects of a list, if the operation replaces all objects; otherwise empty.
    pub(crate) things: Vec<Thing>,
    /// The changes of a batch, if the operation applies several changes; otherwise empty.
    pub(crate) batch: Vec<Operation>,
    /// A text argument, such as a key, an index value or a revision; may be empty.
    pub(crate) text: String,
    /// A second text argument, such as the name of an index; may be empty.
    pub(crate) index: &'static str,
    /// A number whose meaning and unit depend on `verb`, such as a duration or a count.
    pub(crate) number: u64,
}

/// An object, reduced to the data that the comparison needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Thing {
    /// Key of the object: `namespace/name`, or the name alone.
    pub(crate) key: String,
    /// Resource version of the object; empty if the object has none.
    pub(crate) revision: String,
    /// Maps the name of an index or label to the object's values, separated by commas.
    pub(crate) values: BTreeMap<&'static str, String>,
}

/// Description of a rate limiter, from which client-go and the library build equal limiters.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Limiter {
    /// The kind of the rate limiter, such as `bucket`.
    pub(crate) kind: &'static str,
    /// A duration in nanoseconds: base delay (`exponential`), fast delay (`fast_slow`), time per token
    /// (`bucket`) or maximum wait (`max_wait`).
    pub(crate) first: u64,
    /// A duration in nanoseconds: maximum delay (`exponential`) or slow delay (`fast_slow`).
    pub(crate) second: u64,
    /// A count: number of fast attempts (`fast_slow`) or burst (`bucket`).
    pub(crate) count: u32,
    /// The rate limiters inside a `max_of` or `max_wait` limiter. Empty for other kinds.
    pub(crate) inner: Vec<Limiter>,
}

/// The result of an operation, as client-go or the library returned it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// A text, which must be equal for client-go and the library.
    Said(String),
    /// Values whose order is not compared, because client-go reads them from a Go map.
    Set(Vec<String>),
}

/// The library's answer to one operation, and the behaviors that the library showed, for the coverage report.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) answer: Answer,
    /// Names of the behaviors, such as "Pop of an empty queue".
    pub(crate) seen: Vec<&'static str>,
}

impl Sequence {
    /// Returns whether the option `flag` is enabled.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

impl Answer {
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    pub(crate) fn ok() -> Self {
        Self::said("ok")
    }

    /// Creates the answer of an operation that returns a boolean.
    pub(crate) fn is(yes: bool) -> Self {
        Self::said(if yes { "yes" } else { "no" })
    }

    /// Creates the answer `ok` or `error`, depending on `result`.
    ///
    /// The answer omits the error text, because client-go and the library use different texts.
    pub(crate) fn accepted<T, E>(result: &Result<T, E>) -> Self {
        // client-go and the library use different error texts.
        Self::said(if result.is_ok() { "ok" } else { "error" })
    }

    /// Returns the text of the answer; `None` for a set.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Said(text) => Some(text),
            Self::Set(_) => None,
        }
    }

    /// Returns whether the answers are equal, with sets compared without order.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Said(one), Self::Said(other)) => one == other,
            (Self::Set(one), Self::Set(other)) => {
                let (mut one, mut other) = (one.clone(), other.clone());
                one.sort_unstable();
                other.sort_unstable();
                one == other
            }
            _ => false,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(text) if text.is_empty() => f.write_str("-"),
            Self::Said(text) => f.write_str(text),
            Self::Set(set) => {
                let mut set = set.clone();
                set.sort_unstable();
                write!(f, "{{{}}}", set.join(", "))
            }
        }
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.key, self.revision)?;
        for (index, values) in &self.values {
            write!(f, " {index}=[{values}]")?;
        }
        Ok(())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb)?;
        for word in [self.index, &self.text] {
            if !word.is_empty() {
                write!(f, " {word}")?;
            }
        }
        if self.number > 0 {
            write!(f, " {}", self.number)?;
        }
        if let Some(thing) = &self.thing {
            write!(f, " {thing}")?;
        }
        if !self.things.is_empty() {
            f.write_str(":")?;
        }
        for thing in &self.things {
            write!(f, " ({thing})")?;
        }
        for operation in &self.batch {
            write!(f, " ({operation})")?;
        }
        Ok(())
    }
}

impl fmt::Display for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {} {}",
            self.kind, self.first, self.second, self.count
        )?;
        for inner in &self.inner {
            write!(f, " ({inner})")?;
        }
        Ok(())
    }
}
