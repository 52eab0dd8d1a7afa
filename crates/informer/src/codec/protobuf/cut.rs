//! Removes fields from the message of an object, according to the pruning rules of an informer.
//!
//! Guarantees:
//! - the values of the remaining fields do not change, and neither does their order;
//! - the rules use the names of the JSON encoding, and have the same effect as on an object in JSON.

use std::borrow::Cow;

use kube_informer_protobuf::{
    Container, Envelope, Field, Form, Message, MessageId, Messages, Presence, Type, WireError,
    WireFields, WireValue, put_bytes, put_fixed64, put_varint,
};

use super::{super::json, Schema, envelope};
use crate::pruning::{Fate, Members};

/// Returns the object without the fields that `members` drops, in the same envelope.
///
/// Invalid protobuf is returned unchanged.
pub(in crate::codec) fn cut<'a>(
    members: &Members,
    Schema(id): Schema,
    bytes: &'a [u8],
) -> Cow<'a, [u8]> {
    let envelope = envelope(bytes);
    let raw = envelope.as_ref().map_or(bytes, |envelope| envelope.raw);
    let mut rest = Vec::with_capacity(raw.len());
    if of_message(members, id, raw, &mut rest).is_err() {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(match envelope {
        Some(Envelope {
            api_version, kind, ..
        }) => Envelope::wrap(&api_version, &kind, &rest),
        None => rest,
    })
}

/// Appends to `to` those fields of the message `raw` that the rules in `members` keep.
fn of_message(
    members: &Members,
    id: MessageId,
    raw: &[u8],
    to: &mut Vec<u8>,
) -> Result<(), WireError> {
    let message = Messages::builtin().get(id);
    match message.form {
        Form::Object => {}
        // In JSON, this message is the value of its only field. The rules apply to this value.
        Form::List | Form::Either => {
            for field in WireFields::new(raw) {
                let (number, value) = field?;
                match field_of(message, number) {
                    Some(field) => put_partly(members, field, (number, value), to)?,
                    None => put(number, value, to),
                }
            }
            return Ok(());
        }
        Form::Json => {
            for field in WireFields::new(raw) {
                match field? {
                    (1, WireValue::Bytes(text)) => put_bytes(1, &json::cut(members, text), to),
                    (number, value) => put(number, value, to),
                }
            }
            return Ok(());
        }
        _ => {
            to.extend_from_slice(raw);
            return Ok(());
        }
    }
    for field in WireFields::new(raw) {
        let (number, value) = field?;
        let found = field_of(message, number);
        match (found, value) {
            // In JSON, the members of the inner message are members of this message.
            (Some(field), WireValue::Bytes(inner)) if field.presence == Presence::Inline => {
                let mut kept = Vec::with_capacity(inner.len());
                match field.value {
                    Type::Message(id) => of_message(members, id, inner, &mut kept)?,
                    _ => kept.extend_from_slice(inner),
                }
                put_bytes(number, &kept, to);
            }
            (Some(field), _) => {
                let fate = members.named().get(field.name);
                put_kept(fate.unwrap_or(members.others()), found, (number, value), to)?;
            }
            // The table has no name for a field of a newer server.
            (None, _) => put_kept(members.others(), None, (number, value), to)?,
        }
    }
    Ok(())
}

fn field_of(message: &'static Message, number: u32) -> Option<&'static Field> {
    message.position(number).map(|at| &message.fields[at])
}

/// Applies the pruning rule `fate` to one field, and appends the remaining part of the field to `to`.
fn put_kept(
    fate: &Fate,
    field: Option<&'static Field>,
    (number, value): (u32, WireValue<'_>),
    to: &mut Vec<u8>,
) -> Result<(), WireError> {
    match (fate, field) {
        (Fate::Cut, _) => {}
        (Fate::Partly(members), Some(field)) => {
            return put_partly(members, field, (number, value), to);
        }
        (Fate::Kept, _) | (Fate::Partly(_), None) => put(number, value, to),
    }
    Ok(())
}

/// Applies the rules in `members` to the value of a field, and appends the field to `to`.
fn put_partly(
    members: &Members,
    field: &'static Field,
    (number, value): (u32, WireValue<'_>),
    to: &mut Vec<u8>,
) -> Result<(), WireError> {
    match (field.container, field.value, value) {
        (Container::Map, value_type, WireValue::Bytes(entry)) => {
            put_entry(members, value_type, (number, entry), to)
        }
        (_, Type::Message(id), WireValue::Bytes(inner)) => {
            let mut kept = Vec::with_capacity(inner.len());
            of_message(members, id, inner, &mut kept)?;
            put_bytes(number, &kept, to);
            Ok(())
        }
        _ => {
            put(number, value, to);
            Ok(())
        }
    }
}

/// Applies the pruning rule for the entry's key to one map entry, and appends what remains to `to`.
///
/// `members` contains the rules by key. Appends nothing if the rule removes the whole entry.
fn put_entry(
    members: &Members,
    value_type: Type,
    (number, entry): (u32, &[u8]),
    to: &mut Vec<u8>,
) -> Result<(), WireError> {
    let (mut key, mut inner) = (&[][..], None);
    for field in WireFields::new(entry) {
        match field? {
            (1, value) => key = value.bytes()?,
            (2, value) => inner = Some(value),
            _ => {}
        }
    }
    let fate = std::str::from_utf8(key).ok();
    let fate = fate.and_then(|key| members.named().get(key));
    match (fate.unwrap_or(members.others()), value_type, inner) {
        (Fate::Cut, ..) => {}
        (Fate::Partly(members), Type::Message(id), Some(WireValue::Bytes(inner))) => {
            let mut kept = Vec::new();
            put_bytes(1, key, &mut kept);
            let mut value = Vec::with_capacity(inner.len());
            of_message(members, id, inner, &mut value)?;
            put_bytes(2, &value, &mut kept);
            put_bytes(number, &kept, to);
        }
        _ => put_bytes(number, entry, to),
    }
    Ok(())
}

fn put(number: u32, value: WireValue<'_>, to: &mut Vec<u8>) {
    match value {
        WireValue::Varint(value) => put_varint(number, value, to),
        WireValue::Fixed64(bits) => put_fixed64(number, bits, to),
        WireValue::Bytes(bytes) => put_bytes(number, bytes, to),
        // Kubernetes sends neither; a field of such a type is unknown and is skipped.
        WireValue::Group | WireValue::Fixed32 => {}
    }
}
