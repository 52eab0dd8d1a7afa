//! Compiles one expression.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cel_type::{BOOL, STRING, Type};
use super::check::{self, Checked, Variables};
use super::cost::{Failure, Meter, Patterns};
use super::declared::Declared;
use super::estimate;
use super::eval::{Evaluator, Inputs, evaluate};
use super::issue::{self, Issue};
use super::node::{Call, Expression, Kind, Literal, Node};
use super::parse::{self, STACK_BYTES};
use super::value::Value;
use crate::go_regex::Pattern;

/// A compiled rule or message expression.
#[derive(Debug)]
pub(super) struct Program {
    expression: Expression,
    patterns: Patterns,
    /// The maximum cost of an evaluation that Kubernetes estimates.
    pub(super) max_cost: u64,
}

/// The purpose of an expression, which determines its result type and the wording of errors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Purpose {
    Rule,
    MessageExpression,
}

/// The types of the variables of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) self_type: &'a Type,
    /// The sizes of `self`.
    pub(super) declared: &'a Declared,
    /// Whether `oldSelf` is an optional value.
    pub(super) optional_old_self: bool,
}

/// The result of an evaluation, with its cost and work.
pub(super) struct Evaluated<T> {
    pub(super) result: Result<T, Failure>,
    pub(super) cost: u64,
    pub(super) work: u64,
}

impl Program {
    /// Compiles an expression.
    ///
    /// Parsing and checking recurse, so they run in a thread with a large stack, for which this call waits.
    pub(super) fn compile(
        source: &str,
        scope: Scope<'_>,
        purpose: Purpose,
    ) -> Result<Program, String> {
        let compiled = std::thread::scope(|threads| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = thread.spawn_scoped(threads, || compile(source, scope, purpose));
            thread.ok().and_then(|thread| thread.join().ok())
        });
        let internal = || Err(format!("{}unexpected compilation error", purpose.prefix()));
        compiled.unwrap_or_else(internal)
    }

    pub(super) fn uses_old_self(&self) -> bool {
        self.expression.uses_old_self
    }

    pub(super) fn evaluate<'a>(&'a self, inputs: &Inputs<'a>, limit: u64) -> Evaluated<Value<'a>> {
        let mut meter = Meter::new(limit, &self.patterns);
        let result = evaluate(&self.expression, inputs, &mut meter);
        Evaluated {
            result,
            cost: meter.cost,
            work: meter.work,
        }
    }
}

impl Purpose {
    fn prefix(self) -> &'static str {
        match self {
            Purpose::Rule => "",
            Purpose::MessageExpression => "messageExpression ",
        }
    }
}

fn compile(source: &str, scope: Scope<'_>, purpose: Purpose) -> Result<Program, String> {
    let failed = |issues: Vec<Issue>| {
        let prefix = purpose.prefix();
        let issues = issue::display(source, issues);
        format!("{prefix}compilation failed: {issues}")
    };
    let self_type = scope.self_type.clone();
    let old_self_type = if scope.optional_old_self {
        Type::optional(self_type.clone())
    } else {
        self_type.clone()
    };
    let variables = Variables {
        self_type,
        old_self_type,
    };
    let parsed = parse::parse(source).map_err(failed)?;
    let checked = check::check(&parsed, &variables).map_err(failed)?;
    let (issues, defect, patterns) = check_constants(&checked);
    if !issues.is_empty() {
        return Err(failed(issues));
    }
    let (expected, name) = match purpose {
        Purpose::Rule => (BOOL, "cel expression must evaluate to a bool"),
        Purpose::MessageExpression => (STRING, "messageExpression must evaluate to a string"),
    };
    if !checked.result.is_same(&expected, false) {
        return Err(name.to_owned());
    }
    if let Some(defect) = defect {
        let subject = match purpose {
            Purpose::Rule => "program",
            Purpose::MessageExpression => "messageExpression",
        };
        return Err(format!("{subject} instantiation failed: {defect}"));
    }
    let max_cost = estimate::max_cost(&checked, scope.declared);
    let expression = checked.expression;
    let patterns = Arc::new(patterns);
    Ok(Program {
        expression,
        patterns,
        max_cost,
    })
}

