//! [`Sequence`]: what both sides are asked, and [`Answer`]: what each operation gave.
//!
//! Both sides read the same JSON, and a person reads the same text.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// A sequence of operations for one component.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sequence {
    /// The component's name.
    pub(crate) component: &'static str,
    /// Which of its options are on.
    pub(crate) flags: Vec<&'static str>,
    /// The rate limiter, for those that have one.
    pub(crate) limiter: Option<Limiter>,
    /// What is done, in order.
    pub(crate) operations: Vec<Operation>,
}

/// One step. Which fields say something depends on the verb.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Operation {
    /// What is done.
    pub(crate) verb: &'static str,
    /// The object that it is about.
    pub(crate) thing: Option<Thing>,
    /// The objects of a list.
    pub(crate) things: Vec<Thing>,
    /// The changes that are made in one batch.
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
    /// Its revision, empty for none.
    pub(crate) revision: String,
    /// By index what it has there, joined by commas.
    pub(crate) values: BTreeMap<&'static str, String>,
}

/// A rate limiter. Which fields say something depends on the kind.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Limiter {
    /// Which one.
    pub(crate) kind: &'static str,
    /// Nanoseconds: the base, the fast delay, the time that a token takes, or the longest wait.
    pub(crate) first: u64,
    /// Nanoseconds: the longest delay, or the slow one.
    pub(crate) second: u64,
    /// How many fast attempts or tokens.
    pub(crate) count: u32,
    /// What it is made of.
    pub(crate) inner: Vec<Limiter>,
}

/// What an operation gave.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    /// Compared as it is.
    Said(String),
    /// Its order is that of a Go map, which is none.
    Set(Vec<String>),
}

/// What an operation gave here.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// To be compared.
    pub(crate) answer: Answer,
    /// Which behaviours it showed; not compared, but counted.
    pub(crate) seen: Vec<&'static str>,
}

impl Sequence {
    /// Whether an option is on.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

impl Answer {
    /// A text.
    pub(crate) fn said(text: impl Into<String>) -> Self {
        Self::Said(text.into())
    }

    /// It was accepted.
    pub(crate) fn ok() -> Self {
        Self::said("ok")
    }

    /// Yes or no.
    pub(crate) fn is(yes: bool) -> Self {
        Self::said(if yes { "yes" } else { "no" })
    }

    /// Accepted or not; the words differ from one implementation to the other.
    pub(crate) fn accepted<T, E>(result: &Result<T, E>) -> Self {
        Self::said(if result.is_ok() { "ok" } else { "error" })
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Said(text) => Some(text),
            Self::Set(_) => None,
        }
    }

    /// Whether both say the same, sets in any order.
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
