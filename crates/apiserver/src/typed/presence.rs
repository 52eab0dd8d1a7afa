//! Adds the members that Go writes for fields without a value, and removes those that it omits.
//!
//! Guarantees: the members of the result are those of an object that Kubernetes has stored and reads again. So an empty
//! list is null, because it is absent from the stored protobuf message. The kinds of [`STORED_AS_JSON`] keep it.

use kube_informer_protobuf::{Container, Field, Form, MessageId, Presence, Type};
use serde_json::{Map, Value, json};

use super::DEFAULTS_BYTES_MAX;
use super::value_type::{Target, ValueType, either, message, type_meta};
use crate::kinds::Kind;

/// The groups whose objects Kubernetes stores as JSON.
const STORED_AS_JSON: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Go's zero time in the two forms of times.
const ZERO_TIMES: [&str; 2] = ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"];

/// The type whose service account has two names.
const POD_SPEC: &str = "k8s.io.api.core.v1.PodSpec";

/// Number of bytes of a member in JSON besides its name, at least: quotes, colon, comma and value.
const QUOTES_BYTES: usize = 5;

/// Completes the values of an object.
struct Writer {
    /// Whether an empty list or map is written as such.
    keeps_empty: bool,
    /// Whether both names of a service account are set, as when Kubernetes converts an object to its internal type.
    converts: bool,
    /// How many more bytes can be added.
    left: usize,
}

/// Brings an object into the form in which Kubernetes returns it: the metadata, and all of a built-in kind.
pub(crate) fn complete(kind: &Kind, object: &mut Map<String, Value>) {
    complete_as(kind, object, true);
}

/// Completes an object, with or without the conversion to the internal type.
pub(super) fn complete_as(kind: &Kind, object: &mut Map<String, Value>, converts: bool) {
    let mut writer = Writer {
        keeps_empty: STORED_AS_JSON.contains(&kind.group.as_str()),
        converts,
        ..Writer::OF_METADATA
    };
    match ValueType::of(kind) {
        ValueType::Message(id) => writer.members(id, object),
        _ => {
            if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
                complete_metadata(metadata);
            }
        }
    }
}

/// Brings the metadata of an object into the form in which Kubernetes returns it.
pub(crate) fn complete_metadata(metadata: &mut Map<String, Value>) {
    if let Target::Struct(id) = ValueType::metadata().target() {
        let mut writer = Writer::OF_METADATA;
        writer.members(id, metadata);
    }
}

/// Returns what a null in a list or a map is.
pub(super) fn zero_item(value_type: ValueType) -> Value {
    match (value_type, value_type.target()) {
        (_, Target::Bytes) => json!(""),
        (_, Target::Struct(_)) => json!({}),
        (ValueType::Item(field), _) => zero(field.value),
        _ => Value::Null,
    }
}

impl Writer {
    const OF_METADATA: Writer = Writer {
        keeps_empty: false,
        converts: false,
        left: DEFAULTS_BYTES_MAX,
    };

    fn members(&mut self, id: MessageId, members: &mut Map<String, Value>) {
        let message = message(id);
        if self.converts && message.name == POD_SPEC {
            name_service_account(members);
        }
        for field in &message.fields {
            if field.is_inline() {
                if let Type::Message(inner) = field.value {
                    self.members(inner, members);
                }
                continue;
            }
            let Some(value) = members.get_mut(field.name) else {
                if let Some(left) = self.left.checked_sub(field.name.len() + QUOTES_BYTES)
                    && let Some(zero) = self.written(field)
                {
                    self.left = left;
                    members.insert(field.name.to_owned(), zero);
                }
                continue;
            };
            let is_sent = !value.is_null();
            self.field(field, value);
            if is_omitted(field, value, is_sent) {
                members.remove(field.name);
            } else if !self.keeps_empty && field.container != Container::One && is_empty(value) {
                *value = Value::Null;
            }
        }
        if message.is_kind {
            members.retain(|name, value| type_meta(name).is_none() || *value != "");
        }
    }

