//! Reads what a schema says about the merge of values in server-side apply.

use serde_json::Value;

use super::{Additional, Schema};

impl Schema {
    /// Returns the name of the required JSON type, or an empty text if the schema accepts every type.
    pub(crate) fn type_name(&self) -> &str {
        &self.type_name
    }

    pub(crate) fn has_format(&self) -> bool {
        !self.format.is_empty()
    }

    /// Returns whether the format is that of bytes in base64.
    pub(crate) fn is_bytes(&self) -> bool {
        self.format == "byte"
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Schema> {
        self.properties.get(name).map(AsRef::as_ref)
    }

    pub(crate) fn has_properties(&self) -> bool {
        !self.properties.is_empty()
    }

    /// Returns the value of `additionalProperties`.
    pub(crate) fn additional(&self) -> Option<&Additional> {
        self.additional_properties.as_ref()
    }

    pub(crate) fn item(&self) -> Option<&Schema> {
        self.items.as_deref()
    }

    /// Returns the value of `x-kubernetes-list-type`, or an empty text.
    pub(crate) fn list_type(&self) -> &str {
        &self.list_type
    }

    pub(crate) fn list_map_keys(&self) -> &[String] {
        &self.list_map_keys
    }

    /// Returns whether `x-kubernetes-map-type` is `atomic`.
    pub(crate) fn is_atomic_map(&self) -> bool {
        self.map_type == "atomic"
    }

    /// Returns whether unknown members of this value are kept.
    pub(crate) fn preserves(&self) -> bool {
        self.preserves
    }

    /// Returns whether the value has `apiVersion`, `kind` and `metadata`, which the schema need not specify.
    pub(crate) fn embeds(&self) -> bool {
        self.embeds
    }

    /// Returns the default of a property.
    pub(crate) fn default_of(&self, name: &str) -> Option<&Value> {
        let property = self.properties.get(name)?;
        property.default.as_ref().map(|default| &default.value)
    }
}
