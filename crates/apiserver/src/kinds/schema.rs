//! Describes the fields of the built-in kinds: their types and strategic merge patch strategies.
//!
//! `cargo xtask kinds` writes the table of these fields from the OpenAPI document of a pinned Kubernetes
//! version.
//!
//! Guarantees:
//! - the table is parsed on the first patch or OpenAPI request, not when a server is built;
//! - the table contains the definition of every type that a field refers to.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The fields of the built-in kinds of Kubernetes 1.36; the file's header explains the format.
const V1_36: &str = include_str!("schema_v1_36.tsv");

/// Definitions of all built-in kinds and of the types that their fields refer to.
#[derive(Debug)]
pub(crate) struct Schema {
    definitions: Vec<Definition>,
    /// Maps `apiVersion/Kind` to an index in `definitions`.
    kinds: BTreeMap<&'static str, usize>,
}

/// One type of the Kubernetes API, such as `PodSpec`, and its fields.
#[derive(Debug)]
pub(crate) struct Definition {
    /// The name of the type without its package, such as `PodSpec`.
    pub(crate) name: &'static str,
    /// The name of the type with its package, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) full_name: &'static str,
    fields: BTreeMap<&'static str, Field>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    shape: Shape,
    pub(crate) strategy: MergeStrategy,
    /// Type of the field as written in the table of fields, such as `[]string`.
    pub(crate) cell: &'static str,
    /// Patch strategies of the field as written in the table of fields: names separated by commas, or empty.
    pub(crate) strategies: &'static str,
    pub(crate) merge_key: Option<&'static str>,
    /// Whether each object has the field.
    pub(crate) required: bool,
}

/// Structure of a field's value. Each `usize` is the index of a [`Definition`] in the [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// A scalar, or a value whose structure the schema does not describe.
    Leaf,
    Struct(usize),
    /// A list. Contains the index of the definition of its items, or `None` if the items are not structs.
    List(Option<usize>),
    Map,
}

/// How a strategic merge patch combines its value with the object's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MergeStrategy {
    /// Merges maps, and replaces lists and scalars.
    Default,
    /// Merges lists by the merge key with this name. `None` means that lists are merged as sets of values.
    MergeList(Option<&'static str>),
    /// The patch's value replaces the object's value.
    Replace,
}

/// Structure of a field's value, as far as a strategic merge patch needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Structure {
    Struct(&'static Definition),
    Map,
    /// A list. Contains the definition of its items, or `None` if the items are not structs.
    List(Option<&'static Definition>),
    Leaf,
}

// === impl Schema ===

impl Schema {
    /// Returns the schema of Kubernetes 1.36.
    pub(crate) fn builtin() -> &'static Schema {
        static SCHEMA: OnceLock<Schema> = OnceLock::new();
        SCHEMA.get_or_init(|| {
            Schema::parse(V1_36).expect("`cargo xtask kinds` writes definitions that read back")
        })
    }

    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Definition> {
        let at = self.kinds.get(format!("{api_version}/{kind}").as_str())?;
        self.definitions.get(*at)
    }

    /// Returns the definition of the type with this full name, such as `io.k8s.api.core.v1.PodSpec`.
    pub(crate) fn named(&self, full_name: &str) -> Option<&Definition> {
        let mut all = self.definitions.iter();
        all.find(|definition| definition.full_name == full_name)
    }

    /// Parses a table of fields, or returns `None` if a line is malformed.
    fn parse(table: &'static str) -> Option<Schema> {
        let rows = || table.lines().filter(|line| !line.starts_with('#'));
        let heads = rows().filter(|row| !row.starts_with('\t'));
        let positions_by_name: BTreeMap<&str, usize> = heads
            .enumerate()
            .map(|(at, row)| (row.split('\t').next().unwrap_or(row), at))
            .collect();
        let mut schema = Schema {
            definitions: Vec::with_capacity(positions_by_name.len()),
            kinds: BTreeMap::new(),
        };
        for row in rows() {
            if let Some(field) = row.strip_prefix('\t') {
                let (name, field) = Field::from_row(field, &positions_by_name)?;
                schema.definitions.last_mut()?.fields.insert(name, field);
                continue;
            }
            let mut columns = row.split('\t');
            let full = columns.next()?;
            let at = schema.definitions.len();
            schema.kinds.extend(columns.map(|kind| (kind, at)));
            schema.definitions.push(Definition {
                name: full.rsplit_once('.').map_or(full, |(_, name)| name),
                full_name: full,
                fields: BTreeMap::new(),
            });
        }
        Some(schema)
    }
}

// === impl Definition ===

impl Definition {
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.get(name)
    }

    /// Iterates over the fields of the type with their names, ordered by name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &Field)> {
        self.fields.iter().map(|(name, field)| (*name, field))
    }

    /// Returns whether the schema lists no fields of the type, as for `RawExtension`.
    pub(crate) fn is_opaque(&self) -> bool {
        self.fields.is_empty()
    }
}

// === impl Field ===

impl Field {
    pub(crate) fn structure(&self) -> Structure {
        let definition = |at: usize| &Schema::builtin().definitions[at];
        match self.shape {
            Shape::Leaf => Structure::Leaf,
            Shape::Struct(at) => Structure::Struct(definition(at)),
            Shape::List(at) => Structure::List(at.map(definition)),
            Shape::Map => Structure::Map,
        }
    }

