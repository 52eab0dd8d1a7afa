//! Compiles the rules of a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::cel_type::Type;
use super::super::declared::Declared;
use super::super::escape::escape;
use super::super::program::{Program, Purpose, Scope};
use super::super::structural::{Rule, Schema};
use super::{CompiledRule, Node, field_path};

/// The name of the type of `self`. Kubernetes uses a new number for each compilation.
const SELF_TYPE: &str = "selfType0";

/// The types and sizes of the values of a node.
#[derive(Clone, Copy)]
struct Described<'a> {
    of: &'a Type,
    declared: &'a Declared,
}

pub(super) fn build_root(schema: &Json, is_resource: bool) -> Option<Node> {
    let schema = Arc::new(Schema::parse(schema));
    if !schema.has_rules() {
        return None;
    }
    let of = Type::of_schema(&schema, is_resource, SELF_TYPE);
    let declared = Declared::of_schema(&schema, is_resource);
    let known = of.as_ref().zip(declared.as_ref());
    let known = known.map(|(of, declared)| Described { of, declared });
    build(&schema, &schema, is_resource, known)
}

/// Builds the node of a schema. The rules are those of `rules`, which is the schema itself or one of its
/// `allOf`.
fn build(
    rules: &Schema,
    schema: &Arc<Schema>,
    is_resource: bool,
    known: Option<Described<'_>>,
) -> Option<Node> {
    let mut node = Node {
        rules: Vec::new(),
        failure: None,
        schema: Arc::clone(schema),
        max_count: known.map_or(0, |known| known.declared.max_count()),
        data_schema: if is_resource {
            Arc::new(schema.with_type_and_object_meta())
        } else {
            Arc::clone(schema)
        },
        items: None,
        properties: BTreeMap::new(),
        additional: None,
        all_of: Vec::new(),
    };
    if !rules.rules.is_empty() {
        // Object types are named relative to the value of the rule.
        let of = known.and_then(|_| Type::of_schema(schema, is_resource, SELF_TYPE));
        match known.zip(of.as_ref()) {
            Some((Described { declared, .. }, of)) => {
                let known = Described { of, declared };
                node.rules = rules
                    .rules
                    .iter()
                    .map(|rule| compile(rule, schema, known))
                    .collect();
            }
            None => node.failure = Some("failed to convert to declType for CEL validation rules"),
        }
    }
    let of_items = known.and_then(Described::elements);
    let below = |rules: Option<&Arc<Schema>>, schema: Option<&Arc<Schema>>| {
        let (rules, schema) = (rules?, schema?);
        build(rules, schema, schema.extensions.embedded_resource, of_items).map(Box::new)
    };
    node.items = below(rules.items.as_ref(), schema.items.as_ref());
    node.additional = below(rules.additional.as_ref(), schema.additional.as_ref());
    for (name, rules) in rules.properties.iter().flatten() {
        if let Some(property) = schema.property(name)
            && let Some(built) = build_property(name, rules, property, known)
        {
            node.properties.insert(name.clone(), built);
        }
    }
    let all_of = rules.all_of.iter();
    node.all_of = all_of
        .filter_map(|rules| build(rules, schema, is_resource, known))
        .collect();
    let has_effect = !node.rules.is_empty()
        || node.failure.is_some()
        || node.items.is_some()
        || node.additional.is_some()
        || !node.properties.is_empty()
        || !node.all_of.is_empty();
    has_effect.then_some(node)
}

fn build_property(
    name: &str,
    rules: &Schema,
    schema: &Arc<Schema>,
    around: Option<Described<'_>>,
) -> Option<Node> {
    let is_resource = schema.extensions.embedded_resource;
    // A property whose name can't be an identifier is not a field of the object's type.
    if let Some(identifier) = escape(name) {
        let field = around?.field(&identifier)?;
        return build(rules, schema, is_resource, Some(field));
    }
    around?;
    let field = Described {
        of: &Type::of_schema(schema, is_resource, SELF_TYPE)?,
        declared: &Declared::of_schema(schema, is_resource)?,
    };
    build(rules, schema, is_resource, Some(field))
}

impl<'a> Described<'a> {
    /// Returns the description of the items of a list, or of the values of a map.
    fn elements(self) -> Option<Described<'a>> {
        let (Type::List(of) | Type::Map(_, of)) = self.of else {
            return None;
        };
        let declared = self.declared.elements()?;
        Some(Described { of, declared })
    }

    fn field(self, identifier: &str) -> Option<Described<'a>> {
        let Type::Object(object) = self.of else {
            return None;
        };
        let of = object.fields.get(identifier)?;
        let declared = self.declared.field(identifier)?;
        Some(Described { of, declared })
    }
}

fn compile(rule: &Rule, schema: &Schema, known: Described<'_>) -> CompiledRule {
    let scope = Scope {
        self_type: known.of,
        declared: known.declared,
        optional_old_self: rule.optional_old_self == Some(true),
    };
    let is_empty = rule.source.trim().is_empty();
    let program = (!is_empty).then(|| Program::compile(&rule.source, scope, Purpose::Rule));
    let has_message = !rule.message_expression.is_empty() && matches!(program, Some(Ok(_)));
    CompiledRule {
        rule: rule.clone(),
        message_expression: has_message
            .then(|| Program::compile(&rule.message_expression, scope, Purpose::MessageExpression)),
        field_path: field_path::normalize(&rule.field_path, schema),
        program,
    }
}
