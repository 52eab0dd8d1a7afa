//! Checks calls: selects the overloads that the types of the arguments allow.

use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue};

use super::super::cel_type::{BOOL, Type};
use super::super::node::{Access, Call, Id, Kind, Literal};
use super::super::overloads::{self, Function};
use super::{CallFacts, Checker, Part};

impl Checker<'_> {
    pub(super) fn call(&mut self, id: u64, call: &CallExpr) -> Part {
        let name = call.func_name.trim_start_matches('.');
        if name == "_?._" {
            return self.optional_select(id, &call.args);
        }
        let Some(target) = &call.target else {
            let arguments: Vec<Part> = call.args.iter().map(|one| self.check(one)).collect();
            let Some(function) = overloads::find(name) else {
                return self.undeclared(id, name);
            };
            return self.resolve_call(id, function, false, &arguments);
        };
        let is_format = name == "format";
        self.in_format += usize::from(is_format);
        let arguments: Vec<Part> = call.args.iter().map(|one| self.check(one)).collect();
        self.in_format -= usize::from(is_format);
        if let Some(prefix) = qualified_name(target)
            && let Some(function) = overloads::find(&format!("{prefix}.{name}"))
        {
            return self.resolve_call(id, function, false, &arguments);
        }
        let target = self.check(target);
        let Some(function) = overloads::find(name) else {
            return self.undeclared(id, name);
        };
        let all: Vec<Part> = [target].into_iter().chain(arguments).collect();
        if is_format {
            self.note_format(id, &all);
        }
        self.resolve_call(id, function, true, &all)
    }

    pub(super) fn optional_select(&mut self, id: u64, arguments: &[IdedExpr]) -> Part {
        let [operand, field] = arguments else {
            let count = arguments.len();
            let message = format!("incorrect signature. argument count: {count}");
            return self.issue(
                id,
                format!("unsupported optional field selection: {message}"),
            );
        };
        let Expr::Literal(LiteralValue::String(name)) = &field.expr else {
            return self.issue(field.id, "unsupported optional field selection".to_owned());
        };
        let operand = self.check(operand);
        self.select(id, &operand, name.inner(), true)
    }

    /// Selects the overloads that the types of the arguments allow.
    pub(super) fn resolve_call(
        &mut self,
        id: u64,
        function: &'static Function,
        is_member: bool,
        arguments: &[Part],
    ) -> Part {
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logical(id, function.name, arguments);
        }
        let types: Vec<Type> = arguments.iter().map(|one| one.of.clone()).collect();
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in &function.overloads {
            if overload.is_member != is_member {
                continue;
            }
            let (expected, of) = overload.instantiate(&mut self.bindings);
            if self.bindings.assign_all(&types, &expected) {
                matching.push(overload.id);
                let of = self.bindings.resolve(&of, false);
                result = match result {
                    None => Some(of),
                    Some(first) if matches!(first, Type::Dyn) || of.is_same(&first, false) => {
                        Some(first)
                    }
                    Some(_) => Some(Type::Dyn),
                };
            }
        }
        let Some(of) = result else {
            return self.no_overload(id, function.name, is_member, &types);
        };
        let overload = match matching.as_slice() {
            [only] => Some(*only),
            _ => None,
        };
        let ids: Vec<Id> = arguments.iter().map(|one| one.id).collect();
        let facts = CallFacts {
            function: function.name,
            overloads: matching,
            is_member,
            arguments: ids.clone(),
        };
        let id = if overload == Some("in_list") && self.is_empty_list(ids[1]) {
            self.constant(id, Literal::Bool(false), of.clone()).id
        } else {
            let is_constant = self.is_constant_conversion(function.name, &ids);
            self.push(id, operation(function.name, overload, ids), is_constant)
        };
        self.calls.insert(id, facts);
        Part { id, of }
    }

    pub(super) fn logical(&mut self, id: u64, name: &str, arguments: &[Part]) -> Part {
        let mut of = BOOL;
        for argument in arguments {
            if !self.assert_type(argument, &BOOL) {
                of = Type::Error;
            }
        }
        let ids = arguments.iter().map(|one| one.id).collect();
        let kind = if name == "_&&_" {
            Kind::And(ids)
        } else {
            Kind::Or(ids)
        };
        let id = self.push(id, kind, false);
        Part { id, of }
    }

    pub(super) fn assert_type(&mut self, part: &Part, expected: &Type) -> bool {
        let assignable = self.bindings.assign(&part.of, expected);
        if !assignable {
            let location = self.locations[part.id as usize];
            self.mismatch(location, expected, &part.of);
        }
        assignable
    }

    /// Returns whether cel-go computes the call before the evaluation.
    pub(super) fn is_constant_conversion(&self, name: &str, arguments: &[Id]) -> bool {
        let is_conversion = matches!(
            name,
            "bool"
                | "bytes"
                | "double"
                | "duration"
                | "dyn"
                | "int"
                | "string"
                | "timestamp"
                | "type"
                | "uint"
        );
        matches!(arguments, [only] if is_conversion && self.is_constant(*only))
    }

    pub(super) fn is_empty_list(&self, id: Id) -> bool {
        let node = &self.expression.nodes[id as usize];
        matches!(&node.kind, Kind::List(items) if items.is_empty())
    }
}

/// Returns the operation of a call whose overload is resolved.
fn operation(name: &'static str, overload: Option<&'static str>, ids: Vec<Id>) -> Kind {
    match (name, ids.as_slice()) {
        ("_?_:_", [condition, first, second]) => Kind::Conditional([*condition, *first, *second]),
        ("_[_]" | "_[?_]", [operand, key]) => {
            let access = Access {
                operand: *operand,
                name: String::new(),
                is_optional: name == "_[?_]",
            };
            Kind::Index(access, *key)
        }
        _ => Kind::Call(Call {
            function: name,
            overload,
            arguments: ids,
        }),
    }
}

/// Returns the dotted name that an expression spells.
pub(super) fn qualified_name(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.trim_start_matches('.').to_owned()),
        Expr::Select(select) if !select.test => Some(format!(
            "{}.{}",
            qualified_name(&select.operand)?,
            select.field
        )),
        _ => None,
    }
}
