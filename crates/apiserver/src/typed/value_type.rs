//! Defines which type a JSON value is decoded into.

use std::borrow::Cow;

use kube_informer_protobuf::{
    Container, Field, Form, Message, MessageId, Messages, Presence, Type,
};

use super::literal::Literal;
use crate::go_time::Layout;
use crate::kinds::Kind;

/// The type of a JSON value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueType {
    /// Any value, which is kept as it is.
    Anything,
    /// An object of a custom kind, of which only `metadata` is decoded.
    Custom,
    Message(MessageId),
    /// The value of a field: a list or a map, if the field contains one.
    Field(&'static Field),
    /// A value in the list or the map of a field.
    Item(&'static Field),
    /// The `apiVersion` or `kind` of a built-in kind.
    TypeMeta,
    /// The value of a member that the object does not have.
    Unknown,
    /// A JSON patch: an array of [`ValueType::Operation`] values.
    Operations,
    Operation,
}

/// What a value is decoded into.
#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Anything,
    Custom,
    Struct(MessageId),
    List(ValueType),
    Map(ValueType),
    Bool,
    Text,
    Bytes,
    Time(Layout),
    Literal(Literal),
    /// Any value, in which Kubernetes checks nothing.
    Json,
    /// A JSON schema, or the second field of the message.
    Either(MessageId),
    Operation,
}

/// Names of the members that a JSON patch operation may have.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

impl ValueType {
    /// Returns the type of the objects of a kind. The metadata of a kind that is not in the table is decoded too.
    pub(crate) fn of(kind: &Kind) -> ValueType {
        if kind.custom {
            return ValueType::Custom;
        }
        match ValueType::named(&kind.api_version(), &kind.kind) {
            ValueType::Anything => ValueType::Custom,
            known => known,
        }
    }

    /// Returns the type of the `metadata` of every object.
    pub(crate) fn metadata() -> ValueType {
        let metadata = match ValueType::named("v1", "Pod") {
            ValueType::Message(pod) => member(pod, "metadata").map(|(_, field)| field),
            _ => None,
        };
        metadata.map_or(ValueType::Anything, ValueType::Item)
    }

    /// Returns the type of a built-in kind. Any value is accepted for another kind.
    pub(crate) fn named(api_version: &str, kind: &str) -> ValueType {
        let message = Messages::v1_36().of_kind(api_version, kind);
        message.map_or(ValueType::Anything, ValueType::Message)
    }

    pub(super) fn target(self) -> Target {
        match self {
            ValueType::Anything | ValueType::Unknown => Target::Anything,
            ValueType::Custom => Target::Custom,
            ValueType::Message(id) => of_type(Type::Message(id)),
            ValueType::Item(field) => of_type(field.value),
            ValueType::Field(field) => match field.container {
                Container::One => of_type(field.value),
                Container::List => Target::List(ValueType::Item(field)),
                Container::Map => Target::Map(ValueType::Item(field)),
            },
            ValueType::TypeMeta => Target::Text,
            ValueType::Operations => Target::List(ValueType::Operation),
            ValueType::Operation => Target::Operation,
        }
    }

    /// Returns the type in Go, as error messages of Go show it, such as `[]v1.Container`.
    pub(super) fn go_type(self) -> Cow<'static, str> {
        let messages = Messages::v1_36();
        match self {
            ValueType::Message(id) => messages.go_type_of(Type::Message(id)),
            ValueType::Field(field) => messages.go_type(field),
            ValueType::Item(field) => messages.go_item_type(field),
            ValueType::TypeMeta => "string".into(),
            _ => "interface {}".into(),
        }
    }

    /// Returns whether the type is a list, a map or a pointer in Go, or decodes a null itself.
    ///
    /// A null then removes the value of an earlier duplicate.
    pub(super) fn is_nullable(self) -> bool {
        let is_pointer = match self {
            ValueType::Field(field) => {
                field.container == Container::One
                    && matches!(field.presence, Presence::Sent | Presence::Nullable)
            }
            _ => false,
        };
        is_pointer
            || match self.target() {
                Target::Bool | Target::Text | Target::Struct(_) => false,
                Target::Literal(literal) => !literal.is_number(),
                _ => true,
            }
    }

    /// Returns the type of the value of the member `name`, or `None` if the member is unknown.
    #[cfg(test)]
    pub(crate) fn member(self, name: &str) -> Option<ValueType> {
        match self.target() {
            Target::Struct(id) if message(id).is_kind && type_meta(name).is_some() => {
                Some(ValueType::TypeMeta)
            }
            Target::Struct(id) => member(id, name).map(|(_, field)| ValueType::Field(field)),
            _ => None,
        }
    }
}

