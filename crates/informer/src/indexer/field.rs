//! Adds indices over the fields of dynamic objects, which are objects of kinds without a Rust type.
//!
//! A path such as `spec.size` selects the field. This module does not parse or evaluate field selectors.

use std::sync::Arc;

use kube_core::DynamicObject;
use serde_json::Value;

use super::index::Indexers;

impl Indexers<DynamicObject> {
    /// Adds an index over one field of dynamic objects. A field selector on this field can use the index.
    ///
    /// `path` is the path of the field, such as `spec.size`, and also the name of the index. A leading dot,
    /// as in the `selectableFields` of a `CustomResourceDefinition`, is removed. `kind` and `apiVersion` are
    /// valid paths too.
    ///
    /// The value of a string is the string itself. The value of a number or a boolean is its JSON form. An
    /// array has one value for each element that is a string, a number or a boolean. A missing field, null
    /// and a JSON object have no value. Field selectors treat such a field as an empty string. For a field
    /// whose name contains a dot, use [`Indexers::with`] or [`Indexers::with_label`].
    ///
    /// ```
    /// # use kube_core::DynamicObject;
    /// # use kube_informer::{Indexers, indexer};
    /// let indexers = Indexers::<DynamicObject>::new().with_field(".spec.size");
    /// let (widgets, mut writer) = indexer::new(indexers)?;
    /// let widget = serde_json::json!({
    ///     "apiVersion": "example.com/v1", "kind": "Widget",
    ///     "metadata": {"name": "w", "namespace": "shop"}, "spec": {"size": 7},
    /// });
    /// writer.add(serde_json::from_value(widget)?)?;
    /// let fields = "spec.size=7".parse()?;
    /// assert_eq!(widgets.snapshot().by_fields(&fields)?.iter().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "selectableFields")]
    #[doc(alias = "JSONPath")]
    #[must_use]
    pub fn with_field(self, path: &str) -> Self {
        let name = path.strip_prefix('.').unwrap_or(path);
        let path: Vec<_> = name.split('.').map(str::to_owned).collect();
        self.with(name, move |object| values(object, &path))
    }
}

fn values(object: &DynamicObject, path: &[String]) -> Vec<Arc<str>> {
    // Metadata and type are not stored as JSON.
    let apart;
    let (mut value, path) = match path {
        [first, rest @ ..] if first == "metadata" => {
            apart = serde_json::to_value(&object.metadata).unwrap_or_default();
            (&apart, rest)
        }
        [first, ..] if first == "kind" || first == "apiVersion" => {
            apart = serde_json::to_value(&object.types).unwrap_or_default();
            (&apart, path)
        }
        path => (&object.data, path),
    };
    for name in path {
        value = &value[name.as_str()];
    }
    match value {
        Value::Array(elements) => elements.iter().filter_map(scalar).collect(),
        value => scalar(value).into_iter().collect(),
    }
}

fn scalar(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) => Some(Arc::from(text.as_str())),
        Value::Number(number) => Some(Arc::from(number.to_string())),
        Value::Bool(flag) => Some(Arc::from(flag.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_selects_strings_numbers_and_booleans_also_in_arrays() {
        let object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "w", "generation": 3, "finalizers": ["a", "b"]},
            "spec": {"size": 7, "on": true, "color": "red", "none": null, "deep": {"est": "x"}, "list": [1, "two", {}]},
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let rows: [(&str, &[&str]); 15] = [
            ("kind", &["Widget"]),
            ("apiVersion", &["example.com/v1"]),
            ("kind.name", &[]),
            ("spec.size", &["7"]),
            ("spec.on", &["true"]),
            ("spec.color", &["red"]),
            ("spec.deep.est", &["x"]),
            ("spec.list", &["1", "two"]),
            ("metadata.generation", &["3"]),
            ("metadata.finalizers", &["a", "b"]),
            ("spec.none", &[]),
            ("spec.deep", &[]),
            ("spec.color.shade", &[]),
            ("status.phase", &[]),
            ("", &[]),
        ];
        for (path, expected) in rows {
            let path: Vec<_> = path.split('.').map(str::to_owned).collect();
            let values = values(&object, &path);
            assert!(
                values
                    .iter()
                    .map(|value| &**value)
                    .eq(expected.iter().copied()),
                "{path:?}"
            );
        }
    }
}