/// Evaluates the calls that are known before the evaluation, and compiles their regular expressions.
///
/// Returns messages about literals, the first error of another constant, and the compiled expressions.
fn check_constants(checked: &Checked) -> (Vec<Issue>, Option<String>, BTreeMap<String, Pattern>) {
    let Checked {
        expression,
        locations,
        ..
    } = checked;
    let (mut issues, mut defect, mut patterns) = (Vec::new(), None, BTreeMap::new());
    for (index, node) in expression.nodes.iter().enumerate() {
        let call = match &node.kind {
            Kind::Call(call) => call,
            Kind::Index(_, key) => {
                defect = defect.or_else(|| invalid_key(&expression.nodes[*key as usize]));
                continue;
            }
            _ => continue,
        };
        let literal = |argument: usize| {
            let id = *call.arguments.get(argument)? as usize;
            let is_literal = matches!(expression.nodes[id].kind, Kind::Literal(_));
            is_literal.then_some(locations[id])
        };
        if node.is_constant
            && let Err(error) = evaluate_constant(expression, index)
        {
            match literal(0) {
                Some(location) if matches!(call.function, "duration" | "timestamp") => {
                    let message = format!("invalid {} argument", call.function);
                    issues.push(Issue { location, message });
                }
                _ => defect = defect.or(Some(error)),
            }
        }
        if matches!(call.function, "matches" | "find" | "findAll")
            && let Some(text) = constant_text(expression, call, 1)
        {
            match Pattern::compile(&text) {
                Ok(pattern) => {
                    patterns.insert(text, pattern);
                }
                Err(error) => {
                    let is_member = call.overload == Some("matches_string");
                    match literal(1).filter(|_| is_member) {
                        Some(location) => {
                            let message = "invalid matches argument".to_owned();
                            issues.push(Issue { location, message });
                        }
                        None => defect = defect.or(Some(error)),
                    }
                }
            }
        }
        // cel-go checks the first argument, which is the text if the function is not called as a member.
        if call.overload == Some("matches")
            && let Some(location) = literal(0)
            && let Some(text) = constant_text(expression, call, 0)
            && Pattern::compile(&text).is_err()
        {
            let message = "invalid matches argument".to_owned();
            issues.push(Issue { location, message });
        }
    }
    (issues, defect, patterns)
}

/// Returns the error for a literal that can't be a key.
fn invalid_key(node: &Node) -> Option<String> {
    let name = match &node.kind {
        Kind::Literal(Literal::Null) => "types.Null",
        Kind::Literal(Literal::Bytes(_)) => "types.Bytes",
        Kind::Literal(Literal::Type(_)) => "*types.Type",
        _ => return None,
    };
    Some(format!("invalid qualifier type: {name}"))
}

fn evaluate_constant(expression: &Expression, index: usize) -> Result<(), String> {
    let (inputs, patterns) = (no_inputs(), Patterns::default());
    let mut meter = Meter::new(u64::MAX, &patterns);
    let id = u32::try_from(index).unwrap_or(u32::MAX);
    match Evaluator::new(expression, &inputs, &mut meter).eval(id) {
        Err(Failure::Error(error)) => Err(error),
        Err(Failure::LimitExceeded) | Ok(_) => Ok(()),
    }
}

/// Returns the text of a constant argument.
fn constant_text(expression: &Expression, call: &Call, argument: usize) -> Option<String> {
    let id = *call.arguments.get(argument)?;
    match &expression.nodes[id as usize] {
        Node {
            kind: Kind::Literal(Literal::String(text)),
            ..
        } => Some(text.clone()),
        Node {
            is_constant: true, ..
        } => {
            let (inputs, patterns) = (no_inputs(), Patterns::default());
            let mut meter = Meter::new(u64::MAX, &patterns);
            match Evaluator::new(expression, &inputs, &mut meter).eval(id) {
                Ok(Value::String(text)) => Some(text.to_string()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn no_inputs<'a>() -> Inputs<'a> {
    Inputs {
        self_value: Ok(Value::Null),
        old_self: Ok(Value::Null),
    }
}