/// Returns whether an operation of a JSON patch has a member.
pub(super) fn is_of_operation(name: &str) -> bool {
    OPERATION.contains(&name)
}

fn of_type(value: Type) -> Target {
    let id = match value {
        Type::Bool => return Target::Bool,
        Type::Bytes => return Target::Bytes,
        Type::Text => return Target::Text,
        Type::Double => return Target::Literal(Literal::Double),
        Type::Int32 => return Target::Literal(Literal::Int32),
        Type::Int64 => return Target::Literal(Literal::Int64),
        Type::Message(id) => id,
    };
    let message = Messages::v1_36().get(id);
    match message.form {
        Form::Object => Target::Struct(id),
        Form::List => message.fields.first().map_or(Target::Anything, |items| {
            Target::List(ValueType::Item(items))
        }),
        Form::Either => Target::Either(id),
        Form::IntOrString => Target::Literal(Literal::IntOrString),
        Form::Json => Target::Json,
        Form::MicroTime => Target::Time(Layout::Micro),
        Form::Quantity => Target::Literal(Literal::Quantity),
        Form::Time => Target::Time(Layout::Rfc3339),
    }
}

/// Returns the definition of a message of Kubernetes 1.36.
pub(super) fn message(id: MessageId) -> &'static Message {
    Messages::v1_36().get(id)
}

/// Returns a field of a struct, or of a struct that is inlined in it.
///
/// Also returns the names of the types of the inlined structs that contain the field, in reverse order.
pub(super) fn member(id: MessageId, name: &str) -> Option<(Vec<&'static str>, &'static Field)> {
    let fields = &message(id).fields;
    let own = fields
        .iter()
        .find(|field| !field.is_inline() && field.name == name);
    if let Some(field) = own {
        return Some((Vec::new(), field));
    }
    let mut inlined = fields.iter().filter_map(|field| match field.value {
        Type::Message(inner) if field.is_inline() => {
            let (mut names, field) = member(inner, name)?;
            names.push(message(inner).type_name());
            Some((names, field))
        }
        _ => None,
    });
    inlined.next()
}

/// Returns the two fields of a message of the form [`Form::Either`]: the schema, and the alternative to it.
///
/// # Panics
///
/// Panics if the message has another form. Each such message has two fields.
pub(super) fn either(id: MessageId) -> (&'static Field, &'static Field) {
    let fields = message(id).fields.as_slice();
    let [first, second] = fields else {
        panic!("the message has {} fields", fields.len());
    };
    match second.value {
        Type::Message(_) if second.container == Container::One => (second, first),
        _ => (first, second),
    }
}

/// Returns the name of a member that every object of a kind has, as Go's decoder shows it.
pub(super) fn type_meta(name: &str) -> Option<&'static str> {
    ["apiVersion", "kind"]
        .into_iter()
        .find(|known| *known == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::kinds::Kinds;
    use crate::kinds::schema::{Definition, Schema, Structure};

    fn item(list: ValueType) -> ValueType {
        match list.target() {
            Target::List(item) => item,
            other => panic!("no list: {other:?}"),
        }
    }

    /// Appends to `found` each field of `definition` that `value_type` does not have. Does the same for the nested
    /// types of `definition`.
    fn missing(
        definition: &'static Definition,
        value_type: ValueType,
        seen: &mut BTreeSet<&'static str>,
        found: &mut Vec<String>,
    ) {
        if !seen.insert(definition.full_name) {
            return;
        }
        for (name, field) in definition.fields() {
            let Some(below) = value_type.member(name) else {
                found.push(format!("{}.{name}", definition.full_name));
                continue;
            };
            match field.structure() {
                Structure::Struct(inner) => missing(inner, below, seen, found),
                Structure::List(Some(inner)) => missing(inner, item(below), seen, found),
                Structure::List(None) | Structure::Map | Structure::Leaf => {}
            }
        }
    }

    #[test]
    fn every_openapi_field_has_a_type() {
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for kind in Kinds::builtin().iter() {
            let value_type = ValueType::of(kind);
            if let Some(definition) = Schema::builtin().of_kind(&kind.api_version(), &kind.kind) {
                missing(definition, value_type, &mut seen, &mut found);
            }
        }
        assert_eq!(found, [""; 0]);
        assert!(seen.len() > 400, "{}", seen.len());
    }

    #[test]
    fn a_nested_kind_has_apiversion_and_kind() {
        let set = ValueType::named("apps/v1", "StatefulSet");
        let spec = set.member("spec").unwrap();
        let claim = item(spec.member("volumeClaimTemplates").unwrap());
        assert!(claim.member("apiVersion").is_some());
        let template = spec.member("template").unwrap();
        assert!(template.member("apiVersion").is_none());
    }
}
