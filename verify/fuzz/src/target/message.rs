//! Fuzz target for the decoder of protobuf messages.
//!
//! Decoding a message into a Kubernetes type must yield the same object as decoding the message into JSON,
//! and then the JSON into the type. An object must not change if it is encoded and decoded again.

mod script;

use std::fmt::Debug;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Event, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_core::Resource;
use kube_informer_protobuf::{
    Error, MessageId, Messages, Missing, Options, WireFields, decode, encode,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::planted::Bug;

/// The informer's limits for decoding an object.
const OPTIONS: Options = Options {
    depth: 127,
    containers: 100_000,
    values: 100_000,
    missing: Missing::Nothing,
};

/// Maximum length of an error message in bytes.
const ERROR_BYTES: usize = 64 << 10;

/// Decodes a message into a Kubernetes type and into JSON, and compares the results.
///
/// The first byte selects the type, and whether [`script::message`] generates the message from the rest.
pub(super) fn run(data: &[u8], bug: Option<Bug>) -> String {
    let (first, rest) = data.split_first().unwrap_or((&0, &[]));
    let kind = first >> 1;
    match kind % 5 {
        0 => judge::<Pod>(first & 1 == 1, rest, bug),
        1 => judge::<Deployment>(first & 1 == 1, rest, bug),
        2 => judge::<Event>(first & 1 == 1, rest, bug),
        3 => judge::<Secret>(first & 1 == 1, rest, bug),
        _ => judge::<CustomResourceDefinition>(first & 1 == 1, rest, bug),
    }
}

fn judge<K>(is_script: bool, rest: &[u8], bug: Option<Bug>) -> String
where
    K: DeserializeOwned + Debug + Resource<DynamicType = ()>,
{
    let messages = Messages::builtin();
    let id = messages.of_kind(&K::api_version(&()), &K::kind(&()));
    let id = id.expect("the kind is in the table");
    let bytes = if is_script {
        script::message(messages.get(id), rest)
    } else {
        rest.to_vec()
    };
    let typed = decode::<K>(id, &spoilt(id, &bytes, bug), OPTIONS);
    let way = match decode::<Value>(id, &bytes, OPTIONS) {
        Ok(value) => {
            let expected = serde_json::from_value::<K>(value).map_err(|_| ());
            let found = typed.as_ref().map_err(|_| ());
            assert_eq!(
                format!("{found:?}"),
                format!("{:?}", expected.as_ref()),
                "the type differs from the JSON value"
            );
            if expected.is_ok() {
                "an object"
            } else {
                "another type"
            }
            .to_owned()
        }
        Err(error) => {
            if let Err(typed) = &typed {
                is_presentable(typed);
            }
            is_presentable(&error);
            error
                .reason()
                .chars()
                .take_while(|it| !it.is_ascii_digit())
                .collect()
        }
    };
    encodes_alike(id, &bytes);
    way
}

/// Checks that an object does not change if it is encoded and decoded, except for members that are null.
///
/// For example, an empty `fieldsV1` decodes to null, as in Go. Encoding omits this null, so decoding again
/// returns an object without `fieldsV1`.
fn encodes_alike(id: MessageId, bytes: &[u8]) {
    let options = Options {
        missing: Missing::Zero,
        ..OPTIONS
    };
    let Ok(value) = decode::<Value>(id, bytes, options) else {
        return;
    };
    let encoded = encode(id, &value).expect("what was decoded can be encoded");
    let again = decode::<Value>(id, &encoded, options).expect("what was encoded can be decoded");
    assert_eq!(
        without_nulls(again),
        without_nulls(value),
        "the object is another one if it is encoded and decoded"
    );
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value)))
                .collect()
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Checks that an error message is one line of bounded length.
fn is_presentable(error: &Error) {
    assert!(error.to_string().len() <= ERROR_BYTES);
    assert!(
        !error.reason().contains(char::is_control),
        "{error:?} is not one line"
    );
}

/// Returns a copy of `bytes`, damaged if `bug` is `UnknownFieldEndsMessage`.
///
/// The damaged copy ends after the first unknown field.
fn spoilt(id: MessageId, bytes: &[u8], bug: Option<Bug>) -> Vec<u8> {
    if bug != Some(Bug::UnknownFieldEndsMessage) {
        return bytes.to_vec();
    }
    let message = Messages::builtin().get(id);
    let mut kept = bytes.len();
    for end in 0..bytes.len() {
        let last = WireFields::new(&bytes[..end]).last();
        if let Some(Ok((number, _))) = last
            && message.position(number).is_none()
        {
            kept = end;
            break;
        }
    }
    bytes[..kept].to_vec()
}
