//! Parses and matches field selectors, and lists the fields that each kind supports in selectors.
//!
//! Guarantees:
//! - built-in kinds support the same fields as in Kubernetes 1.36;
//! - every kind supports `metadata.name`. Every kind except Namespace, Node, `CertificateSigningRequest` and
//!   `ResourceSlice` supports `metadata.namespace`, even if the kind is cluster-scoped;
//! - an absent field has the default value that Kubernetes would set.

use serde_json::Value;

use super::Selectable;
use super::texts::Texts;
use crate::quote::Quoted;
use crate::status::ApiError;

/// A field that the field selectors of one kind can compare.
#[derive(Debug)]
pub(crate) struct Field {
    label: &'static str,
    /// Path of the field in the object: member names, separated by dots.
    path: &'static str,
    /// Path of the field that selectors compare in an object without a value at `path`. Empty if there is no
    /// such field.
    otherwise: &'static str,
    /// Value that selectors compare if the object has no value at `path` and none at `otherwise`.
    default: &'static str,
}

/// The fields that field selectors can compare for one kind, except for name and namespace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldTable {
    own: &'static [Field],
    /// The labels that selectors use, each with its label in `own`. `None` if selectors use those of `own`.
    labels: Option<&'static [(&'static str, &'static str)]>,
    /// The alternative name and the usual name of one field, such as `spec.host` and `spec.nodeName`.
    alias: Option<(&'static str, &'static str)>,
    /// Returns the error message for an unsupported field.
    unsupported: fn(&str) -> String,
    /// Whether selectors may contain `metadata.namespace`. The value is `true` for all namespaced kinds, and
    /// for most cluster-scoped kinds.
    has_namespace: bool,
}

/// A field of custom objects that field selectors can compare, as their definition requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectableField {
    /// Path of the field without the leading dot, such as `spec.color`. Selectors name the field by its path.
    pub(crate) path: String,
}

/// The values of one object for the fields of a [`FieldTable`], in the table's order.
pub(crate) type Fields = Texts;

/// A parsed field selector, which selects an object if all comparisons match.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq)]
struct Term {
    source: Source,
    equal: bool,
    value: String,
}

/// The part of an object that a field selector compares.
///
/// Ordered from most to least selective: usually, few objects have the same name, and many objects are in
/// the same namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    Name,
    /// A field of the kind, given by its index in the kind's [`FieldTable`] and the selectable fields after it.
    Own(usize),
    Namespace,
}

/// Creates a field with the path `label` and an empty default value.
const fn field(label: &'static str) -> Field {
    with_default(label, label, "")
}

const fn with_default(label: &'static str, path: &'static str, default: &'static str) -> Field {
    Field {
        label,
        path,
        otherwise: "",
        default,
    }
}

pub(crate) const POD: FieldTable = FieldTable {
    alias: Some(("spec.host", "spec.nodeName")),
    ..FieldTable::of(&[
        field("spec.nodeName"),
        field("spec.restartPolicy"),
        field("spec.schedulerName"),
        field("spec.serviceAccountName"),
        with_default("spec.hostNetwork", "spec.hostNetwork", "false"),
        field("status.phase"),
        field("status.podIP"),
        // A list, so its value is empty for every pod, as in Kubernetes.
        field("status.podIPs"),
        field("status.nominatedNodeName"),
    ])
};
pub(crate) const NODE: FieldTable = FieldTable::of_cluster(&[with_default(
    "spec.unschedulable",
    "spec.unschedulable",
    "false",
)]);
pub(crate) const NAMESPACE: FieldTable = FieldTable::of_cluster(&[field("status.phase")]);
pub(crate) const SECRET: FieldTable = FieldTable::of(&[with_default("type", "type", "Opaque")]);
pub(crate) const SERVICE: FieldTable = FieldTable::of(&[
    field("spec.clusterIP"),
    with_default("spec.type", "spec.type", "ClusterIP"),
]);
pub(crate) const REPLICATION_CONTROLLER: FieldTable =
    FieldTable::of(&[with_default("status.replicas", "status.replicas", "0")]);
