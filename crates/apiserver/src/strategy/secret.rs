//! Defines the strategy of secrets.
//!
//! The strategy sets the default type, moves `stringData` into `data`, validates keys, size and the content
//! that a type requires, and rejects changes of the type and of immutable data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::config_data::{SIZE_MAX, check_immutable, check_keys, decoded_size, map};
use super::definition::key_pair_fault;
use super::{Hooks, Part};
use crate::go_json;
use crate::metadata;
use crate::object::{Object, json_type};
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    decode,
    validate,
    validate_update,
    warn: Some(warn),
    ..Hooks::NONE
};

/// Annotation of a token with the name of its service account.
const SERVICE_ACCOUNT: &str = "kubernetes.io/service-account.name";

fn decode(secret: &mut Object) {
    if secret.get("type").is_none_or(|it| it.is_null() || it == "") {
        secret.set("type", Some(json!("Opaque")));
    }
    let Some(Value::Object(texts)) = secret.get("stringData").cloned() else {
        return;
    };
    secret.set("stringData", None);
    let data = secret.get("data").and_then(Value::as_object);
    let mut data: Map<String, Value> = data.cloned().unwrap_or_default();
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, json!(STANDARD.encode(text)));
    }
    if !data.is_empty() {
        secret.set("data", Some(Value::Object(data)));
    }
}

fn validate(secret: &Object) -> Vec<FieldError> {
    let mut errors = check_keys(secret, "data");
    if decoded_size(secret, "data") > SIZE_MAX {
        errors.push(FieldError::too_long("data", SIZE_MAX));
    }
    errors.extend(check_content(secret));
    errors
}

/// Returns an error for each key or annotation that the secret's type requires and that is missing or
/// invalid. For the type `kubernetes.io/basic-auth`, one of the keys `username` and `password` is enough.
fn check_content(secret: &Object) -> Vec<FieldError> {
    let data = map(secret, "data");
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let required = |key: &str| FieldError::required(format!("data[{key}]"), "");
    let kind = secret.get("type").and_then(Value::as_str);
    match kind.unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            let annotations = secret.meta("annotations");
            let account = annotations.and_then(|annotations| annotations.get(SERVICE_ACCOUNT));
            let field = format!("metadata.annotations[{SERVICE_ACCOUNT}]");
            let is_missing = account.is_none_or(|account| account == "");
            is_missing
                .then(|| FieldError::required(field, ""))
                .into_iter()
                .collect()
        }
        "kubernetes.io/dockercfg" => check_json(secret, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => check_json(secret, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            vec![required("username"), required("password")]
        }
        "kubernetes.io/ssh-auth" => {
            let key = data.and_then(|data| data.get("ssh-privatekey"));
            let is_missing = key.is_none_or(|key| key == "");
            is_missing
                .then(|| required("ssh-privatekey"))
                .into_iter()
                .collect()
        }
        "kubernetes.io/tls" => {
            let keys = ["tls.crt", "tls.key"].into_iter();
            keys.filter(|key| !has(key)).map(required).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns an error if the value of `key` is missing, or is neither a JSON object nor null.
fn check_json(secret: &Object, key: &str) -> Vec<FieldError> {
    let field = format!("data[{key}]");
    let Some(value) = map(secret, "data").and_then(|data| data.get(key)) else {
        return vec![FieldError::required(field, "")];
    };
    let bytes = STANDARD.decode(value.as_str().unwrap_or_default());
    let bytes = bytes.unwrap_or_default();
    let why = go_json::syntax_error(&bytes).or_else(|| {
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let found = json_type(&value);
        (!matches!(found, "object" | "null")).then(|| {
            format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )
        })
    });
    let error = |why: String| FieldError::invalid(field, "\"<secret contents redacted>\"", &why);
    why.map(error).into_iter().collect()
}

fn validate_update(old: &Object, new: &Object, _part: Part) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = new.get("type").unwrap_or(&Value::Null);
    if Some(kind) != old.get("type") {
        errors.push(FieldError::invalid("type", kind, "field is immutable"));
    }
    errors.extend(check_immutable(old, new, &["data"]));
    errors.extend(metadata::check_changed(old, new));
    errors.extend(validate(new));
    errors
}

/// Adds the warning of Go's TLS library about a certificate or key without PEM data.
fn warn(secret: &Object, _old: Option<&Object>, texts: &mut Vec<String>) {
    if secret
        .get("type")
        .is_none_or(|kind| kind != "kubernetes.io/tls")
    {
        return;
    }
    let decoded = |key: &str| {
        let text = map(secret, "data").and_then(|data| data.get(key)?.as_str());
        STANDARD
            .decode(text.unwrap_or_default())
            .unwrap_or_default()
    };
    texts.extend(key_pair_fault(&decoded("tls.crt"), &decoded("tls.key")));
}
