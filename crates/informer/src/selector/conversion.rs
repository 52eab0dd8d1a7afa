//! Converts kube's selectors, and the `LabelSelector` in objects, into a [`Selector`].
//!
//! The conversion of a `LabelSelector` checks the keys and values by the rules of the server. The conversion
//! of a kube selector checks neither; for an invalid key or value, the server rejects the request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::label::InvalidLabel;
use super::{Operator, Requirement, Selector};

/// The reason why a `LabelSelector` can't be converted into a [`Selector`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSelectorError {
    /// The operator of a requirement is none of `In`, `NotIn`, `Exists` and `DoesNotExist`.
    #[error(
        "invalid operator {operator:?} for the label {key:?}; use In, NotIn, Exists or DoesNotExist"
    )]
    UnknownOperator {
        /// The key of the requirement's label.
        key: String,
        /// The text of the unknown operator.
        operator: String,
    },
    /// A requirement with `Exists` or `DoesNotExist` has values, but these operators accept none.
    #[error("operator {operator} for the label {key:?} accepts no values; remove them")]
    UnexpectedValues {
        /// The key of the requirement's label.
        key: String,
        /// The operator that accepts no values.
        operator: String,
    },
    /// The key or a value of a requirement is invalid, or a requirement with `In` or `NotIn` has no values.
    #[error("the requirement for the label {key:?} is invalid")]
    Invalid {
        /// The key of the requirement's label.
        key: String,
        /// The reason why the key or the values are invalid.
        source: InvalidLabel,
    },
}

impl TryFrom<LabelSelector> for Selector {
    type Error = LabelSelectorError;

    /// Converts a `LabelSelector`; an empty `LabelSelector` selects all objects.
    ///
    /// In most fields of the API, an absent `LabelSelector` selects no object. Convert such a field with
    /// `selector.map_or_else(|| Ok(Selector::nothing()), Selector::try_from)`.
    fn try_from(selector: LabelSelector) -> Result<Self, Self::Error> {
        let equalities = selector
            .match_labels
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| checked(key, Operator::Equals(value)));
        let expressions = selector
            .match_expressions
            .unwrap_or_default()
            .into_iter()
            .map(Requirement::try_from);
        equalities.chain(expressions).collect()
    }
}

impl TryFrom<LabelSelectorRequirement> for Requirement {
    type Error = LabelSelectorError;

    fn try_from(requirement: LabelSelectorRequirement) -> Result<Self, Self::Error> {
        let (key, operator) = (requirement.key, requirement.operator);
        let values = requirement.values.unwrap_or_default();
        let operator = match operator.as_str() {
            "In" => Operator::In(values.into_iter().collect()),
            "NotIn" => Operator::NotIn(values.into_iter().collect()),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                return Err(LabelSelectorError::UnexpectedValues { key, operator });
            }
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return Err(LabelSelectorError::UnknownOperator { key, operator }),
        };
        checked(key, operator)
    }
}

fn checked(key: String, operator: Operator) -> Result<Requirement, LabelSelectorError> {
    Requirement::new(key.clone(), operator)
        .map_err(|source| LabelSelectorError::Invalid { key, source })
}

impl From<kube_core::Selector> for Selector {
    fn from(selector: kube_core::Selector) -> Self {
        selector
            .into_iter()
            .flat_map(|expression| Selector::from(expression).requirements)
            .collect()
    }
}

impl From<kube_core::Expression> for Selector {
    /// Converts one requirement of a kube selector.
    ///
    /// `In` with an empty set selects no object, and `NotIn` with an empty set selects all objects.
    fn from(expression: kube_core::Expression) -> Self {
        use kube_core::Expression;
        let (key, operator) = match expression {
            Expression::In(_, values) if values.is_empty() => return Selector::nothing(),
            Expression::NotIn(_, values) if values.is_empty() => return Selector::everything(),
            Expression::In(key, values) => (key, Operator::In(values)),
            Expression::NotIn(key, values) => (key, Operator::NotIn(values)),
            Expression::Equal(key, value) => (key, Operator::Equals(value)),
            Expression::NotEqual(key, value) => (key, Operator::NotEquals(value)),
            Expression::Exists(key) => (key, Operator::Exists),
            Expression::DoesNotExist(key) => (key, Operator::DoesNotExist),
        };
        [Requirement { key, operator }].into_iter().collect()
    }
}
