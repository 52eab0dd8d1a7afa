//! Checks the types of an expression, and converts it to the form that is evaluated.
//!
//! Guarantees:
//! - An expression is accepted exactly if cel-go accepts it, with the same messages, apart from the limits
//!   that this module and [`nesting`](super::nesting) name.
//! - The result has at most [`MAX_NODES`] nodes and is at most [`MAX_NODE_DEPTH`] deep.

use std::collections::BTreeMap;

use cel::common::ast::{Expr, IdedExpr, LiteralValue};

use super::cel_type::{BOOL, BYTES, Bindings, DOUBLE, INT, STRING, Type, UINT};
use super::escape::is_reserved;
use super::issue::{Issue, Location, NOWHERE};
use super::node::{self, Access, Expression, Id, Kind, Literal, Node, Slot};
use super::overloads;
use super::parse::Parsed;

mod calls;
mod literals;
mod macros;

use calls::qualified_name;
use literals::{FormatCall, Items};

/// Maximum count of nodes. cel-go has no limit, and copies the target of each `optMap`.
const MAX_NODES: usize = 100_000;

/// Maximum depth of the nodes, which the evaluation follows by recursion.
///
/// The deepest expressions of the tests need less than 800 KB of stack in a debug build.
const MAX_NODE_DEPTH: u32 = 500;

/// The types of the variables of an expression.
pub(super) struct Variables {
    pub(super) self_type: Type,
    pub(super) old_self_type: Type,
}

/// A checked expression.
pub(super) struct Checked {
    pub(super) expression: Expression,
    pub(super) result: Type,
    /// The places of the nodes in the text.
    pub(super) locations: Vec<Location>,
    /// The types of the nodes.
    pub(super) types: Vec<Type>,
    /// The nodes that are calls in cel-go, apart from `&&`, `||` and selections of a field.
    pub(super) calls: BTreeMap<Id, CallFacts>,
}

/// What the estimate of the cost of a call depends on.
pub(super) struct CallFacts {
    pub(super) function: &'static str,
    /// The overloads that the types of the arguments allow.
    pub(super) overloads: Vec<&'static str>,
    /// Whether the first argument is the target of a member function.
    pub(super) is_member: bool,
    pub(super) arguments: Vec<Id>,
}

/// Checks an expression.
pub(super) fn check(parsed: &Parsed, variables: &Variables) -> Result<Checked, Vec<Issue>> {
    let mut checker = Checker {
        parsed,
        variables,
        expression: Expression::default(),
        locations: Vec::new(),
        types: Vec::new(),
        calls: BTreeMap::new(),
        depths: Vec::new(),
        bindings: Bindings::default(),
        scope: Vec::new(),
        syntax_issues: Vec::new(),
        issues: Vec::new(),
        literals: Vec::new(),
        in_format: 0,
        format_literals: BTreeMap::new(),
        formats: Vec::new(),
    };
    let root = checker.check(&parsed.expression);
    if !checker.syntax_issues.is_empty() {
        return Err(checker.syntax_issues);
    }
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    checker.compare_literals();
    checker.check_formats();
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    checker.expression.root = root.id;
    Ok(Checked {
        result: checker.bindings.resolve(&root.of, true),
        expression: checker.expression,
        locations: checker.locations,
        types: checker
            .types
            .iter()
            .map(|of| checker.bindings.resolve(of, true))
            .collect(),
        calls: checker.calls,
    })
}

/// A checked part of the expression.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) id: Id,
    pub(super) of: Type,
}

pub(super) struct Checker<'a> {
    parsed: &'a Parsed,
    variables: &'a Variables,
    expression: Expression,
    locations: Vec<Location>,
    types: Vec<Type>,
    calls: BTreeMap<Id, CallFacts>,
    /// The depths of the nodes.
    depths: Vec<u32>,
    pub(super) bindings: Bindings,
    /// The variables of the macros around the current place.
    scope: Vec<(String, Type)>,
    syntax_issues: Vec<Issue>,
    issues: Vec<Issue>,
    /// The parts that must have equal types, because they are the items of one literal.
    literals: Vec<Items>,
    /// The count of calls of `format` around the current place, whose arguments can have different types.
    in_format: usize,
    /// The literal lists and maps in calls of `format`, with their items.
    format_literals: BTreeMap<Id, Vec<Part>>,
    /// The calls of `format` with a literal text and a literal list.
    formats: Vec<FormatCall>,
}