    /// Returns what is written for a field without a value.
    fn written(&mut self, field: &Field) -> Option<Value> {
        match (field.presence, field.container) {
            (Presence::Nullable, _) | (Presence::Always, Container::List | Container::Map) => {
                Some(Value::Null)
            }
            (Presence::Always, Container::One) => Some(self.zero(field.value)),
            _ => None,
        }
    }

    /// Completes the value of a field.
    fn field(&mut self, field: &Field, value: &mut Value) {
        match (field.container, &mut *value) {
            (Container::One, Value::Null) if field.presence == Presence::Always => {
                *value = self.zero(field.value);
            }
            (Container::One, value) => self.value(field.value, value),
            (Container::List, Value::Array(items)) => {
                for item in items {
                    self.value(field.value, item);
                }
            }
            (Container::Map, Value::Object(members)) => {
                for item in members.values_mut() {
                    self.value(field.value, item);
                }
            }
            _ => {}
        }
    }

    fn value(&mut self, value_type: Type, value: &mut Value) {
        let Type::Message(id) = value_type else {
            return;
        };
        match (message(id).form, value) {
            (Form::Object, Value::Object(members)) => self.members(id, members),
            (Form::List, value) => {
                for items in &message(id).fields {
                    self.field(items, value);
                }
            }
            // The decoder keeps the zero time, because a pointer to it is sent.
            (Form::Time | Form::MicroTime, value)
                if ZERO_TIMES.iter().any(|zero| value == zero) =>
            {
                *value = Value::Null;
            }
            (Form::Either, value @ Value::Object(_)) => self.value(either(id).0.value, value),
            (Form::Either, value) => {
                let other = either(id).1;
                // The decoder keeps a value that is neither, because a pointer to an empty struct is sent.
                if other.container == Container::List && !value.is_array() {
                    *value = Value::Null;
                }
                self.field(other, value);
            }
            _ => {}
        }
    }

    fn zero(&mut self, value_type: Type) -> Value {
        let mut zero = zero(value_type);
        self.value(value_type, &mut zero);
        zero
    }
}

/// Sets both names of the service account, of which `serviceAccount` is the older one, as Kubernetes' conversions do.
///
/// Values of a wrong type, which only a direct call can store, stay as they are.
fn name_service_account(spec: &mut Map<String, Value>) {
    let names = ["serviceAccountName", "serviceAccount"];
    let values = || names.iter().filter_map(|name| spec.get(*name));
    let mut texts = values().filter_map(Value::as_str);
    let Some(text) = texts.find(|text| !text.is_empty()).map(|text| json!(text)) else {
        return;
    };
    if values().all(|value| value.is_string() || value.is_null()) {
        for name in names {
            spec.insert(name.to_owned(), text.clone());
        }
    }
}

/// Returns the zero value of a type, without the members of a struct.
fn zero(value_type: Type) -> Value {
    let id = match value_type {
        Type::Bool => return json!(false),
        Type::Bytes => return Value::Null,
        Type::Double | Type::Int32 | Type::Int64 => return json!(0),
        Type::Text => return json!(""),
        Type::Message(id) => id,
    };
    match message(id).form {
        Form::Object => json!({}),
        Form::IntOrString => json!(0),
        Form::Quantity => json!("0"),
        Form::List => json!([]),
        Form::Either | Form::Json | Form::MicroTime | Form::Time => Value::Null,
    }
}

/// Returns whether Go omits a field. `is_sent` is whether it had a value, which can be null now.
fn is_omitted(field: &Field, value: &Value, is_sent: bool) -> bool {
    match field.presence {
        Presence::Always | Presence::Nullable | Presence::Inline => false,
        Presence::Sent => !is_sent,
        Presence::Nonzero => {
            let is_zero = |value: &Value| match (field.container, field.value) {
                (Container::One, Type::Message(_)) => false,
                (Container::One, _) => *value == zero(field.value),
                _ => false,
            };
            value.is_null() || is_empty(value) || is_zero(value)
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}
