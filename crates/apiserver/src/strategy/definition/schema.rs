//! Reads the members of an OpenAPI schema in a definition.
//!
//! Guarantees: a member that is null or has a wrong JSON type counts as absent, and a schema that is not a JSON
//! object counts as a schema without members. Members of a map are visited in the order of their names.

use serde_json::Value;

use super::member::sorted;

/// An OpenAPI schema (`JSONSchemaProps` in Kubernetes).
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema<'a>(pub(super) &'a Value);

/// The member `items` of a schema (`JSONSchemaPropsOrArray`).
///
/// As in Kubernetes, a value that is neither a schema nor a list is present, but contains nothing.
#[derive(Clone, Copy)]
pub(super) struct Items<'a> {
    pub(super) value: &'a Value,
}

/// A member that is a schema or a boolean (`JSONSchemaPropsOrBool`).
#[derive(Clone, Copy)]
pub(super) enum OrBool<'a> {
    Bool(bool),
    Schema(Schema<'a>),
}

impl<'a> OrBool<'a> {
    pub(super) fn schema(self) -> Option<Schema<'a>> {
        match self {
            OrBool::Bool(_) => None,
            OrBool::Schema(schema) => Some(schema),
        }
    }
}

impl<'a> Items<'a> {
    pub(super) fn schema(self) -> Option<Schema<'a>> {
        self.value.is_object().then_some(Schema(self.value))
    }

    pub(super) fn schemas(self) -> impl Iterator<Item = Schema<'a>> {
        let schemas = self.value.as_array();
        schemas.into_iter().flatten().map(Schema)
    }
}

impl<'a> Schema<'a> {
    /// Returns a member that is not null.
    pub(super) fn get(self, member: &str) -> Option<&'a Value> {
        self.0.get(member).filter(|value| !value.is_null())
    }

    /// Returns a string, which is empty if the member is absent.
    pub(super) fn text(self, member: &str) -> &'a str {
        self.optional_text(member).unwrap_or_default()
    }

    pub(super) fn optional_text(self, member: &str) -> Option<&'a str> {
        self.0.get(member)?.as_str()
    }

    /// Returns whether a member is true.
    pub(super) fn flag(self, member: &str) -> bool {
        self.optional_flag(member) == Some(true)
    }

    pub(super) fn optional_flag(self, member: &str) -> Option<bool> {
        self.0.get(member)?.as_bool()
    }

    /// Returns the items of a list, or nothing if the member is absent.
    pub(super) fn list(self, member: &str) -> &'a [Value] {
        let list = self.0.get(member).and_then(Value::as_array);
        list.map_or(&[], Vec::as_slice)
    }

    /// Returns the schemas in a list, such as `allOf`.
    pub(super) fn schemas(self, member: &str) -> impl Iterator<Item = Schema<'a>> {
        self.list(member).iter().map(Schema)
    }

    /// Returns a schema, such as `not`.
    pub(super) fn schema(self, member: &str) -> Option<Schema<'a>> {
        let schema = self.0.get(member).filter(|value| value.is_object());
        schema.map(Schema)
    }

    /// Returns the names and schemas of a map, such as `properties`, sorted by name.
    pub(super) fn map(self, member: &str) -> impl Iterator<Item = (&'a str, Schema<'a>)> {
        let members = sorted(self.0.get(member)).into_iter();
        members.map(|(name, schema)| (name, Schema(schema)))
    }

    /// Returns whether a map, such as `properties`, has an entry.
    pub(super) fn has_entries(self, member: &str) -> bool {
        let map = self.0.get(member).and_then(Value::as_object);
        map.is_some_and(|map| !map.is_empty())
    }

    pub(super) fn property(self, name: &str) -> Option<Schema<'a>> {
        let properties = self.0.get("properties")?.as_object()?;
        properties.get(name).map(Schema)
    }

    pub(super) fn items(self) -> Option<Items<'a>> {
        self.get("items").map(|value| Items { value })
    }

    /// Returns a member such as `additionalProperties`.
    pub(super) fn or_bool(self, member: &str) -> Option<OrBool<'a>> {
        match self.0.get(member)? {
            Value::Bool(allows) => Some(OrBool::Bool(*allows)),
            schema if schema.is_object() => Some(OrBool::Schema(Schema(schema))),
            _ => None,
        }
    }

    /// Returns the strings in a list. An item of another type counts as an empty string.
    pub(super) fn texts(self, member: &str) -> impl Iterator<Item = &'a str> {
        let items = self.list(member).iter();
        items.map(|item| item.as_str().unwrap_or_default())
    }

    /// Returns whether `accepts` is true for this schema or for a schema below it. Stops at the first one.
    ///
    /// Visits the schemas in the order of `SchemaHas` in Kubernetes.
    pub(super) fn any(self, accepts: &mut dyn FnMut(Schema<'a>) -> bool) -> bool {
        let below_bool = |member| self.or_bool(member).and_then(OrBool::schema);
        let items = self.items();
        accepts(self)
            || items
                .and_then(Items::schema)
                .is_some_and(|schema| schema.any(accepts))
            || items
                .into_iter()
                .flat_map(Items::schemas)
                .any(|schema| schema.any(accepts))
            || ["allOf", "anyOf", "oneOf"]
                .into_iter()
                .flat_map(|member| self.schemas(member))
                .any(|schema| schema.any(accepts))
            || self.schema("not").is_some_and(|schema| schema.any(accepts))
            || self
                .map("properties")
                .any(|(_, schema)| schema.any(accepts))
            || below_bool("additionalProperties").is_some_and(|schema| schema.any(accepts))
            || self
                .map("patternProperties")
                .any(|(_, schema)| schema.any(accepts))
            || below_bool("additionalItems").is_some_and(|schema| schema.any(accepts))
            || self
                .map("definitions")
                .any(|(_, schema)| schema.any(accepts))
            || self
                .map("dependencies")
                .filter(|(_, schema)| schema.0.is_object())
                .any(|(_, schema)| schema.any(accepts))
    }
}