pub(crate) const JOB: FieldTable = FieldTable {
    unsupported: |label| format!("field label {} not supported for Job", Quoted(label)),
    ..FieldTable::of(&[with_default("status.successful", "status.succeeded", "0")])
};
pub(crate) const CORE_EVENT: FieldTable = FieldTable::of(&[
    field("involvedObject.kind"),
    field("involvedObject.namespace"),
    field("involvedObject.name"),
    field("involvedObject.uid"),
    field("involvedObject.apiVersion"),
    field("involvedObject.resourceVersion"),
    field("involvedObject.fieldPath"),
    field("reason"),
    field("reportingComponent"),
    Field {
        otherwise: "reportingComponent",
        ..with_default("source", "source.component", "")
    },
    field("type"),
]);
/// The fields of an event of `events.k8s.io`, which is stored as one of the core group.
pub(crate) const EVENT: FieldTable = FieldTable {
    labels: Some(&[
        ("regarding.kind", "involvedObject.kind"),
        ("regarding.namespace", "involvedObject.namespace"),
        ("regarding.name", "involvedObject.name"),
        ("regarding.uid", "involvedObject.uid"),
        ("regarding.apiVersion", "involvedObject.apiVersion"),
        (
            "regarding.resourceVersion",
            "involvedObject.resourceVersion",
        ),
        ("regarding.fieldPath", "involvedObject.fieldPath"),
        ("reason", "reason"),
        ("reportingController", "reportingComponent"),
        ("type", "type"),
    ]),
    ..CORE_EVENT
};
pub(crate) const SIGNING_REQUEST: FieldTable = FieldTable::of_cluster(&[field("spec.signerName")]);
pub(crate) const RESOURCE_SLICE: FieldTable = FieldTable {
    unsupported: |label| {
        format!("field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: {label}")
    },
    ..FieldTable::of_cluster(&[field("spec.nodeName"), field("spec.driver")])
};

// === impl FieldTable ===

impl FieldTable {
    /// The table of built-in kinds that support only `metadata.name` and `metadata.namespace`.
    pub(crate) const NONE: FieldTable = FieldTable {
        unsupported: |label| {
            format!(
                "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
                Quoted(label)
            )
        },
        ..FieldTable::of(&[])
    };

    /// The table of custom kinds, which support only `metadata.name` and `metadata.namespace`.
    pub(crate) const CUSTOM: FieldTable = FieldTable::of(&[]);

    const fn of(own: &'static [Field]) -> FieldTable {
        FieldTable {
            own,
            labels: None,
            alias: None,
            unsupported: |label| format!("field label not supported: {label}"),
            has_namespace: true,
        }
    }

    /// Returns a table for a cluster-scoped kind whose selectors can't contain `metadata.namespace`.
    const fn of_cluster(own: &'static [Field]) -> FieldTable {
        FieldTable {
            has_namespace: false,
            ..FieldTable::of(own)
        }
    }

    /// Returns the values of an object's fields: those of the table, and then the fields in `selectable`.
    pub(crate) fn values_of(
        self,
        object: &serde_json::Map<String, Value>,
        selectable: &[SelectableField],
    ) -> Fields {
        let own = self.own.iter().map(|field| field.value_in(object));
        let selectable = selectable.iter();
        own.chain(selectable.map(|field| text_at(object, &field.path).unwrap_or_default()))
            .collect()
    }

    /// Returns the value of one field from `values`, the result of [`FieldTable::values_of`] for an object.
    ///
    /// `label` is the name of the field in field selectors, such as `status.phase`. Returns `None` if the
    /// table does not contain the field. The table never contains `metadata.name` or `metadata.namespace`.
    pub(crate) fn value_of<'a>(self, values: &'a Fields, label: &str) -> Option<&'a str> {
        values.get(self.position(label)?)
    }

    fn position(self, label: &str) -> Option<usize> {
        self.own.iter().position(|field| field.label == label)
    }

    fn source(self, label: &str, selectable: &[SelectableField]) -> Result<Source, ApiError> {
        let label = match self.alias {
            Some((alias, label_of_field)) if alias == label => label_of_field,
            _ => label,
        };
        match label {
            "metadata.name" => return Ok(Source::Name),
            "metadata.namespace" if self.has_namespace => return Ok(Source::Namespace),
            _ => {}
        }
        let own = match self.labels {
            None => Some(label),
            Some(labels) => {
                let mut labels = labels.iter();
                labels.find_map(|(known, own)| (*known == label).then_some(*own))
            }
        };
        let found = own.and_then(|own| self.position(own)).or_else(|| {
            let at = selectable.iter().position(|field| field.path == label)?;
            Some(self.own.len() + at)
        });
        if let Some(at) = found {
            return Ok(Source::Own(at));
        }
        Err(ApiError::bad_request((self.unsupported)(label)))
    }
}

impl Field {
    fn value_in(&self, object: &serde_json::Map<String, Value>) -> String {
        let found = text_at(object, self.path).or_else(|| text_at(object, self.otherwise));
        found.unwrap_or_else(|| self.default.to_owned())
    }
}

