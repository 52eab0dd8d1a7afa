//! Defines how the values of built-in kinds are merged, by the table of messages.
//!
//! Guarantees: the types are those that Kubernetes derives from its OpenAPI documents (`schemaconv`).

use kube_informer_protobuf::{
    Container, Field, Form, ListType, MapType, MessageId, Messages, Presence, Type as Wire,
};
use serde_json::{Value, json};

use super::atom::{Atom, Fields, Identity, Keys, List, Map, Scalar, Type};
use crate::typed::{FIELDS_V1, ValueType};

/// The type whose values have one owner, whatever they are.
const RAW_EXTENSION: &str = "k8s.io.apimachinery.pkg.runtime.RawExtension";

impl ValueType {
    pub(super) fn atom(self) -> Atom<'static> {
        match self {
            ValueType::Message(id) => of_message(id, None),
            ValueType::Item(field) => of_value(field.value, None),
            ValueType::TypeMeta => scalar(Scalar::Text),
            ValueType::Field(field) => match field.container {
                Container::One => of_value(field.value, field.map_type()),
                Container::List => list(field),
                Container::Map => Atom {
                    map: Some(Map {
                        is_atomic: field.map_type() == Some(MapType::Atomic),
                        member: Some(Type::Builtin(ValueType::Item(field))),
                        fields: Fields::None,
                    }),
                    ..Atom::default()
                },
            },
            ValueType::Anything
            | ValueType::Custom
            | ValueType::Unknown
            | ValueType::Operations
            | ValueType::Operation => Type::Deduced.atom(),
        }
    }

    /// Returns the default of a member that identifies a list item.
    pub(super) fn key_default(self, name: &str) -> Option<Value> {
        let ValueType::Field(field) = self.member(name)? else {
            return None;
        };
        if let Some(text) = field.openapi_default() {
            return serde_json::from_str(text).expect("the defaults in the table are JSON");
        }
        let has_zero = field.container == Container::One && field.presence == Presence::Always;
        match field.value {
            _ if !has_zero => None,
            Wire::Bool => Some(json!(false)),
            Wire::Text => Some(json!("")),
            Wire::Double | Wire::Int32 | Wire::Int64 => Some(json!(0)),
            Wire::Bytes | Wire::Message(_) => None,
        }
    }
}

fn of_value(value: Wire, map_type: Option<MapType>) -> Atom<'static> {
    match value {
        Wire::Bool => scalar(Scalar::Boolean),
        Wire::Bytes | Wire::Text => scalar(Scalar::Text),
        Wire::Double | Wire::Int32 | Wire::Int64 => scalar(Scalar::Numeric),
        Wire::Message(id) => of_message(id, map_type),
    }
}

/// Returns the type of a message. `map_type` is what a field declares about its value.
fn of_message(id: MessageId, map_type: Option<MapType>) -> Atom<'static> {
    let message = Messages::v1_36().get(id);
    match message.form {
        Form::Quantity | Form::Time | Form::MicroTime => scalar(Scalar::Any),
        Form::List => message.fields.first().map_or_else(Atom::default, list),
        Form::Json if message.name == RAW_EXTENSION => Type::Untyped.atom(),
        Form::Json if message.name == FIELDS_V1 => Atom {
            map: Some(Map {
                is_atomic: false,
                member: Some(Type::Deduced),
                fields: Fields::None,
            }),
            ..Atom::default()
        },
        Form::IntOrString | Form::Json | Form::Either => Type::Deduced.atom(),
        Form::Object => Atom {
            map: Some(Map {
                is_atomic: map_type.map_or(message.is_atomic, |kind| kind == MapType::Atomic),
                // An object without fields accepts any members.
                member: (message.fields.is_empty() && !message.is_kind).then_some(Type::Deduced),
                fields: Fields::Builtin(ValueType::Message(id)),
            }),
            ..Atom::default()
        },
    }
}

fn scalar(scalar: Scalar) -> Atom<'static> {
    Atom {
        scalar: Some(scalar),
        ..Atom::default()
    }
}

fn list(field: &'static Field) -> Atom<'static> {
    let identity = match field.list_type() {
        None | Some(ListType::Atomic) => Identity::Atomic,
        Some(ListType::Set) => Identity::Value,
        Some(ListType::Map(keys)) => Identity::Keys(Keys::Joined(keys)),
    };
    Atom {
        list: Some(List {
            item: Type::Builtin(ValueType::Item(field)),
            identity,
        }),
        ..Atom::default()
    }
}
