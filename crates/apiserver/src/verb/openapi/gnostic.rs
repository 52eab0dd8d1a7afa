//! Encodes the document at `/openapi/v2` as protobuf, as Go clients request it.
//!
//! Guarantees: the message is `openapi.v2.Document` of gnostic. A member of the document that the tables of this
//! module do not name is left out, unless its name starts with `x-`.

use kube_informer_protobuf::{put_bytes, put_fixed64, put_varint};
use serde_json::Value;

use crate::yaml;

/// How the value of a member becomes a field of a message.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Bool,
    Integer,
    Double,
    /// A value of any type, as YAML.
    Any,
    /// One field per item of a list.
    Each(&'static Form),
    /// A message that has only repeated fields with the number 1: a list, or one value.
    Items(&'static Form),
    /// A message with one field of this number.
    Wrapped(u32, &'static Form),
    /// A map, as the fields of this number of a message; each is a message of a name and a value.
    Named(u32, &'static Form),
    Message(&'static Message),
    /// A body parameter, or another one.
    Parameter,
    /// `true`, `false` or a schema.
    BoolOrSchema,
}

/// A message: its members with their numbers, and the number of the members that start with `x-`.
struct Message {
    members: &'static [(&'static str, u32, Form)],
    extensions: Option<u32>,
}

static DOCUMENT: Message = Message {
    members: &[
        ("swagger", 1, Form::Text),
        ("info", 2, Form::Message(&INFO)),
        ("paths", 8, Form::Named(2, &Form::Message(&PATH))),
        ("definitions", 9, Form::Named(1, &Form::Message(&SCHEMA))),
    ],
    extensions: Some(16),
};
static INFO: Message = Message {
    members: &[("title", 1, Form::Text), ("version", 2, Form::Text)],
    extensions: Some(7),
};
static PATH: Message = Message {
    members: &[
        ("get", 2, Form::Message(&OPERATION)),
        ("put", 3, Form::Message(&OPERATION)),
        ("post", 4, Form::Message(&OPERATION)),
        ("delete", 5, Form::Message(&OPERATION)),
        ("patch", 8, Form::Message(&OPERATION)),
        ("parameters", 9, Form::Each(&Form::Parameter)),
    ],
    extensions: Some(10),
};
static OPERATION: Message = Message {
    members: &[
        ("produces", 6, Form::Each(&Form::Text)),
        ("consumes", 7, Form::Each(&Form::Text)),
        ("parameters", 8, Form::Each(&Form::Parameter)),
        (
            "responses",
            9,
            Form::Named(1, &Form::Wrapped(1, &Form::Message(&RESPONSE))),
        ),
    ],
    extensions: Some(13),
};
static RESPONSE: Message = Message {
    members: &[
        ("description", 1, Form::Text),
        ("schema", 2, Form::Wrapped(1, &Form::Message(&SCHEMA))),
    ],
    extensions: Some(5),
};
static BODY_PARAMETER: Message = Message {
    members: &[
        ("name", 2, Form::Text),
        ("in", 3, Form::Text),
        ("required", 4, Form::Bool),
        ("schema", 5, Form::Message(&SCHEMA)),
    ],
    extensions: None,
};
static QUERY_PARAMETER: Message = Message {
    members: &[
        ("required", 1, Form::Bool),
        ("in", 2, Form::Text),
        ("name", 4, Form::Text),
        ("type", 6, Form::Text),
        ("uniqueItems", 20, Form::Bool),
    ],
    extensions: None,
};
static PATH_PARAMETER: Message = Message {
    members: &[
        ("required", 1, Form::Bool),
        ("in", 2, Form::Text),
        ("name", 4, Form::Text),
        ("type", 5, Form::Text),
        ("uniqueItems", 18, Form::Bool),
    ],
    extensions: None,
};
static SCHEMA: Message = Message {
    members: &[
        ("$ref", 1, Form::Text),
        ("format", 2, Form::Text),
        ("title", 3, Form::Text),
        ("description", 4, Form::Text),
        ("default", 5, Form::Any),
        ("multipleOf", 6, Form::Double),
        ("maximum", 7, Form::Double),
        ("exclusiveMaximum", 8, Form::Bool),
        ("minimum", 9, Form::Double),
        ("exclusiveMinimum", 10, Form::Bool),
        ("maxLength", 11, Form::Integer),
        ("minLength", 12, Form::Integer),
        ("pattern", 13, Form::Text),
        ("maxItems", 14, Form::Integer),
        ("minItems", 15, Form::Integer),
        ("uniqueItems", 16, Form::Bool),
        ("maxProperties", 17, Form::Integer),
        ("minProperties", 18, Form::Integer),
        ("required", 19, Form::Each(&Form::Text)),
        ("enum", 20, Form::Each(&Form::Any)),
        ("additionalProperties", 21, Form::BoolOrSchema),
        ("type", 22, Form::Items(&Form::Text)),
        ("items", 23, Form::Items(&Form::Message(&SCHEMA))),
        ("properties", 25, Form::Named(1, &Form::Message(&SCHEMA))),
        ("example", 30, Form::Any),
    ],
    extensions: Some(31),
};

/// Returns the document as a message.
pub(crate) fn encode(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    DOCUMENT.put(document, &mut out);
    out
}

impl Message {
    fn put(&self, object: &Value, out: &mut Vec<u8>) {
        for (member, number, form) in self.members {
            if let Some(value) = object.get(member) {
                form.put(*number, value, out);
            }
        }
        let Some(number) = self.extensions else {
            return;
        };
        let members = object.as_object().into_iter().flatten();
        for (name, value) in members.filter(|(name, _)| name.starts_with("x-")) {
            put_message(number, out, |out| put_named(name, &Form::Any, value, out));
        }
    }
}

impl Form {
    /// Appends a field; a value of another type is left out.
    fn put(self, number: u32, value: &Value, out: &mut Vec<u8>) {
        match self {
            Form::Text => {
                if let Some(text) = value.as_str() {
                    put_bytes(number, text.as_bytes(), out);
                }
            }
            Form::Bool => put_varint(number, u64::from(value == true), out),
            Form::Integer => {
                #[expect(clippy::cast_sign_loss, reason = "the encoding of a negative number")]
                put_varint(number, value.as_i64().unwrap_or(0) as u64, out);
            }
            Form::Double => put_fixed64(number, value.as_f64().unwrap_or(0.0).to_bits(), out),
            Form::Any => put_message(number, out, |out| {
                let text = yaml::to_text(value).unwrap_or_default();
                put_bytes(2, text.as_bytes(), out);
            }),
            Form::Each(form) => {
                let items = value.as_array().into_iter().flatten();
                items.for_each(|item| form.put(number, item, out));
            }
            Form::Items(form) => put_message(number, out, |out| match value {
                Value::Array(items) => items.iter().for_each(|item| form.put(1, item, out)),
                value => form.put(1, value, out),
            }),
            Form::Wrapped(inner, form) => {
                put_message(number, out, |out| form.put(inner, value, out));
            }
            Form::Named(inner, form) => put_message(number, out, |out| {
                for (name, value) in value.as_object().into_iter().flatten() {
                    put_message(inner, out, |out| put_named(name, form, value, out));
                }
            }),
            Form::Message(message) => put_message(number, out, |out| message.put(value, out)),
            Form::Parameter => put_message(number, out, |out| {
                put_message(1, out, |out| put_parameter(value, out));
            }),
            Form::BoolOrSchema => put_message(number, out, |out| match value {
                Value::Bool(value) => put_varint(2, u64::from(*value), out),
                schema => put_message(1, out, |out| SCHEMA.put(schema, out)),
            }),
        }
    }
}

fn put_parameter(parameter: &Value, out: &mut Vec<u8>) {
    let (number, message) = match parameter["in"].as_str() {
        Some("body") => return put_message(1, out, |out| BODY_PARAMETER.put(parameter, out)),
        Some("path") => (4, &PATH_PARAMETER),
        _ => (3, &QUERY_PARAMETER),
    };
    put_message(2, out, |out| {
        put_message(number, out, |out| message.put(parameter, out));
    });
}

/// Appends the fields of a message of a name and a value.
fn put_named(name: &str, form: &Form, value: &Value, out: &mut Vec<u8>) {
    put_bytes(1, name.as_bytes(), out);
    form.put(2, value, out);
}

/// Appends a field whose value is the message that `fill` writes.
fn put_message(number: u32, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut message = Vec::new();
    fill(&mut message);
    put_bytes(number, &message, out);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a field of a length below 128.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let length = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, length], bytes].concat()
    }

    #[test]
    fn maps_are_messages_of_names_and_values() {
        let document = json!({
            "swagger": "2.0",
            "definitions": {"a": {"$ref": "#/b", "x-k": "v", "additionalProperties": true}},
            "unknown": 1,
        });
        let extension = [field(1, b"x-k"), field(2, &field(2, b"v\n"))].concat();
        let mut schema = field(1, b"#/b");
        // The numbers above 15 have two bytes.
        schema.extend([0xaa, 0x01, 2, 0x10, 1]);
        schema.extend([0xfa, 0x01, u8::try_from(extension.len()).unwrap()]);
        schema.extend(extension);
        let named = [field(1, b"a"), field(2, &schema)].concat();
        let expected = [field(1, b"2.0"), field(9, &field(1, &named))].concat();
        assert_eq!(encode(&document), expected);
    }
}
