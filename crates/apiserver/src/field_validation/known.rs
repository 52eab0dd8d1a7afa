//! Determines which members field validation accepts in the JSON values of a request body.
//!
//! Guarantees: a value that Kubernetes decodes with custom code, such as a quantity or a raw extension, may
//! have any content.

use kube_informer_protobuf::{Container, Field, Form, MessageId, Messages, Type};

use crate::kinds::Kind;

/// The set of members that field validation accepts in one JSON value of a request body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    Anything,
    /// An object of a custom kind, of which only `metadata` is checked.
    Custom,
    Message(MessageId),
    /// A JSON array of values of this type.
    List(Type),
    /// A JSON object whose values have this type. All member names are accepted.
    Map(Type),
    /// A string in a list or a map. Null is an empty string.
    Text,
    /// A JSON patch: an array of [`Known::Operation`] values.
    Operations,
    Operation,
}

/// Names of the members that a JSON patch operation may have.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

impl Known {
    /// Returns the members that field validation accepts in an object of this kind.
    pub(crate) fn of(kind: &Kind) -> Known {
        if kind.custom {
            return Known::Custom;
        }
        Known::named(&kind.api_version(), &kind.kind)
    }

    /// Returns the members that are accepted in the `metadata` of every object.
    pub(crate) fn metadata() -> Known {
        let metadata = Known::named("v1", "Pod").member("metadata");
        metadata.unwrap_or(Known::Anything)
    }

    /// Returns the members that are accepted in an object of a built-in kind.
    ///
    /// If the kind is not built in, all members are accepted.
    pub(crate) fn named(api_version: &str, kind: &str) -> Known {
        let message = Messages::v1_36().of_kind(api_version, kind);
        message.map_or(Known::Anything, Known::Message)
    }

    /// Returns the members that are accepted in the value of the member `name`.
    ///
    /// Returns `None` if `name` is unknown.
    pub(super) fn member(self, name: &str) -> Option<Known> {
        match self {
            Known::Custom if name == "metadata" => Some(Known::metadata()),
            Known::Message(id) => member(id, name),
            Known::Map(value) => Some(Known::of_item(value)),
            Known::Operation => OPERATION.contains(&name).then_some(Known::Anything),
            Known::Anything | Known::Custom | Known::List(_) | Known::Text | Known::Operations => {
                Some(Known::Anything)
            }
        }
    }

    /// Returns whether a member with the value null counts as a missing member, as in Go's structs.
    pub(super) fn omits_nulls(self) -> bool {
        matches!(self, Known::Message(_))
    }

    /// Returns the members that are accepted in each item of a JSON array.
    pub(super) fn item(self) -> Known {
        match self {
            Known::List(item) => Known::of_item(item),
            Known::Operations => Known::Operation,
            _ => Known::Anything,
        }
    }

    fn of_field(field: &Field) -> Known {
        match field.container {
            Container::One => Known::of_type(field.value),
            Container::List => Known::List(field.value),
            Container::Map => Known::Map(field.value),
        }
    }

    fn of_item(value: Type) -> Known {
        match value {
            // Go decodes null in a list or a map into the zero value of the type.
            Type::Text | Type::Bytes => Known::Text,
            _ => Known::of_type(value),
        }
    }

    fn of_type(value: Type) -> Known {
        let Type::Message(id) = value else {
            return Known::Anything;
        };
        let message = Messages::v1_36().get(id);
        match (message.form, message.fields.as_slice()) {
            (Form::Object, _) => Known::Message(id),
            (Form::List, [items]) => Known::of_field(items),
            // Kubernetes does not check values with a custom decoder either.
            _ => Known::Anything,
        }
    }
}

/// Returns the members that are accepted in the value of the field `name` of the protobuf message `id`.
///
/// Returns `None` if the message has no such field.
fn member(id: MessageId, name: &str) -> Option<Known> {
    let message = Messages::v1_36().get(id);
    if message.is_kind && matches!(name, "apiVersion" | "kind") {
        return Some(Known::Anything);
    }
    let mut inlined = Vec::new();
    for field in &message.fields {
        match (field.is_inline(), field.value) {
            (true, Type::Message(inner)) => inlined.push(inner),
            _ if field.name == name => return Some(Known::of_field(field)),
            _ => {}
        }
    }
    inlined.into_iter().find_map(|inner| member(inner, name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::Kinds;
    use crate::kinds::schema::{Definition, Schema, Structure};

    /// Appends to `found` each field of `definition` that `known` does not accept. Does the same for the
    /// nested types of `definition`.
    fn missing(
        definition: &'static Definition,
        known: Known,
        seen: &mut BTreeSet<&'static str>,
        found: &mut Vec<String>,
    ) {
        if !seen.insert(definition.full_name) {
            return;
        }
        for (name, field) in definition.fields() {
            let Some(below) = known.member(name) else {
                found.push(format!("{}.{name}", definition.full_name));
                continue;
            };
            match field.structure() {
                Structure::Struct(inner) => missing(inner, below, seen, found),
                Structure::List(Some(inner)) => missing(inner, below.item(), seen, found),
                Structure::List(None) | Structure::Map | Structure::Leaf => {}
            }
        }
    }

    #[test]
    fn every_openapi_field_is_known() {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for kind in Kinds::builtin().iter() {
            let known = Known::of(kind);
            if let Some(definition) = Schema::builtin().of_kind(&kind.api_version(), &kind.kind) {
                missing(definition, known, &mut seen, &mut found);
            }
        }
        assert_eq!(found, [""; 0]);
        assert!(seen.len() > 400, "{}", seen.len());
    }

    #[test]
    fn a_nested_kind_has_apiversion_and_kind() {
        let set = Known::named("apps/v1", "StatefulSet");
        let spec = set.member("spec").unwrap();
        let claim = spec.member("volumeClaimTemplates").unwrap().item();
        assert!(claim.member("apiVersion").is_some());
        let template = spec.member("template").unwrap();
        assert!(template.member("apiVersion").is_none());
    }
}
