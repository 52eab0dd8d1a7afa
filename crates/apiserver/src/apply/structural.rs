//! Defines how the values of custom kinds are merged, by the schemas of their definitions.

use serde_json::Value;

use super::atom::{Atom, Fields, Fixed, Identity, Keys, List, Map, Node, Scalar, Type};
use super::object_meta::{OBJECT_META, TYPE_META};
use super::planted::{self, Bug};
use crate::schema::{Additional, Schema};

/// The type of objects whose version has no schema.
static ANY_OBJECT: Fixed = Fixed::Deduced;

impl<'a> Type<'a> {
    /// Returns the type of the objects of one version of a custom kind. `schema` is absent if the version has none.
    pub(crate) fn custom(schema: Option<&'a Schema>) -> Type<'a> {
        let Some(schema) = schema else {
            return Type::Fixed(&ANY_OBJECT);
        };
        Type::Structural(Node {
            schema,
            preserves: schema.preserves(),
            has_meta: true,
        })
    }
}

impl<'a> Node<'a> {
    fn below(self, schema: &'a Schema) -> Type<'a> {
        Type::Structural(Node {
            schema,
            preserves: schema.preserves() || self.preserves && !planted::has(Bug::PreservedMembers),
            has_meta: schema.embeds(),
        })
    }

    pub(super) fn atom(self) -> Atom<'a> {
        let scalar = |scalar| Atom {
            scalar: Some(scalar),
            ..Atom::default()
        };
        match self.schema.type_name() {
            "object" => Atom {
                map: Some(self.map()),
                ..Atom::default()
            },
            "array" => Atom {
                list: Some(self.list()),
                ..Atom::default()
            },
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" if !self.schema.has_format() || self.schema.is_bytes() => scalar(Scalar::Text),
            "string" => scalar(Scalar::Any),
            _ => Atom {
                scalar: Some(Scalar::Any),
                list: Some(self.list()),
                map: Some(self.map()),
            },
        }
    }

    fn list(self) -> List<'a> {
        let identity = match self.schema.list_type() {
            "set" => Identity::Value,
            "map" => Identity::Keys(Keys::Owned(self.schema.list_map_keys())),
            _ => Identity::Atomic,
        };
        let item = self.schema.item();
        List {
            item: item.map_or(Type::Untyped, |item| self.below(item)),
            identity,
        }
    }

    fn map(self) -> Map<'a> {
        let has_fields = self.has_meta || self.schema.has_properties();
        let member = match self.schema.additional() {
            Some(Additional::Schema(schema)) => Some(self.below(schema)),
            Some(Additional::Any(_)) => Some(Type::Deduced),
            None => (self.preserves || !has_fields).then_some(Type::Deduced),
        };
        Map {
            is_atomic: self.schema.is_atomic_map(),
            member,
            fields: if has_fields {
                Fields::Structural(self)
            } else {
                Fields::None
            },
        }
    }

    pub(super) fn field(self, name: &str) -> Option<Type<'a>> {
        match name {
            "metadata" if self.has_meta => Some(Type::Fixed(&OBJECT_META)),
            "apiVersion" | "kind" if self.has_meta => Some(Type::Fixed(&TYPE_META)),
            _ => self.schema.property(name).map(|schema| self.below(schema)),
        }
    }

    pub(super) fn default_of(self, name: &str) -> Option<&'a Value> {
        let is_meta = matches!(name, "metadata" | "apiVersion" | "kind");
        if self.has_meta && is_meta {
            return None;
        }
        self.schema.default_of(name)
    }
}
