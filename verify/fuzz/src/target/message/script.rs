//! Generates protobuf messages from the bytes of a fuzz input. These bytes are called the script.
//!
//! The length of each nested message is correct, unlike in most mutations of a message. The nesting depth is
//! limited. Fields can be in any order, occur several times, be unknown, or have a wrong wire type.

use kube_informer_protobuf::{
    Container, Field, Form, Message, Messages, Type, put_bytes, put_fixed64, put_varint,
};

/// Maximum nesting depth of the generated messages, above the decoder's limit of 127.
const DEPTH_MAX: usize = 150;

/// A field number that no Kubernetes message uses.
const UNKNOWN: u32 = 1_000;

/// Numbers in generated messages: limits of varints and integer types, and a Unix time.
const NUMBERS: [u64; 8] = [0, 1, 127, 128, 1 << 31, 1 << 32, 1_700_000_000, u64::MAX];

/// Generates a message whose fields and values the bytes in `script` determine.
pub(super) fn message(definition: &Message, script: &[u8]) -> Vec<u8> {
    let mut script = Script { rest: script };
    script.message(definition, DEPTH_MAX)
}

struct Script<'a> {
    rest: &'a [u8],
}

impl Script<'_> {
    /// Returns the next byte of the script, or `None` after its end.
    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn number(&mut self) -> u64 {
        let at = usize::from(self.next().unwrap_or(0));
        NUMBERS[at % NUMBERS.len()]
    }

    fn text(&mut self) -> Vec<u8> {
        let length = usize::from(self.next().unwrap_or(0) % 8);
        let (text, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        text.to_vec()
    }

    fn message(&mut self, definition: &Message, depth_left: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(operation) = self.next() {
            match operation % 16 {
                0 | 1 => break,
                2 => put_varint(UNKNOWN, self.number(), &mut bytes),
                3 => put_bytes(UNKNOWN, &self.text(), &mut bytes),
                _ if definition.fields.is_empty() => self.special(definition.form, &mut bytes),
                operation => {
                    let at = usize::from(self.next().unwrap_or(0)) % definition.fields.len();
                    let field = &definition.fields[at];
                    if operation == 4 {
                        // Often a wire type that does not fit.
                        put_varint(field.number(), self.number(), &mut bytes);
                    } else {
                        self.field(field, depth_left, &mut bytes);
                    }
                }
            }
        }
        bytes
    }

    /// Appends one field to `bytes`, the encoding of a message with a special JSON form such as
    /// [`Form::Time`].
    ///
    /// The table of messages does not list the fields of such messages. The form determines the field
    /// instead.
    fn special(&mut self, form: Form, bytes: &mut Vec<u8>) {
        match form {
            Form::Time | Form::MicroTime => {
                put_varint(
                    1 + u32::from(self.next().unwrap_or(0) % 2),
                    self.number(),
                    bytes,
                );
            }
            Form::IntOrString if self.next().unwrap_or(0).is_multiple_of(2) => {
                put_varint(
                    1 + u32::from(self.next().unwrap_or(0) % 2),
                    self.number(),
                    bytes,
                );
            }
            Form::IntOrString => put_bytes(3, &self.text(), bytes),
            _ => put_bytes(1, &self.text(), bytes),
        }
    }

    fn field(&mut self, field: &Field, depth_left: usize, bytes: &mut Vec<u8>) {
        if field.container != Container::Map {
            self.value(field.number(), field.value, depth_left, bytes);
            return;
        }
        let mut entry = Vec::new();
        put_bytes(1, &self.text(), &mut entry);
        self.value(2, field.value, depth_left, &mut entry);
        put_bytes(field.number(), &entry, bytes);
    }

    fn value(&mut self, number: u32, value: Type, depth_left: usize, bytes: &mut Vec<u8>) {
        match value {
            Type::Bool | Type::Int32 | Type::Int64 => put_varint(number, self.number(), bytes),
            Type::Double => {
                let doubles = [0.0, 1.5, 3.0, f64::NAN, -0.0, 1e300];
                let at = usize::from(self.next().unwrap_or(0)) % doubles.len();
                put_fixed64(number, doubles[at].to_bits(), bytes);
            }
            Type::Text | Type::Bytes => put_bytes(number, &self.text(), bytes),
            Type::Message(_) if depth_left == 0 => put_bytes(number, &[], bytes),
            Type::Message(id) => {
                let inner = self.message(Messages::builtin().get(id), depth_left - 1);
                put_bytes(number, &inner, bytes);
            }
        }
    }
}
