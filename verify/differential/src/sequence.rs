//! [`Sequence`]: the operations that both sides run, and [`Answer`]: the result of each operation.
//!
//! The JSON format is shared with `verify/differential/oracle`. `Display` formats them for reports.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A sequence of operations for one component.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sequence {
    /// The name of the component.
    pub(crate) component: &'static str,
    /// The enabled options of the component.
    pub(crate) flags: Vec<&'static str>,
    /// The rate limiter, for components that have one.
    pub(crate) limiter: Option<Limiter>,
    /// The operations, in order.
    pub(crate) operations: Vec<Operation>,
}

/// One operation. The verb determines which fields are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Operation {
    /// The name of the operation.
    pub(crate) verb: &'static str,
    /// The affected object.
    pub(crate) thing: Option<Thing>,
    /// The objects of a list.
    pub(crate) things: Vec<Thing>,
    /// The changes of a batch.
    pub(crate) batch: Vec<Operation>,
    /// A key, a value or a revision.
    pub(crate) text: String,
    /// The name of an index.
    pub(crate) index: &'static str,
    /// Milliseconds, nanoseconds or a count.
    pub(crate) number: u64,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Thing {
    /// `namespace/name`, or a name alone.
    pub(crate) key: String,
    /// The revision; empty if the object has none.
    pub(crate) revision: String,
    /// The values of the object in each index, joined by commas.
    pub(crate) values: BTreeMap<&'static str, String>,
}

/// A rate limiter. The kind determines which fields are used.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Limiter {
    /// The kind of limiter.
    pub(crate) kind: &'static str,
    /// The base delay, the fast delay, the time per token or the longest wait, in nanoseconds.
    pub(crate) first: u64,
    /// The longest delay or the slow delay, in nanoseconds.
    pub(crate) second: u64,
    /// Number of fast attempts, or of tokens.
    pub(crate) count: u32,
    /// The nested limiters.
    pub(crate) inner: Vec<Limiter>,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// A text, which must be equal.
    Said(String),
    /// Values in any order, because client-go reads them from a Go map.
    Set(Vec<String>),
}

/// The result of an operation on the library.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// The answer, which is compared.
    pub(crate) answer: Answer,
    /// The behaviours that the operation showed, which are counted and not compared.
    pub(crate) seen: Vec<&'static str>,
}

impl Sequence {
    /// Returns whether an option is enabled.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

impl Answer {
    /// Creates an answer from a text.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// Creates the answer of an operation that succeeded.
    pub(crate) fn ok() -> Self {
        Self::said("ok")
    }

    /// Creates the answer of an operation that returns a boolean.
    pub(crate) fn is(yes: bool) -> Self {
        Self::said(if yes { "yes" } else { "no" })
    }

    /// Creates the answer of an operation that can fail. The error text is left out, because it differs
    /// between the implementations.
    pub(crate) fn accepted<T, E>(result: &Result<T, E>) -> Self {
        Self::said(if result.is_ok() { "ok" } else { "error" })
    }

    /// Returns the text; `None` for a set.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Said(text) => Some(text),
            Self::Set(_) => None,
        }
    }

    /// Returns whether both answers are equal. The order of a set is ignored.
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
