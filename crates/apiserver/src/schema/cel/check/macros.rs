//! The macros of Kubernetes 1.36.
//!
//! The evaluation of a macro is one operation, because the steps into which cel-go divides it can't be
//! observed, apart from their cost.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr};

use super::super::cel_type::{BOOL, INT, Type};
use super::super::node::{Fold, FoldKind, Kind, Literal};
use super::super::overloads;
use super::{Checker, Part};

/// The names of cel-go's variable for the result of a macro.
const ACCUMULATORS: [&str; 2] = ["@result", "__result__"];

/// The variable of `sortBy`.
const SORT_INPUT: &str = "@__sortBy_input__";

/// What a macro does with each item.
struct Step<'e> {
    kind: FoldKind,
    variables: (u32, Option<u32>),
    filter: Option<&'e IdedExpr>,
    body: &'e IdedExpr,
}

impl Checker<'_> {
    /// Checks a call of a macro. Returns `None` for other calls.
    pub(super) fn expand(&mut self, id: u64, call: &CallExpr) -> Option<Part> {
        let arguments = call.args.as_slice();
        let name = call.func_name.as_str();
        let Some(target) = &call.target else {
            return match (name, arguments) {
                ("has", [argument]) => Some(match &argument.expr {
                    Expr::Select(select) if !select.test => {
                        self.has(id, &select.operand, &select.field)
                    }
                    _ => self.syntax_issue(argument.id, "invalid argument to has() macro"),
                }),
                _ => None,
            };
        };
        let kind = match (name, arguments.len()) {
            ("all", 2 | 3) => FoldKind::All,
            ("exists", 2 | 3) => FoldKind::Exists,
            ("exists_one", 2 | 3) | ("existsOne", 3) => FoldKind::ExistsOne,
            ("map", 2 | 3) | ("filter", 2) | ("transformList", 3 | 4) => FoldKind::List,
            ("transformMap", 3 | 4) => FoldKind::Map,
            ("transformMapEntry", 3 | 4) => FoldKind::MapEntries,
            ("optMap" | "optFlatMap", 2) => {
                return Some(self.optional_map(id, name, target, arguments));
            }
            ("sortBy", 2) => return Some(self.sort_by(id, target, arguments)),
            _ => return None,
        };
        let has_two =
            name.starts_with("transform") || (arguments.len() == 3 && !matches!(name, "map"));
        Some(if has_two {
            self.two_variables(id, kind, target, arguments)
        } else {
            self.one_variable(id, (kind, name == "filter"), target, arguments)
        })
    }

    fn one_variable(
        &mut self,
        id: u64,
        (kind, is_filter): (FoldKind, bool),
        target: &IdedExpr,
        all: &[IdedExpr],
    ) -> Part {
        let variable = &all[0];
        let Expr::Ident(name) = &variable.expr else {
            let message = match kind {
                FoldKind::List => "argument is not an identifier",
                _ => "argument must be a simple name",
            };
            return self.syntax_issue(variable.id, message);
        };
        if ACCUMULATORS.contains(&name.as_str()) {
            return self.overwrites(variable.id);
        }
        let (filter, body) = match all {
            [_, filter] if is_filter => (Some(filter), variable),
            [_, filter, body] => (Some(filter), body),
            _ => (None, &all[1]),
        };
        let range = self.check(target);
        let (of, _) = self.variable_types(&range, false);
        self.with_variable(name, of, |this, slot| {
            let variables = (slot, None);
            let step = Step {
                kind,
                variables,
                filter,
                body,
            };
            this.fold(id, &range, &step)
        })
    }

    fn two_variables(
        &mut self,
        id: u64,
        kind: FoldKind,
        target: &IdedExpr,
        all: &[IdedExpr],
    ) -> Part {
        let (first, second) = (&all[0], &all[1]);
        let mut names = Vec::new();
        for variable in [first, second] {
            match &variable.expr {
                Expr::Ident(name) => names.push(name),
                _ => return self.syntax_issue(variable.id, "argument must be a simple name"),
            }
        }
        if names[0] == names[1] {
            let message = format!("duplicate variable name: {}", names[0]);
            return self.syntax_issue(second.id, &message);
        }
        for (name, variable) in names.iter().zip([first, second]) {
            if ACCUMULATORS.contains(&name.as_str()) {
                return self.overwrites(variable.id);
            }
        }
        let (filter, body) = match all {
            [_, _, filter, body] => (Some(filter), body),
            _ => (None, &all[2]),
        };
        let range = self.check(target);
        let (of, second_of) = self.variable_types(&range, true);
        self.with_variable(names[0], of, |this, slot| {
            this.with_variable(names[1], second_of, |this, second_slot| {
                let variables = (slot, Some(second_slot));
                let step = Step {
                    kind,
                    variables,
                    filter,
                    body,
                };
                this.fold(id, &range, &step)
            })
        })
    }

    fn overwrites(&mut self, id: u64) -> Part {
        self.syntax_issue(id, "iteration variable overwrites accumulator variable")
    }

    /// Returns the types of the variables. The second one is only used with `has_two`.
    fn variable_types(&mut self, range: &Part, has_two: bool) -> (Type, Type) {
        let of = self.resolve(range);
        match &of {
            Type::List(items) if has_two => (INT, (**items).clone()),
            Type::List(items) => ((**items).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Variable(_) => {
                self.bindings.assign(&Type::Dyn, &of);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.not_a_range(range, other);
                (Type::Error, Type::Error)
            }
        }
    }

    fn fold(&mut self, id: u64, range: &Part, step: &Step<'_>) -> Part {
        let Step {
            kind,
            variables: (variable, second_variable),
            ..
        } = *step;
        let filter = step.filter.map(|filter| self.check(filter));
        let body = self.check(step.body);
        let of = self.fold_type(id, kind, variable, &body);
        match (kind, &filter) {
            (FoldKind::ExistsOne, None) => self.check_condition(id, &body, &INT),
            (_, Some(filter)) => self.check_condition(id, filter, &of),
            _ => {}
        }
        let fold = Fold {
            kind,
            range: range.id,
            variable,
            second_variable,
            filter: filter.map(|filter| filter.id),
            body: body.id,
        };
        let id = self.push(id, Kind::Fold(Box::new(fold)), false);
        Part { id, of }
    }

    fn fold_type(&mut self, id: u64, kind: FoldKind, variable: u32, body: &Part) -> Type {
        let of = self.resolve(body);
        match kind {
            FoldKind::All | FoldKind::Exists => {
                self.assert_type(body, &BOOL);
                BOOL
            }
            FoldKind::ExistsOne => BOOL,
            FoldKind::List => Type::list(of),
            FoldKind::Map => Type::map(self.variable_type(variable), of),
            FoldKind::MapEntries => {
                let empty = Type::map(self.bindings.new_variable(), self.bindings.new_variable());
                if self.bindings.assign(&of, &empty) {
                    return self.bindings.resolve(&empty, false);
                }
                self.no_overload(id, "cel.@mapInsert", false, &[empty, of])
                    .of
            }
        }
    }

    /// Checks the condition that selects between a new and an unchanged result.
    fn check_condition(&mut self, id: u64, condition: &Part, of: &Type) {
        let branch = self.constant(id, Literal::Null, of.clone());
        let parts = [condition.clone(), branch.clone(), branch];
        if let Some(conditional) = overloads::find("_?_:_") {
            self.resolve_call(id, conditional, false, &parts);
        }
    }

    /// `t.optMap(v, e)` is `t.hasValue() ? optional.of(e) : optional.none()`, where `v` is `t.value()`.
    fn optional_map(&mut self, id: u64, name: &str, target: &IdedExpr, all: &[IdedExpr]) -> Part {
        let Expr::Ident(variable) = &all[0].expr else {
            let message = format!("{name}() variable name must be a simple identifier");
            return self.syntax_issue(all[0].id, &message);
        };
        let ided = |expr| IdedExpr { id, expr };
        let member = |function: &str| {
            ided(Expr::Call(CallExpr {
                func_name: function.to_owned(),
                target: Some(Box::new(target.clone())),
                args: Vec::new(),
            }))
        };
        let global = |function: &str, args| {
            ided(Expr::Call(CallExpr {
                func_name: function.to_owned(),
                target: None,
                args,
            }))
        };
        let mapped = ided(bind(variable, member("value"), all[1].clone()));
        let some = match name {
            "optMap" => global("optional.of", vec![mapped]),
            _ => mapped,
        };
        let none = global("optional.none", Vec::new());
        self.check(&global("_?_:_", vec![member("hasValue"), some, none]))
    }

    /// Sorts a list by the values that a macro computes for the items.
    fn sort_by(&mut self, id: u64, target: &IdedExpr, all: &[IdedExpr]) -> Part {
        if matches!(
            target.expr,
            Expr::Literal(_) | Expr::Map(_) | Expr::Struct(_)
        ) {
            let allowed = "a list, identifier, comprehension, call or select expression";
            let message = format!("sortBy can only be applied to {allowed}");
            return self.syntax_issue(target.id, &message);
        }
        let ided = |expr| IdedExpr { id, expr };
        let input = || Some(Box::new(ided(Expr::Ident(SORT_INPUT.to_owned()))));
        let keys = ided(Expr::Call(CallExpr {
            func_name: "map".to_owned(),
            target: input(),
            args: all.to_vec(),
        }));
        let sorted = ided(Expr::Call(CallExpr {
            func_name: "@sortByAssociatedKeys".to_owned(),
            target: input(),
            args: vec![keys],
        }));
        self.check(&ided(bind(SORT_INPUT, target.clone(), sorted)))
    }
}

/// Returns the expression that evaluates `body` with a variable.
fn bind(variable: &str, value: IdedExpr, body: IdedExpr) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        accu_var: variable.to_owned(),
        accu_init: value,
        result: body,
        ..ComprehensionExpr::default()
    }))
}
