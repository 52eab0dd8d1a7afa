//! Creates one object from its manifest in each encoding, and reads it in each encoding.
//!
//! Guarantees: the resulting text determines each byte of the responses, except for `managedFields` and the values that
//! `trace.rs` replaces.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use kube_informer_protobuf::{Envelope, MessageId, Messages, Missing, Options, decode, encode};
use serde_json::Value;

use crate::{
    answer::{Answer, Content, Response},
    command::Request,
    trace::{self, Owners},
};

/// The encoding of a request or a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Yaml,
    Protobuf,
}

impl Encoding {
    pub(crate) const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// Returns the name, which is also the end of the namespace of the objects that are sent in this encoding.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Protobuf => "protobuf",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// Limits that no manifest exceeds.
const OPTIONS: Options = Options {
    depth: 127,
    containers: 100_000,
    values: 100_000,
    missing: Missing::Zero,
};

/// Tag of the field `managedFields` in the metadata of an object, the last field.
const MANAGED_FIELDS: u64 = 17 << 3 | 2;

/// A manifest, which is a text in YAML.
pub(crate) struct Manifest {
    text: String,
    object: Value,
    /// The message of the kind, if the kind has one.
    message: Option<MessageId>,
}

/// What a server responds to one manifest that is sent in one encoding.
pub(crate) struct Exchange {
    pub(crate) created: Response,
    pub(crate) as_json: Response,
    pub(crate) as_yaml: Bytes,
    /// `None` for a kind without a message.
    pub(crate) as_protobuf: Option<Bytes>,
}

impl Manifest {
    /// # Errors
    /// Returns an error if the text is not an object in YAML with a name.
    pub(crate) fn parse(text: String) -> Result<Self> {
        let object: Value = serde_saphyr::from_str(&text).context("the manifest is not YAML")?;
        let word = |name| object[name].as_str().unwrap_or_default();
        let message = Messages::v1_36().of_kind(word("apiVersion"), word("kind"));
        Ok(Self {
            text,
            object,
            message,
        })
    }

    /// Returns whether the kind can be sent in this encoding.
    pub(crate) fn has(&self, encoding: Encoding) -> bool {
        encoding != Encoding::Protobuf || self.message.is_some()
    }

    pub(crate) fn name(&self) -> Result<&str> {
        let name = self.object["metadata"]["name"].as_str();
        name.context("the manifest has no name")
    }

    /// Returns the request that creates the object.
    pub(crate) fn request(&self, target: &str, encoding: Encoding) -> Result<Request> {
        let body = match encoding {
            Encoding::Json => self.object.to_string().into_bytes(),
            Encoding::Yaml => self.text.clone().into_bytes(),
            Encoding::Protobuf => {
                let message = self.message.context("the kind has no message")?;
                let word = |name| self.object[name].as_str().unwrap_or_default();
                let raw = encode(message, &self.object).map_err(|error| anyhow::anyhow!("{error}"));
                Envelope::wrap(word("apiVersion"), word("kind"), &raw?)
            }
        };
        let content_type = (
            "Content-Type".to_owned(),
            encoding.content_type().to_owned(),
        );
        Ok(Request {
            method: "POST".to_owned(),
            target: target.to_owned(),
            headers: vec![content_type],
            body,
        })
    }