impl Checker<'_> {
    pub(super) fn check(&mut self, expression: &IdedExpr) -> Part {
        let part = self.check_kind(expression);
        if let Some(of) = self.types.get_mut(part.id as usize) {
            *of = part.of.clone();
        }
        part
    }

    fn check_kind(&mut self, expression: &IdedExpr) -> Part {
        if self.expression.nodes.len() >= MAX_NODES {
            return self.reject_size();
        }
        match &expression.expr {
            Expr::Literal(literal) => self.literal(expression.id, literal),
            Expr::Ident(name) => self.identifier(expression.id, name),
            Expr::Select(select) => {
                if !select.test
                    && let Some(name) = qualified_name(expression)
                    && let Some((of, name)) = overloads::find_type(&name, &mut self.bindings)
                {
                    return self.type_literal(expression.id, of, name);
                }
                let operand = self.check(&select.operand);
                self.select(expression.id, &operand, &select.field, false)
            }
            Expr::Call(call) => match self.expand(expression.id, call) {
                Some(part) => part,
                None => self.call(expression.id, call),
            },
            Expr::List(list) => self.list(expression.id, &list.elements, &list.optional_indices),
            Expr::Map(map) => self.map(expression.id, &map.entries),
            Expr::Struct(message) => {
                let name = message.type_name.as_str();
                match overloads::find_type(name, &mut self.bindings) {
                    Some((of, _)) if !name.starts_with("google.") => {
                        self.issue(expression.id, format!("'{of}' is not a message type"))
                    }
                    _ => self.undeclared(expression.id, name),
                }
            }
            Expr::Comprehension(bind) => {
                self.bind(expression.id, &bind.accu_var, &bind.accu_init, &bind.result)
            }
            Expr::Unspecified => {
                self.issue(expression.id, "unexpected unspecified type: ".to_owned())
            }
        }
    }

    fn literal(&mut self, id: u64, literal: &LiteralValue) -> Part {
        let is_negative = match literal {
            LiteralValue::Int(value) => *value.inner() < 0,
            LiteralValue::Double(value) => value.inner().is_sign_negative(),
            _ => false,
        };
        let (literal, of) = match literal {
            LiteralValue::Boolean(value) => (Literal::Bool(*value.inner()), BOOL),
            LiteralValue::Bytes(value) => (Literal::Bytes(value.inner().to_vec()), BYTES),
            LiteralValue::Double(value) => (Literal::Double(*value.inner()), DOUBLE),
            LiteralValue::Int(value) => (Literal::Int(*value.inner()), INT),
            LiteralValue::Null => (Literal::Null, Type::Null),
            LiteralValue::String(value) => (Literal::String(value.inner().to_owned()), STRING),
            LiteralValue::UInt(value) => (Literal::Uint(*value.inner()), UINT),
        };
        let part = self.constant(id, literal, of);
        if is_negative {
            self.locations[part.id as usize] = self.parsed.sign_location(id);
        }
        part
    }

    pub(super) fn constant(&mut self, id: u64, literal: Literal, of: Type) -> Part {
        let id = self.push(id, Kind::Literal(literal), true);
        Part { id, of }
    }

    fn type_literal(&mut self, id: u64, of: Type, name: &'static str) -> Part {
        let of = Type::Meta(Some(of.into()));
        self.constant(id, Literal::Type(name), of)
    }

    fn identifier(&mut self, id: u64, full_name: &str) -> Part {
        let name = full_name.trim_start_matches('.');
        let mut scope = self.scope.iter().enumerate().rev();
        if let Some((slot, (_, of))) = scope.find(|(_, (known, _))| known == name) {
            let of = of.clone();
            let slot = Slot::try_from(slot).unwrap_or(Slot::MAX);
            let id = self.push(id, Kind::Local(slot), false);
            return Part { id, of };
        }
        let (kind, of) = match name {
            "self" => (Kind::SelfValue, self.variables.self_type.clone()),
            "oldSelf" => {
                self.expression.uses_old_self = true;
                (Kind::OldSelf, self.variables.old_self_type.clone())
            }
            other => {
                return match overloads::find_type(other, &mut self.bindings) {
                    Some((of, name)) => self.type_literal(id, of, name),
                    None => self.undeclared(id, full_name),
                };
            }
        };
        let id = self.push(id, kind, false);
        Part { id, of }
    }

    fn select(&mut self, id: u64, operand: &Part, field: &str, is_optional: bool) -> Part {
        let of = self.field_type(id, operand, field);
        let of_optional = self.resolve(operand).unwrap_optional().is_some();
        let kind = Kind::Select(Access {
            operand: operand.id,
            name: field.to_owned(),
            is_optional,
        });
        let id = self.push(id, kind, false);
        let of = if of_optional || is_optional {
            Type::optional(of)
        } else {
            of
        };
        Part { id, of }
    }

    pub(super) fn has(&mut self, id: u64, operand: &IdedExpr, field: &str) -> Part {
        let operand = self.check(operand);
        self.field_type(id, &operand, field);
        let id = self.push(id, Kind::Has(operand.id, field.to_owned()), false);
        Part { id, of: BOOL }
    }

    fn field_type(&mut self, id: u64, operand: &Part, field: &str) -> Type {
        let operand = self.resolve(operand);
        let target = operand.unwrap_optional().unwrap_or(&operand);
        match target {
            Type::Map(_, value) => self.bindings.resolve(value, false),
            Type::Object(object) => {
                // The grammar allows reserved words as names of fields.
                let escaped = || {
                    object
                        .fields
                        .get(&format!("__{field}__"))
                        .filter(|_| is_reserved(field))
                };
                match object.fields.get(field).or_else(escaped) {
                    Some(of) => of.clone(),
                    None => self.issue(id, format!("undefined field '{field}'")).of,
                }
            }
            Type::Variable(_) => {
                self.bindings.assign(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Opaque(name, _) if name.starts_with("kubernetes.") => {
                self.issue(id, format!("unexpected failed resolution of '{name}'"))
                    .of
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.issue(
                        id,
                        format!("type '{other}' does not support field selection"),
                    );
                }
                Type::Dyn
            }
        }
    }

    // The scope of macros.

    /// Declares a variable, checks what `check` checks, and removes the variable.
    pub(super) fn with_variable<R>(
        &mut self,
        name: &str,
        of: Type,
        check: impl FnOnce(&mut Self, Slot) -> R,
    ) -> R {
        let slot = Slot::try_from(self.scope.len()).unwrap_or(Slot::MAX);
        self.scope.push((name.to_owned(), of));
        self.expression.slots = self.expression.slots.max(slot + 1);
        let result = check(self, slot);
        self.scope.pop();
        result
    }

    pub(super) fn variable_type(&self, slot: Slot) -> Type {
        let variable = self.scope.get(slot as usize);
        variable.map_or(Type::Error, |(_, of)| self.bindings.resolve(of, false))
    }

    fn bind(&mut self, id: u64, name: &str, value: &IdedExpr, body: &IdedExpr) -> Part {
        let value = self.check(value);
        let (slot, body) =
            self.with_variable(name, value.of, |this, slot| (slot, this.check(body)));
        let id = self.push(id, Kind::Bind(slot, value.id, body.id), false);
        Part {
            id,
            of: self.bindings.resolve(&body.of, false),
        }
    }

    // Messages.

    pub(super) fn syntax_issue(&mut self, id: u64, message: &str) -> Part {
        let location = self.parsed.location(id);
        let message = message.to_owned();
        self.syntax_issues.push(Issue { location, message });
        self.failed(id)
    }

    fn issue(&mut self, id: u64, message: String) -> Part {
        let location = self.parsed.location(id);
        self.issues.push(Issue { location, message });
        self.failed(id)
    }

    fn failed(&mut self, id: u64) -> Part {
        self.constant(id, Literal::Null, Type::Error)
    }

    fn undeclared(&mut self, id: u64, name: &str) -> Part {
        self.issue(
            id,
            format!("undeclared reference to '{name}' (in container '')"),
        )
    }

    pub(super) fn no_overload(
        &mut self,
        id: u64,
        name: &str,
        is_member: bool,
        types: &[Type],
    ) -> Part {
        let shown: Vec<String> = types
            .iter()
            .map(|one| self.bindings.resolve(one, true).to_string())
            .collect();
        let signature = match shown.split_first() {
            Some((target, arguments)) if is_member => {
                format!("{target}.({})", arguments.join(", "))
            }
            _ => format!("({})", shown.join(", ")),
        };
        self.issue(
            id,
            format!("found no matching overload for '{name}' applied to '{signature}'"),
        )
    }

    pub(super) fn not_a_range(&mut self, part: &Part, of: &Type) {
        let location = self.locations[part.id as usize];
        let allowed = "must be list, map, or dynamic";
        let message =
            format!("expression of type '{of}' cannot be range of a comprehension ({allowed})");
        self.issues.push(Issue { location, message });
    }

    fn mismatch(&mut self, location: Location, expected: &Type, found: &Type) {
        let message = format!("expected type '{expected}' but found '{found}'");
        self.issues.push(Issue { location, message });
    }

    fn reject_size(&mut self) -> Part {
        let message = "expression size limit exceeded".to_owned();
        if self.syntax_issues.is_empty() {
            let location = NOWHERE;
            self.syntax_issues.push(Issue { location, message });
        }
        Part {
            id: 0,
            of: Type::Error,
        }
    }

    // The nodes.

    pub(super) fn push(&mut self, id: u64, kind: Kind, is_constant: bool) -> Id {
        let mut depth = 0;
        node::operands(&kind, |operand| {
            depth = depth.max(self.depths[operand as usize]);
        });
        if depth >= MAX_NODE_DEPTH {
            self.reject_size();
        }
        self.depths.push(depth + 1);
        self.locations.push(self.parsed.location(id));
        self.types.push(Type::Dyn);
        self.expression.nodes.push(Node { kind, is_constant });
        Id::try_from(self.expression.nodes.len() - 1).unwrap_or(Id::MAX)
    }

    pub(super) fn resolve(&self, part: &Part) -> Type {
        self.bindings.resolve(&part.of, false)
    }

    pub(super) fn is_constant(&self, id: Id) -> bool {
        self.expression.nodes[id as usize].is_constant
    }
}