    /// Parses a row of the table of fields: `name, type[, strategies[, merge key]]`. A required name ends with `!`.
    fn from_row(
        row: &'static str,
        positions_by_name: &BTreeMap<&str, usize>,
    ) -> Option<(&'static str, Field)> {
        let mut columns = row.split('\t');
        let (head, value) = (columns.next()?, columns.next()?);
        let name = head.strip_suffix('!').unwrap_or(head);
        let (strategies, merge_key) = (columns.next().unwrap_or(""), columns.next());
        if columns.next().is_some() {
            return None;
        }
        let mut strategy = MergeStrategy::Default;
        for word in strategies.split(',') {
            strategy = match word {
                "merge" => MergeStrategy::MergeList(merge_key),
                "replace" => MergeStrategy::Replace,
                // Clients send `$retainKeys` for this strategy. The server applies it in every patch.
                "retainKeys" | "" => strategy,
                _ => return None,
            };
        }
        let field = Field {
            shape: Shape::from_cell(value, positions_by_name)?,
            strategy,
            cell: value,
            strategies,
            merge_key,
            required: name != head,
        };
        Some((name, field))
    }
}

// === impl Shape ===

impl Shape {
    fn from_cell(cell: &str, positions_by_name: &BTreeMap<&str, usize>) -> Option<Shape> {
        if let Some(item) = cell.strip_prefix("[]") {
            return match Shape::from_cell(item, positions_by_name)? {
                Shape::Struct(at) => Some(Shape::List(Some(at))),
                Shape::Leaf => Some(Shape::List(None)),
                Shape::List(_) | Shape::Map => None,
            };
        }
        if let Some(member) = cell.strip_prefix("{}") {
            return Shape::from_cell(member, positions_by_name).map(|_| Shape::Map);
        }
        let (name, _format) = cell.split_once(':').unwrap_or((cell, ""));
        match name {
            "any" | "boolean" | "integer" | "number" | "string" => Some(Shape::Leaf),
            name => positions_by_name.get(name).map(|at| Shape::Struct(*at)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;

    fn strategy(kind: (&str, &str), path: &[&str]) -> MergeStrategy {
        let mut definition = Schema::builtin().of_kind(kind.0, kind.1).unwrap();
        let mut found = None;
        for name in path {
            let field = definition.field(name).unwrap();
            found = Some(field.strategy);
            match field.structure() {
                Structure::Struct(next) | Structure::List(Some(next)) => definition = next,
                Structure::List(None) | Structure::Map | Structure::Leaf => {}
            }
        }
        found.unwrap()
    }

    #[test]
    fn every_patchable_kind_has_fields() {
        let kinds = Kinds::builtin();
        let missing: Vec<_> = kinds
            .iter()
            .filter(|kind| kind.verbs.iter().any(|verb| verb == "patch"))
            .filter(|kind| {
                let found = Schema::builtin().of_kind(&kind.api_version(), &kind.kind);
                found.is_none_or(|definition| definition.field("metadata").is_none())
            })
            .map(crate::kinds::Kind::group_resource)
            .collect();
        assert_eq!(missing, [""; 0]);
        assert!(
            Schema::builtin()
                .of_kind("autoscaling/v1", "Scale")
                .is_some()
        );
        assert!(Schema::builtin().of_kind("example.com/v1", "Foo").is_none());
    }

    #[test]
    fn fields_have_the_strategies_that_kubernetes_declares() {
        let pod = ("v1", "Pod");
        let by = |key| MergeStrategy::MergeList(Some(key));
        let ports = ["spec", "containers", "ports"];
        assert_eq!(strategy(pod, &ports[..2]), by("name"));
        assert_eq!(strategy(pod, &ports), by("containerPort"));
        assert_eq!(strategy(pod, &["spec", "volumes"]), by("name"));
        assert_eq!(
            strategy(pod, &["spec", "tolerations"]),
            MergeStrategy::Default
        );
        assert_eq!(
            strategy(pod, &["metadata", "finalizers"]),
            MergeStrategy::MergeList(None)
        );
        let budget = ("policy/v1", "PodDisruptionBudget");
        assert_eq!(
            strategy(budget, &["spec", "selector"]),
            MergeStrategy::Replace
        );
        let deployment = ("apps/v1", "Deployment");
        assert_eq!(
            strategy(deployment, &["spec", "strategy"]),
            MergeStrategy::Default
        );
    }

    #[test]
    fn a_table_with_an_unknown_word_is_rejected() {
        let well = Schema::parse("x.A\tv1/A\n\tb\t[]x.A\tmerge\tname\n");
        assert!(well.is_some_and(|schema| schema.of_kind("v1", "A").is_some()));
        for broken in [
            "x.A\n\tb\tx.B\n",
            "x.A\n\tb\t[]string\tblend\n",
            "x.A\n\tb\t[][]string\n",
            "x.A\n\tb\n",
            "\tb\tstring\n",
        ] {
            assert!(Schema::parse(broken).is_none(), "{broken:?}");
        }
    }
}