    /// Returns the request that reads the object.
    pub(crate) fn read(target: &str, encoding: Encoding) -> Request {
        Request {
            method: "GET".to_owned(),
            target: target.to_owned(),
            headers: vec![("Accept".to_owned(), encoding.content_type().to_owned())],
            body: Vec::new(),
        }
    }
}

impl Exchange {
    /// Returns the text of the responses: the object in JSON, and whether the others are equal to it. `own` is the namespace of this exchange, and `all` the one in the text.
    pub(crate) fn text(&self, manifest: &Manifest, own: &str, all: &str) -> Result<String> {
        let [created, read] = [&self.created, &self.as_json].map(|response| {
            let text = trace::texts(&[Answer::Response(response.clone())], Owners::Omitted);
            text.concat().replace(own, all)
        });
        let body = |text: &str| {
            let lines = text.lines().filter(|line| line.starts_with(' '));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let mut text = read.clone();
        if body(&created) != body(&read) {
            write!(text, "created: {created}")?;
        }
        let is_of_go = |response: &Response| match &response.body {
            Content::Json(json) => json.is_of_go,
            Content::Other(_) | Content::Stream => false,
        };
        if !is_of_go(&self.created) || !is_of_go(&self.as_json) {
            writeln!(
                text,
                "json: other white space or escapes than Go's encoder writes"
            )?;
        }
        let yaml = std::str::from_utf8(&self.as_yaml).context("YAML is UTF-8")?;
        let object = self.as_json.json().context("an object is JSON")?;
        let yaml = without_managers(yaml).replace(own, all);
        let yaml = trace::yaml(&yaml, object);
        writeln!(
            text,
            "yaml: {} lines, {:016x}",
            yaml.lines().count(),
            digest(&yaml)
        )?;
        if let (Some(body), Some(message)) = (&self.as_protobuf, manifest.message) {
            let found = compared(body, message, object);
            let found = found.map_or_else(|error| format!("{error:#}"), str::to_owned);
            writeln!(text, "protobuf: {found}")?;
        }
        Ok(text)
    }
}

/// Compares an object in protobuf with the same object in JSON.
fn compared(body: &[u8], message: MessageId, json: &Value) -> Result<&'static str> {
    let body = body.strip_prefix(&Envelope::MAGIC);
    let envelope = Envelope::read(body.context("no magic bytes")?)?;
    let mut expected = json.clone();
    let members = expected.as_object_mut().context("no object")?;
    let word = |value: Option<Value>| value.and_then(|value| Some(value.as_str()?.to_owned()));
    ensure!(word(members.remove("apiVersion")).as_deref() == Some(&*envelope.api_version));
    ensure!(word(members.remove("kind")).as_deref() == Some(&*envelope.kind));
    if let Some(Value::Object(metadata)) = members.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let raw = without_managed_fields(envelope.raw)?;
    let decoded: Value =
        decode(message, &raw, OPTIONS).map_err(|error| anyhow::anyhow!("{error}"))?;
    if decoded != expected {
        return Ok("another object than in JSON");
    }
    let encoded = encode(message, &decoded).map_err(|error| anyhow::anyhow!("{error}"))?;
    if encoded != raw {
        return Ok("the object in JSON, with other bytes");
    }
    Ok("the object in JSON, with the only bytes")
}

/// Returns the message of an object without `managedFields`.
fn without_managed_fields(raw: &[u8]) -> Result<Vec<u8>> {
    let Some(rest) = raw.strip_prefix(&[1 << 3 | 2]) else {
        bail!("the first field is not the metadata");
    };
    let (length, rest) = varint(rest)?;
    let (metadata, rest) = rest
        .split_at_checked(usize::try_from(length)?)
        .context("the metadata are cut")?;
    let mut left = metadata;
    while !left.is_empty() {
        let (tag, value) = varint(left)?;
        if tag == MANAGED_FIELDS {
            break;
        }
        let (number, after) = varint(value)?;
        left = match tag & 7 {
            0 => after,
            2 => after
                .get(usize::try_from(number)?..)
                .context("a field is cut")?,
            _ => bail!("an unknown wire type"),
        };
    }
    let mut message = Vec::new();
    let kept = &metadata[..metadata.len() - left.len()];
    kube_informer_protobuf::put_bytes(1, kept, &mut message);
    message.extend_from_slice(rest);
    Ok(message)
}

fn varint(bytes: &[u8]) -> Result<(u64, &[u8])> {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0);
    let end = end.filter(|end| *end < 9).context("no varint")?;
    let digits = bytes[..=end].iter().rev();
    let number = digits.fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f));
    Ok((number, &bytes[end + 1..]))
}

/// Returns the YAML of an object without `managedFields`, which are a member of its metadata.
fn without_managers(yaml: &str) -> String {
    let mut kept = String::new();
    let mut inside = false;
    for line in yaml.lines() {
        inside = line == "  managedFields:"
            || (inside && (line.starts_with("  - ") || line.starts_with("   ")));
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Returns the FNV-1a hash of a text.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn managed_fields_are_removed() {
        let yaml =
            "kind: A\nmetadata:\n  managedFields:\n  - a: b\n    c: d\n  name: x\nspec: {}\n";
        assert_eq!(
            without_managers(yaml),
            "kind: A\nmetadata:\n  name: x\nspec: {}\n"
        );
        let message = Messages::v1_36().of_kind("v1", "ConfigMap").unwrap();
        let object = |managers: Value| {
            let metadata = json!({"name": "a", "managedFields": managers});
            encode(message, &json!({"metadata": metadata, "data": {"a": "b"}})).unwrap()
        };
        let managed = object(json!([{"manager": "m", "operation": "Update"}]));
        assert_eq!(without_managed_fields(&managed).unwrap(), object(json!([])));
    }

    #[test]
    fn protobuf_must_be_the_object_in_json() {
        let message = Messages::v1_36().of_kind("v1", "ConfigMap").unwrap();
        let object = json!({"metadata": {"name": "a"}, "data": {"a": "b", "c": "d"}});
        let raw = encode(message, &object).unwrap();
        let mut json =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b", "c": "d"}});
        json["metadata"] = json!({"name": "a", "managedFields": []});
        let found = |raw: &[u8], json: &Value| {
            compared(&Envelope::wrap("v1", "ConfigMap", raw), message, json).unwrap()
        };
        assert_eq!(
            found(&raw, &json),
            "the object in JSON, with the only bytes"
        );
        // The members of a map are in another order.
        let (metadata, data) = raw.split_at(raw.len() - 2 * 8);
        let other = [metadata, &data[8..], &data[..8]].concat();
        assert_eq!(found(&other, &json), "the object in JSON, with other bytes");
        json["data"]["a"] = "x".into();
        assert_eq!(found(&raw, &json), "another object than in JSON");
    }
}
