//! Conversions from kube's selectors, and from the `LabelSelector` in objects.
//!
//! A `LabelSelector` comes from an object, and is validated as on the server. kube's selector comes from the
//! program, and is not validated: an invalid key or value is printed as it is, and the server rejects it, as if
//! kube had sent it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use super::label::InvalidLabel;
use super::{Operator, Requirement, Selector};

/// Why a `LabelSelector` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelSelectorError {
    /// The operator is none of `In`, `NotIn`, `Exists` and `DoesNotExist`.
    #[error(
        "invalid operator {operator:?} for the label {key:?}; use In, NotIn, Exists or DoesNotExist"
    )]
    UnknownOperator {
        /// The label's key.
        key: String,
        /// The unknown operator.
        operator: String,
    },
    /// `Exists` and `DoesNotExist` take no values.
    #[error("operator {operator} for the label {key:?} accepts no values; remove them")]
    UnexpectedValues {
        /// The label's key.
        key: String,
        /// The operator that takes none.
        operator: String,
    },
    /// A key or a value is invalid, or values are missing; [`InvalidLabel`] is the source.
    #[error("the requirement for the label {key:?} is invalid")]
    Invalid {
        /// The label's key.
        key: String,
        /// The reason.
        source: InvalidLabel,
    },
}

impl TryFrom<LabelSelector> for Selector {
    type Error = LabelSelectorError;

    /// Converts a selector; an empty one selects all objects.
    ///
    /// An absent selector selects nothing in most places of the API; use
    /// `selector.map_or_else(|| Ok(Selector::nothing()), Selector::try_from)` for that.
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
    /// Keeps kube's meaning of an empty set, for which the syntax has no form: a label in an empty set selects
    /// [nothing](Selector::nothing), a label outside of it everything.
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
