//! Identifies the items of lists.

use std::borrow::Cow;

use serde_json::Value;

use super::atom::{Identity, Keys, List};
use super::path::PathElement;
use super::planted::{self, Bug};
use crate::quote::Quoted;

impl List<'_> {
    /// Returns the step to an item of a list that is not atomic.
    ///
    /// # Errors
    ///
    /// Returns the message of Kubernetes if the item can't be identified.
    pub(super) fn step_to(&self, item: &Value) -> Result<PathElement, String> {
        match self.identity {
            Identity::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Identity::Value => step_to_value(item),
            Identity::Keys(keys) => self.step_by_keys(keys, item),
        }
    }

    fn step_by_keys(&self, keys: Keys<'_>, item: &Value) -> Result<PathElement, String> {
        let members = match item {
            Value::Object(members) => members,
            Value::Null => {
                return Err("associative list with keys may not have a null element".to_owned());
            }
            _ => {
                return Err("associative list with keys may not have non-map elements".to_owned());
            }
        };
        let mut values: Vec<(Box<str>, Value)> = Vec::new();
        for key in keys.iter() {
            let value = match members.get(key) {
                Some(value) => Some(Cow::Borrowed(value)),
                None => self.default_of(key)?,
            };
            // An item without the key is another item than one with any value of it.
            if let Some(value) = value {
                values.push((key.into(), value.into_owned()));
            }
        }
        if values.is_empty() {
            let names: Vec<String> = keys.iter().map(|key| Quoted(key).to_string()).collect();
            let names = names.join(" ");
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{names}] \
                 (and doesn't have default values for any key fields)"
            ));
        }
        Ok(PathElement::key(values))
    }

    fn default_of(&self, key: &str) -> Result<Option<Cow<'_, Value>>, String> {
        match self.item.atom().map {
            Some(map) => Ok(map.default(key).filter(|_| !planted::has(Bug::KeyDefaults))),
            None => Err(format!(
                "couldn't find default value for {key}: associative list may not have non-map types"
            )),
        }
    }
}

fn step_to_value(item: &Value) -> Result<PathElement, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        scalar => return Ok(PathElement::Value(scalar.clone().into())),
    };
    Err(why.to_owned())
}
