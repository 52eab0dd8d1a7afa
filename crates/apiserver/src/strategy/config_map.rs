//! Defines the strategy of `ConfigMap`s: validates keys and size, and rejects changes of immutable data.

use super::config_data::{SIZE_MAX, check_immutable, check_keys, decoded_size, map};
use super::{Hooks, Part};
use crate::metadata;
use crate::object::Object;
use crate::quote::Quoted;
use crate::status::FieldError;

pub(super) const HOOKS: Hooks = Hooks {
    validate,
    validate_update,
    ..Hooks::NONE
};

fn validate(config: &Object) -> Vec<FieldError> {
    let mut errors = check_keys(config, "data");
    let data = map(config, "data");
    let binary = map(config, "binaryData");
    for (key, _) in data.into_iter().flatten() {
        if binary.is_some_and(|binary| binary.contains_key(key)) {
            let why = "duplicate of key present in binaryData";
            errors.push(FieldError::invalid(
                format!("data[{key}]"),
                Quoted(key),
                why,
            ));
        }
    }
    errors.extend(check_keys(config, "binaryData"));
    let texts = data.into_iter().flatten();
    let texts = texts.filter_map(|(_, value)| value.as_str().map(str::len));
    if texts.sum::<usize>() + decoded_size(config, "binaryData") > SIZE_MAX {
        // Kubernetes reports the error for the path of an empty name.
        errors.push(FieldError::too_long("[]", SIZE_MAX));
    }
    errors
}

fn validate_update(old: &Object, new: &Object, _part: Part) -> Vec<FieldError> {
    let mut errors = check_immutable(old, new, &["data", "binaryData"]);
    errors.extend(metadata::check_changed(old, new));
    errors.extend(validate(new));
    errors
}
