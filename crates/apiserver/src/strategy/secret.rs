//! Defines the strategy of secrets: sets the default type, and moves `stringData` into `data`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::Hooks;
use crate::object::Object;

pub(super) const HOOKS: Hooks = Hooks {
    prepare,
    ..Hooks::NONE
};

fn prepare(secret: &mut Object) {
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
