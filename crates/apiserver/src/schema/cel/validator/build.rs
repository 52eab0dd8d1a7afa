//! Compiles the rules of a schema.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::super::cel_type::Type;
use super::super::escape::escape;
use super::super::program::{Program, Purpose, Scope};
use super::super::structural::{Rule, Schema};
use super::{CompiledRule, Node, field_path};
use crate::go_json::to_text;
use crate::quote::Quoted;

/// The name of the type of `self`. Kubernetes uses a new number for each compilation.
const SELF_TYPE: &str = "selfType0";

/// The error of one rule's compilation.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The path of the member, which ends in such as `.properties[spec].x-kubernetes-validations[0].rule`.
    pub(crate) path: String,
    /// The invalid value, as Kubernetes shows it in error messages.
    pub(crate) value: String,
    pub(crate) message: String,
}

pub(super) fn build_root(schema: &Json, is_resource: bool) -> Option<Node> {
    let schema = Arc::new(Schema::parse(schema));
    if !schema.has_rules() {
        return None;
    }
    let of = Type::of_schema(&schema, is_resource, SELF_TYPE);
    build(&schema, &schema, is_resource, of.as_ref())
}

/// Builds the node of a schema. The rules are those of `rules`, which is the schema itself or one of its
/// `allOf`.
fn build(
    rules: &Schema,
    schema: &Arc<Schema>,
    is_resource: bool,
    of: Option<&Type>,
) -> Option<Node> {
    let mut node = Node {
        rules: Vec::new(),
        failure: None,
        schema: Arc::clone(schema),
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
        match of.and_then(|_| Type::of_schema(schema, is_resource, SELF_TYPE)) {
            Some(of) => {
                node.rules = rules
                    .rules
                    .iter()
                    .map(|rule| compile(rule, schema, &of))
                    .collect();
            }
            None => node.failure = Some("failed to convert to declType for CEL validation rules"),
        }
    }
    let item_type = match of {
        Some(Type::List(items)) => Some(&**items),
        Some(Type::Map(_, value)) => Some(&**value),
        _ => None,
    };
    let below = |rules: Option<&Arc<Schema>>, schema: Option<&Arc<Schema>>| {
        let (rules, schema) = (rules?, schema?);
        build(
            rules,
            schema,
            schema.extensions.embedded_resource,
            item_type,
        )
        .map(Box::new)
    };
    node.items = below(rules.items.as_ref(), schema.items.as_ref());
    node.additional = below(rules.additional.as_ref(), schema.additional.as_ref());
    for (name, rules) in rules.properties.iter().flatten() {
        if let Some(property) = schema.property(name)
            && let Some(built) = build_property(name, rules, property, of)
        {
            node.properties.insert(name.clone(), built);
        }
    }
    let all_of = rules.all_of.iter();
    node.all_of = all_of
        .filter_map(|rules| build(rules, schema, is_resource, of))
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
    of: Option<&Type>,
) -> Option<Node> {
    let is_resource = schema.extensions.embedded_resource;
    // A property whose name can't be an identifier is not a field of the object's type.
    let field = match (escape(name), of?) {
        (Some(identifier), Type::Object(object)) => object.fields.get(&identifier).cloned(),
        (Some(_), _) => None,
        (None, _) => Type::of_schema(schema, is_resource, SELF_TYPE),
    };
    build(rules, schema, is_resource, Some(&field?))
}

fn compile(rule: &Rule, schema: &Schema, of: &Type) -> CompiledRule {
    let scope = Scope {
        self_type: of,
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

/// Returns a rule as JSON with the names of Kubernetes' internal form.
fn shown(rule: &Rule) -> String {
    let text = |text: &str| to_text(text);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        text(&rule.source),
        text(&rule.message),
        text(&rule.message_expression),
        rule.reason
            .as_deref()
            .map_or_else(|| "null".to_owned(), text),
        text(&rule.field_path),
        to_text(&rule.optional_old_self),
    )
}

impl Node {
    /// Appends the problems of this node and of those below it.
    ///
    /// `path` is the path of the node. `forbidden` is the path of the first node around this one whose parts have
    /// no old values, if any.
    pub(super) fn problems(
        &self,
        path: &str,
        forbidden: Option<&str>,
        problems: &mut Vec<Problem>,
    ) {
        for (index, rule) in self.rules.iter().enumerate() {
            let path = format!("{path}.x-kubernetes-validations[{index}]");
            rule.problems(&path, forbidden, problems);
        }
        for (index, all_of) in self.all_of.iter().enumerate() {
            all_of.problems(&format!("{path}.allOf[{index}]"), forbidden, problems);
        }
        let extensions = &self.schema.extensions;
        let is_granular = extensions
            .map_type
            .as_deref()
            .is_none_or(|map| map == "granular");
        let of_members = forbidden.or(if is_granular { None } else { Some(path) });
        for (name, property) in &self.properties {
            let path = format!("{path}.properties[{name}]");
            property.problems(&path, of_members, problems);
        }
        if let Some(items) = &self.items {
            let is_map = extensions.list_type.as_deref() == Some("map");
            let of_items = forbidden.or(if is_map { None } else { Some(path) });
            items.problems(&format!("{path}.items"), of_items, problems);
        }
        if let Some(additional) = &self.additional {
            let path = format!("{path}.additionalProperties");
            additional.problems(&path, forbidden, problems);
        }
    }
}

impl CompiledRule {
    fn problems(&self, path: &str, forbidden: Option<&str>, problems: &mut Vec<Problem>) {
        let mut add = |member: &str, value: String, message: String| {
            let path = format!("{path}.{member}");
            problems.push(Problem {
                path,
                value,
                message,
            });
        };
        let programs = [
            ("rule", &self.program),
            ("messageExpression", &self.message_expression),
        ];
        for (member, program) in programs {
            if let Some(Err(message)) = program {
                add(member, shown(&self.rule), message.clone());
            }
        }
        let program = self
            .program
            .as_ref()
            .and_then(|program| program.as_ref().ok());
        if program.is_some_and(Program::uses_old_self) {
            if let Some(around) = forbidden {
                let message = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                );
                add("rule", Quoted(&self.rule.source).to_string(), message);
            }
        } else if let Some(value) = self.rule.optional_old_self {
            let message = "may not be set if oldSelf is not used in rule";
            add("optionalOldSelf", value.to_string(), message.to_owned());
        }
    }
}
