//! Parses and prints field selectors, which select objects by the values of their fields.
//!
//! The module does not match objects against a [`FieldSelector`]. The server matches its objects, and
//! [`Snapshot::by_fields`](crate::indexer::Snapshot::by_fields) matches the objects of a cache.

use std::{fmt, str::FromStr};

/// A field selector, which selects the objects whose fields meet every requirement.
///
/// [`str::parse`] reads `field=value`, `field==value` and `field!=value`, separated by commas. In a value, a
/// backslash must precede each comma, equals sign and backslash. `Display` prints the same syntax, which is
/// the syntax of the API server.
///
/// ```
/// use kube_informer::selector::FieldSelector;
///
/// let selector: FieldSelector = "spec.nodeName==node-7,status.phase!=Failed".parse()?;
/// assert_eq!(selector.to_string(), "spec.nodeName=node-7,status.phase!=Failed");
/// # Ok::<(), kube_informer::selector::FieldSelectorParseError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[doc(alias = "fields.Selector")]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// A requirement on one field of an object: the name of the field, an operator and a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "fields.Requirement")]
pub struct FieldRequirement {
    field: String,
    operator: FieldOperator,
    value: String,
}

/// The operator with which a requirement compares a field and a value. Servers support no other operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    /// The field equals the value of the requirement. A field that the object lacks counts as the empty
    /// string.
    Equals,
    /// The field differs from the value of the requirement. A field that the object lacks counts as the empty
    /// string.
    NotEquals,
}

/// The error for a text that is not a field selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldSelectorParseError {
    /// A requirement has no operator. The string is the text of the requirement.
    #[error("invalid selector: {0:?}; can't understand it: it has no =, == or !=")]
    NoOperator(String),
    /// A value contains an unescaped equals sign, or a backslash that is not followed by a comma, an equals
    /// sign or a backslash. The string is the text of the requirement.
    #[error("invalid field selector: invalid escape sequence in {0:?}")]
    Escape(String),
}

impl FieldSelector {
    /// Returns a selector that selects all objects. The selector prints as the empty string.
    #[doc(alias = "fields.Everything")]
    pub const fn everything() -> Self {
        Self {
            requirements: Vec::new(),
        }
    }

    /// Creates a selector that selects the objects in which `field` equals `value`.
    #[doc(alias = "OneTermEqualSelector")]
    pub fn equals(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self::everything().and(field, FieldOperator::Equals, value)
    }

    /// Creates a selector that selects the objects in which `field` differs from `value`.
    #[doc(alias = "OneTermNotEqualSelector")]
    pub fn not_equals(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self::everything().and(field, FieldOperator::NotEquals, value)
    }

    /// Adds a requirement to the selector. A selected object must meet all requirements.
    #[doc(alias = "AndSelectors")]
    #[must_use]
    pub fn and(
        mut self,
        field: impl Into<String>,
        operator: FieldOperator,
        value: impl Into<String>,
    ) -> Self {
        self.requirements.push(FieldRequirement {
            field: field.into(),
            operator,
            value: value.into(),
        });
        self
    }

    /// Returns the requirements, in the order in which they were added.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }
}

impl FieldRequirement {
    /// Returns the name of the field that the requirement compares, such as `spec.nodeName`.
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Returns the operator with which the requirement compares the field and the value.
    pub fn operator(&self) -> FieldOperator {
        self.operator
    }

    /// Returns the value with which the requirement compares the field.
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for FieldSelector {
    #[doc(alias = "EscapeValue")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            let operator = match requirement.operator {
                FieldOperator::Equals => "=",
                FieldOperator::NotEquals => "!=",
            };
            write!(f, "{comma}{}{operator}", requirement.field)?;
            for letter in requirement.value.chars() {
                if matches!(letter, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for FieldSelector {
    type Err = FieldSelectorParseError;

    fn from_str(text: &str) -> Result<Self, FieldSelectorParseError> {
        let mut selector = Self::everything();
        for term in terms(text).filter(|term| !term.is_empty()) {
            let none = || FieldSelectorParseError::NoOperator(term.to_owned());
            let at = term.find('=').ok_or_else(none)?;
            let (field, value) = (&term[..at], &term[at + 1..]);
            let (field, operator, value) = if let Some(field) = field.strip_suffix('!') {
                (field, FieldOperator::NotEquals, value)
            } else {
                let value = value.strip_prefix('=').unwrap_or(value);
                (field, FieldOperator::Equals, value)
            };
            let value =
                unescape(value).ok_or_else(|| FieldSelectorParseError::Escape(term.to_owned()))?;
            selector = selector.and(field, operator, value);
        }
        Ok(selector)
    }
}

/// Splits a selector's text at commas that are not escaped.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |letter| {
        let separates = letter == ',' && !escaped;
        escaped = letter == '\\' && !escaped;
        separates
    })
}

fn unescape(value: &str) -> Option<String> {
    let mut letters = value.chars();
    let mut plain = String::with_capacity(value.len());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => letters
                .next()
                .filter(|next| matches!(next, '\\' | ',' | '='))?,
            '=' => return None,
            letter => letter,
        });
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_field_selector_parses_as_on_a_server() {
        for (text, printed) in [
            ("", ""),
            (
                "metadata.name=a,,status.phase!=Failed",
                "metadata.name=a,status.phase!=Failed",
            ),
            ("spec.nodeName==", "spec.nodeName="),
            (r"a=b\,c\=d\\", r"a=b\,c\=d\\"),
        ] {
            let selector: FieldSelector = text.parse().unwrap();
            assert_eq!(selector.to_string(), printed, "{text}");
        }
        for (text, message) in [
            (
                "status.phase",
                "invalid selector: \"status.phase\"; can't understand it: it has no =, == or !=",
            ),
            (
                r"a=b\c",
                r#"invalid field selector: invalid escape sequence in "a=b\\c""#,
            ),
            (
                "a=b=c",
                r#"invalid field selector: invalid escape sequence in "a=b=c""#,
            ),
        ] {
            let error = text.parse::<FieldSelector>().unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn a_printed_field_selector_parses_to_the_same(
            terms in prop::collection::vec(("[a-z.]{1,4}", any::<bool>(), r"[a,=\\!]{0,4}"), 0..4),
        ) {
            let mut selector = FieldSelector::everything();
            for (field, equal, value) in terms {
                let operator = if equal { FieldOperator::Equals } else { FieldOperator::NotEquals };
                selector = selector.and(field, operator, value);
            }
            prop_assert_eq!(selector.to_string().parse(), Ok(selector));
        }
    }
}
