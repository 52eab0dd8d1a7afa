//! Selects objects by labels with a [`Selector`], or by fields with a [`FieldSelector`].
//!
//! The server evaluates a [`FieldSelector`]. The module does not match it against objects.
//!
//! For label selectors, the module guarantees:
//!
//! - [`str::parse`] accepts and rejects the same texts as the API server and `kubectl`. The rules for label
//!   keys and label values are also the same.
//! - `Display` prints a text that the server accepts and that selects the same objects. One [`Selector`] can
//!   therefore be used in requests and on cached objects.
//! - The printed text is canonical: its requirements are sorted and unique. Two selectors are equal if they
//!   differ only in order, in spacing, or in `==` instead of `=`.
//!
//! # Syntax
//!
//! A label selector is a list of requirements, separated by commas. An object must meet all of them.
//!
//! | requirement | selects objects |
//! | --- | --- |
//! | `key` | that have the label |
//! | `!key` | that do not have the label |
//! | `key=a`, `key==a` | whose label is `a` |
//! | `key!=a` | whose label is not `a`, or is missing |
//! | `key in (a,b)` | whose label is `a` or `b` |
//! | `key notin (a,b)` | whose label is neither `a` nor `b`, or is missing |
//! | `key>5`, `key<5` | whose label is an integer above 5, or below 5 |
//!
//! The empty string selects all objects. `key=` and `key in ()` select objects whose label has an empty value.
//!
//! # Example
//!
//! ```
//! use kube_informer::selector::Selector;
//!
//! let selector: Selector = "tier notin (cache, db), app == web".parse()?;
//! assert_eq!(selector.to_string(), "app=web,tier notin (cache,db)");
//! assert!(selector.matches(|key| (key == "app").then_some("web")));
//!
//! let error = "app=web;tier=db".parse::<Selector>().unwrap_err();
//! assert_eq!(error.position(), 4);
//! # Ok::<(), kube_informer::selector::SelectorParseError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use self::conversion::LabelSelectorError;
pub use self::field::{FieldOperator, FieldRequirement, FieldSelector, FieldSelectorParseError};
pub use self::label::InvalidLabel;
pub use self::parse::SelectorParseError;

mod conversion;
mod field;
mod label;
mod parse;

/// A label selector, which selects the objects whose labels meet every requirement.
///
/// The default is [`Selector::everything`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "labels.Selector")]
pub struct Selector {
    /// The requirements, sorted and without duplicates.
    requirements: Vec<Requirement>,
}

/// A requirement on one label of an object: the key of the label, an operator and the operator's values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "labels.Requirement")]
pub struct Requirement {
    key: String,
    operator: Operator,
}

/// The operator that a requirement applies to a label, including the operator's values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "selection.Operator")]
pub enum Operator {
    /// The object has the label, with any value.
    Exists,
    /// The object does not have the label.
    DoesNotExist,
    /// The object has the label with this value.
    Equals(String),
    /// The object has the label with another value, or does not have the label.
    NotEquals(String),
    /// The object has the label with one of these values.
    In(BTreeSet<String>),
    /// The object has the label with a value that is not in this set, or does not have the label.
    NotIn(BTreeSet<String>),
    /// The object has the label, and its value is an integer above this number.
    GreaterThan(i64),
    /// The object has the label, and its value is an integer below this number.
    LessThan(i64),
}

// === impl Selector ===

impl Selector {
    /// Returns a selector that selects all objects, with or without labels. The selector prints as the empty
    /// string.
    #[doc(alias = "labels.Everything")]
    pub const fn everything() -> Self {
        Self {
            requirements: Vec::new(),
        }
    }

    /// Returns a selector that selects no object.
    ///
    /// The selector syntax can't express such a selector directly. The returned selector is the contradiction
    /// `nothing,!nothing`, which also selects no object when a server evaluates it.
    #[doc(alias = "labels.Nothing")]
    pub fn nothing() -> Self {
        [Operator::DoesNotExist, Operator::Exists]
            .map(|operator| Requirement {
                key: "nothing".to_owned(),
                operator,
            })
            .into_iter()
            .collect()
    }

    /// Returns whether the selector has no requirements, and therefore selects all objects.
    #[doc(alias = "Empty")]
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Returns the requirements, sorted by key.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Returns whether the selector selects an object. `label` returns the value of the object's label with
    /// the given key, or `None` if the object does not have the label.
    #[doc(alias = "Matches")]
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.operator.matches(label(&requirement.key)))
    }

    /// Returns whether the selector selects an object with these labels.
    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }
}

impl FromIterator<Requirement> for Selector {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort();
        requirements.dedup();
        Self { requirements }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.requirements)
    }
}

// === impl Requirement ===

impl Requirement {
    /// Creates a requirement on the label `key`.
    ///
    /// # Errors
    ///
    /// Returns an error if the key is not a valid label key, if a value is not a valid label value, or if an
    /// `In` or `NotIn` operator has no values.
    #[doc(alias = "NewRequirement")]
    pub fn new(key: impl Into<String>, operator: Operator) -> Result<Self, InvalidLabel> {
        let key = key.into();
        label::check_key(&key)?;
        match &operator {
            Operator::Equals(value) | Operator::NotEquals(value) => label::check_value(value)?,
            Operator::In(values) | Operator::NotIn(values) => {
                if values.is_empty() {
                    return Err(InvalidLabel::NoValues);
                }
                values
                    .iter()
                    .try_for_each(|value| label::check_value(value))?;
            }
            // A label value can't start with a sign, so no server accepts a negative bound.
            Operator::GreaterThan(bound) | Operator::LessThan(bound) => {
                label::check_value(&bound.to_string())?;
            }
            Operator::Exists | Operator::DoesNotExist => {}
        }
        Ok(Self { key, operator })
    }

    /// Returns the key of the label that the requirement compares.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the operator with which the requirement compares the label. The operator contains the values
    /// to compare.
    pub fn operator(&self) -> &Operator {
        &self.operator
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.operator {
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::Equals(value) => write!(f, "{key}={value}"),
            Operator::NotEquals(value) => write!(f, "{key}!={value}"),
            Operator::In(values) => {
                write!(f, "{key} in (")?;
                write_list(f, values)?;
                f.write_str(")")
            }
            Operator::NotIn(values) => {
                write!(f, "{key} notin (")?;
                write_list(f, values)?;
                f.write_str(")")
            }
            Operator::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Operator::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

// === impl Operator ===

impl Operator {
    /// Returns whether an object with this value of the label meets the requirement. `None` is an absent
    /// label.
    fn matches(&self, label: Option<&str>) -> bool {
        let integer = || label.and_then(|value| value.parse::<i64>().ok());
        match self {
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Equals(wanted) => label == Some(wanted),
            Operator::NotEquals(unwanted) => label != Some(unwanted),
            Operator::In(wanted) => label.is_some_and(|value| wanted.contains(value)),
            Operator::NotIn(unwanted) => label.is_none_or(|value| !unwanted.contains(value)),
            Operator::GreaterThan(bound) => integer().is_some_and(|value| value > *bound),
            Operator::LessThan(bound) => integer().is_some_and(|value| value < *bound),
        }
    }
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    list: impl IntoIterator<Item = T>,
) -> fmt::Result {
    for (position, element) in list.into_iter().enumerate() {
        if position > 0 {
            f.write_str(",")?;
        }
        element.fmt(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