/// Returns the scalar at a path, such as `spec.nodeName`, as a text. Returns `None` for an empty text.
fn text_at(object: &serde_json::Map<String, Value>, path: &str) -> Option<String> {
    let mut steps = path.split('.');
    let start = steps.next().and_then(|first| object.get(first));
    match steps.fold(start, |value, step| value?.get(step)) {
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => Some(other.to_string()),
        _ => None,
    }
}

// === impl Source ===

impl Source {
    pub(crate) fn value_in(self, object: Selectable<'_>) -> &str {
        match self {
            Source::Name => object.name(),
            Source::Own(at) => object.fields.get(at).unwrap_or_default(),
            Source::Namespace => object.namespace().unwrap_or_default(),
        }
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    pub(crate) fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    pub(crate) fn matches(&self, object: Selectable<'_>) -> bool {
        self.terms
            .iter()
            .all(|term| (term.source.value_in(object) == term.value) == term.equal)
    }

    /// Returns the field and the required value of each comparison with `=` or `==`.
    pub(crate) fn demands(&self) -> impl Iterator<Item = (Source, &str)> {
        let demanded = self.terms.iter().filter(|term| term.equal);
        demanded.map(|term| (term.source, term.value.as_str()))
    }

    /// Returns the name that the selector requires with `metadata.name=`, if any.
    pub(crate) fn required_name(&self) -> Option<&str> {
        self.demands()
            .find(|(source, _)| *source == Source::Name)
            .map(|(_, name)| name)
    }

    /// Returns whether the selector requires a namespace with `metadata.namespace=`.
    pub(crate) fn requires_namespace(&self) -> bool {
        self.demands()
            .any(|(source, _)| source == Source::Namespace)
    }

    /// Returns whether the selector compares fields other than the name and the namespace.
    pub(crate) fn compares_own_fields(&self) -> bool {
        let mut terms = self.terms.iter();
        terms.any(|term| matches!(term.source, Source::Own(_)))
    }

    /// Adds the requirement `metadata.name=<name>`, for a watch of a single object.
    pub(crate) fn require_name(&mut self, name: &str) {
        self.terms.push(Term {
            source: Source::Name,
            equal: true,
            value: name.to_owned(),
        });
    }

    #[cfg(test)]
    pub(super) fn parse(table: FieldTable, text: &str) -> Result<FieldSelector, ApiError> {
        FieldSelector::of((table, &[]), terms(text)?)
    }

    /// Returns the selector with these comparisons. The function [`terms`] describes a comparison.
    ///
    /// # Errors
    ///
    /// Returns a 400 error if neither the table nor the selectable fields contain the field of a comparison.
    pub(super) fn of(
        (table, selectable): (FieldTable, &[SelectableField]),
        terms: Vec<(&str, bool, String)>,
    ) -> Result<FieldSelector, ApiError> {
        let term = |(label, equal, value)| {
            let source = table.source(label, selectable)?;
            Ok(Term {
                source,
                equal,
                value,
            })
        };
        let terms = terms.into_iter().map(term);
        let terms = terms.collect::<Result<_, ApiError>>()?;
        Ok(FieldSelector { terms })
    }
}

/// Parses a field selector into its comparisons.
///
/// Each comparison consists of a field name, an operator and a value. The operator is `true` for equal, and
/// `false` for not equal.
///
/// # Errors
///
/// Returns a 400 error if the syntax is wrong.
pub(crate) fn terms(text: &str) -> Result<Vec<(&str, bool, String)>, ApiError> {
    let mut terms = Vec::new();
    for part in split_unescaped(text) {
        if part.is_empty() {
            continue;
        }
        let Some((label, equal, value)) = split_term(part) else {
            let message = format!("invalid selector: '{text}'; can't understand '{part}'");
            return Err(ApiError::bad_request(message));
        };
        let value = unescape(value)
            .map_err(|why| ApiError::bad_request(format!("invalid field selector: {why}")))?;
        terms.push((label, equal, value));
    }
    Ok(terms)
}

/// Splits a field selector at the commas that are not escaped with a backslash.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Splits a comparison into the field name, the operator (`true` means equal) and the value.
fn split_term(part: &str) -> Option<(&str, bool, &str)> {
    let at = part.find(['=', '!'])?;
    let (label, rest) = part.split_at(at);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((label, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((label, true, value))
}

/// Removes the backslash before each escaped character of a value.
///
/// # Errors
///
/// Returns Kubernetes' message if an escape is invalid, or if a special character is not escaped.
fn unescape(value: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let other = other.map_or(String::new(), String::from);
                    return Err(format!("invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                return Err(format!("unescaped character in value: {}", u32::from(c)));
            }
            _ => plain.push(c),
        }
    }
    Ok(plain)
}
