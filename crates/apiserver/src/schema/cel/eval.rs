//! Evaluates a checked expression.
//!
//! Guarantees:
//! - The evaluation ends: each step counts toward the limits of [`Meter`].
//! - The cost is that of cel-go: a chain of fields and indices costs one for each link and one for its start,
//!   and nothing that is known before the evaluation has a cost.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::cost::{self, Failure, Meter};
use super::function;
use super::node::{Access, Call, Expression, Id, Kind, Literal, Slot};
use super::value::{Key, List, Map, Text, Value};

mod fold;

type Outcome<'a> = Result<Value<'a>, Failure>;

/// The values of the variables of an expression.
pub(super) struct Inputs<'a> {
    pub(super) self_value: Result<Value<'a>, String>,
    pub(super) old_self: Result<Value<'a>, String>,
}

/// The value of a local variable.
#[derive(Clone)]
enum Local<'a> {
    Known(Outcome<'a>),
    /// The node that is evaluated when the variable is used.
    Pending(Id),
}

pub(super) struct Evaluator<'a, 'm> {
    expression: &'a Expression,
    inputs: &'m Inputs<'a>,
    meter: &'m mut Meter,
    locals: Vec<Local<'a>>,
    /// The values of the constant nodes that have been used.
    constants: BTreeMap<Id, Outcome<'a>>,
    /// The items of constant lists, for membership tests. `None` if items can't be keys.
    sets: BTreeMap<Id, Option<Rc<BTreeSet<Key<'a>>>>>,
    /// Whether constants are being computed, which has no cost.
    is_free: bool,
}

/// Evaluates an expression.
pub(super) fn evaluate<'a>(
    expression: &'a Expression,
    inputs: &Inputs<'a>,
    meter: &mut Meter,
) -> Outcome<'a> {
    Evaluator::new(expression, inputs, meter).eval(expression.root)
}

impl<'a, 'm> Evaluator<'a, 'm> {
    pub(super) fn new(
        expression: &'a Expression,
        inputs: &'m Inputs<'a>,
        meter: &'m mut Meter,
    ) -> Evaluator<'a, 'm> {
        Evaluator {
            expression,
            inputs,
            meter,
            locals: vec![Local::Known(Ok(Value::Null)); expression.slots as usize],
            constants: BTreeMap::new(),
            sets: BTreeMap::new(),
            is_free: false,
        }
    }

    fn kind(&self, id: Id) -> &'a Kind {
        let expression: &'a Expression = self.expression;
        &expression.nodes[id as usize].kind
    }

    fn is_constant(&self, id: Id) -> bool {
        self.expression.nodes[id as usize].is_constant
    }

    fn charge(&mut self, cost: u64) -> Result<(), Failure> {
        if self.is_free {
            Ok(())
        } else {
            self.meter.charge(cost)
        }
    }

    /// Evaluates a node, with its cost.
    pub(super) fn eval(&mut self, id: Id) -> Outcome<'a> {
        self.meter.work(1)?;
        match self.kind(id) {
            Kind::Literal(literal) if !matches!(literal, Literal::Bytes(_)) => {
                Ok(literal_value(literal))
            }
            _ if self.is_constant(id) && !self.is_free => self.constant(id),
            Kind::Literal(literal) => Ok(literal_value(literal)),
            Kind::And(terms) => self.logical(terms, false),
            Kind::Or(terms) => self.logical(terms, true),
            Kind::Call(call) => self.call(call),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Fold(fold) => self.fold(fold),
            Kind::Bind(slot, value, body) => {
                self.locals[*slot as usize] = Local::Pending(*value);
                self.eval(*body)
            }
            Kind::Conditional(_) | Kind::Has(..) => self.resolve(id),
            Kind::SelfValue
            | Kind::OldSelf
            | Kind::Local(_)
            | Kind::Select(_)
            | Kind::Index(..) => {
                let value = self.resolve(id);
                if !self.starts_with_conditional(id) {
                    self.charge(1)?;
                }
                value
            }
        }
    }

    /// Evaluates a node as the start of a chain, or as a branch of a conditional.
    fn eval_start(&mut self, id: Id) -> Outcome<'a> {
        match self.kind(id) {
            Kind::SelfValue
            | Kind::OldSelf
            | Kind::Local(_)
            | Kind::Select(_)
            | Kind::Index(..)
            | Kind::Has(..)
            | Kind::Conditional(_) => {
                self.meter.work(1)?;
                self.resolve(id)
            }
            _ => self.eval(id),
        }
    }

    /// Evaluates a chain without the cost of its start.
    fn resolve(&mut self, id: Id) -> Outcome<'a> {
        match self.kind(id) {
            Kind::SelfValue => Ok(self.inputs.self_value.clone()?),
            Kind::OldSelf => Ok(self.inputs.old_self.clone()?),
            Kind::Local(slot) => self.local(*slot),
            Kind::Select(access) => {
                let operand = self.eval_start(access.operand)?;
                let name = Value::String(Text::Borrowed(&access.name));
                self.qualify(&operand, access, &name)
            }
            Kind::Index(access, key) => {
                let operand = self.eval_start(access.operand)?;
                if matches!(operand, Value::Optional(None)) {
                    return Ok(operand);
                }
                let key = self.eval_start(*key)?;
                self.qualify(&operand, access, &key)
            }
            Kind::Has(operand, name) => self.has(*operand, name),
            Kind::Conditional([condition, first, second]) => match self.eval(*condition)? {
                Value::Bool(true) => self.eval_start(*first),
                Value::Bool(false) => self.eval_start(*second),
                _ => Err("no such overload".into()),
            },
            _ => self.eval(id),
        }
    }

    fn starts_with_conditional(&self, id: Id) -> bool {
        match self.kind(id) {
            Kind::Select(access) | Kind::Index(access, _) => {
                self.starts_with_conditional(access.operand)
            }
            Kind::Conditional(_) => true,
            _ => false,
        }
    }

    fn local(&mut self, slot: Slot) -> Outcome<'a> {
        let index = slot as usize;
        let id = match &self.locals[index] {
            Local::Known(outcome) => return outcome.clone(),
            Local::Pending(id) => *id,
        };
        // The node uses the same numbers for its own variables as the scope that uses this variable.
        let inner = self.locals.split_off(index);
        self.locals
            .resize(index + inner.len(), Local::Known(Ok(Value::Null)));
        let outcome = self.eval(id);
        self.locals.truncate(index);
        self.locals.extend(inner);
        self.locals[index] = Local::Known(outcome.clone());
        outcome
    }

    fn constant(&mut self, id: Id) -> Outcome<'a> {
        if let Some(known) = self.constants.get(&id) {
            return known.clone();
        }
        self.is_free = true;
        let outcome = self.eval(id);
        self.is_free = false;
        self.constants.insert(id, outcome.clone());
        outcome
    }

    /// Returns the field, entry or item of a value.
    fn qualify(&mut self, operand: &Value<'a>, access: &Access, key: &Value<'a>) -> Outcome<'a> {
        let (target, is_optional) = match operand {
            Value::Optional(None) => return Ok(operand.clone()),
            Value::Optional(Some(value)) => (&**value, true),
            value => (value, access.is_optional),
        };
        let found = look_up(target, key);
        let found = found.map(|value| self.meter.read(value)).transpose()?;
        if !is_optional || found.is_some() {
            self.charge(1)?;
        }
        match (found, is_optional) {
            (Some(value), true) => Ok(Value::some(value?)),
            (None, true) => Ok(Value::Optional(None)),
            (Some(value), false) => Ok(value?),
            (None, false) => {
                let what = match target {
                    Value::List(_) => "index out of bounds",
                    _ => "no such key",
                };
                let key = function::display(key);
                Err(Failure::Error(format!("{what}: {key}")))
            }
        }
    }

    fn has(&mut self, operand: Id, name: &'a str) -> Outcome<'a> {
        let operand = self.eval_start(operand)?;
        let target = match &operand {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(value)) => value,
            value => value,
        };
        let found = look_up(target, &Value::String(Text::Borrowed(name)));
        let found = found.map(|value| self.meter.read(value)).transpose()?;
        self.charge(1)?;
        match found {
            Some(value) => value.map(|_| Value::Bool(true)).map_err(Failure::Error),
            None => Ok(Value::Bool(false)),
        }
    }

    /// Evaluates terms until one has the value that decides the result.
    fn logical(&mut self, terms: &'a [Id], decisive: bool) -> Outcome<'a> {
        let mut failure = None;
        for term in terms {
            match self.eval(*term) {
                Ok(Value::Bool(value)) if value == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
                other => {
                    let error = other.err().unwrap_or_else(|| "no such overload".into());
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        match (call.function, call.arguments.as_slice()) {
            ("or" | "orValue", [target, other]) => {
                return self.optional_or(call.function, *target, *other);
            }
            ("@in", [value, list])
                if call.overload == Some("in_list") && self.is_constant(*list) =>
            {
                if let Some(found) = self.is_member(*value, *list)? {
                    return Ok(found);
                }
            }
            _ => {}
        }
        let (arguments, failure) = self.arguments(call)?;
        if let Some(error) = failure {
            // cel-go counts a call only if it has evaluated all arguments.
            if arguments.len() == call.arguments.len() {
                self.charge(cost::of_call(
                    call.function,
                    call.overload,
                    &arguments,
                    None,
                ))?;
            }
            return Err(Failure::Error(error));
        }
        let result = function::call(self.meter, call.function, call.overload, &arguments);
        if matches!(result, Err(Failure::LimitExceeded)) {
            return result;
        }
        let cost = cost::of_call(
            call.function,
            call.overload,
            &arguments,
            result.as_ref().ok(),
        );
        self.charge(cost)?;
        result
    }

    /// Evaluates the arguments of a call. Returns the first error too.
    ///
    /// cel-go evaluates both arguments of an operator. It ends after the error of one of more arguments, or
    /// of the text that a constant regular expression is applied to.
    fn arguments(&mut self, call: &'a Call) -> Result<(Vec<Value<'a>>, Option<String>), Failure> {
        let ids = call.arguments.as_slice();
        let has_pattern = matches!(call.function, "matches" | "find" | "findAll");
        let ends_early =
            ids.len() > 2 || (has_pattern && ids.get(1).is_some_and(|id| self.is_constant(*id)));
        let mut arguments = Vec::with_capacity(ids.len());
        let mut failure = None;
        for argument in ids {
            match self.eval(*argument) {
                Ok(value) => arguments.push(value),
                Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
                Err(Failure::Error(error)) => {
                    failure = failure.or(Some(error));
                    // An error has the size of a scalar.
                    arguments.push(Value::Null);
                    if ends_early {
                        break;
                    }
                }
            }
        }
        Ok((arguments, failure))
    }

    /// Evaluates the alternative of an optional value only if it is needed.
    fn optional_or(&mut self, function: &str, target: Id, other: Id) -> Outcome<'a> {
        match self.eval(target)? {
            Value::Optional(Some(value)) if function == "orValue" => Ok((*value).clone()),
            Value::Optional(None) => self.eval(other),
            // cel-go returns a value of another type unchanged.
            value => Ok(value),
        }
    }

    /// Returns whether a value is one of the items of a constant list, or `None` if the items are no scalars.
    fn is_member(&mut self, value: Id, list: Id) -> Result<Option<Value<'a>>, Failure> {
        let set = if let Some(set) = self.sets.get(&list) {
            set.clone()
        } else {
            let set = match self.constant(list)? {
                Value::List(items) => {
                    let keys = items
                        .iter()
                        .map(|item| item.ok().as_ref().and_then(Value::key));
                    keys.collect::<Option<BTreeSet<_>>>().map(Rc::new)
                }
                _ => None,
            };
            self.sets.insert(list, set.clone());
            set
        };
        let Some(set) = set else { return Ok(None) };
        let value = self.eval(value)?;
        let found = value.key().is_some_and(|key| set.contains(&key));
        Ok(Some(Value::Bool(found)))
    }

    fn list(&mut self, items: &'a [(Id, bool)]) -> Outcome<'a> {
        let values = self.items(items);
        self.charge(cost::LIST)?;
        values.map(Value::list)
    }

    fn items(&mut self, items: &'a [(Id, bool)]) -> Result<Vec<Value<'a>>, Failure> {
        let mut values = Vec::with_capacity(items.len());
        for (item, is_optional) in items {
            match self.eval(*item)? {
                Value::Optional(value) if *is_optional => values.extend(value.as_deref().cloned()),
                value if *is_optional => {
                    let value = function::display(&value);
                    let message = "cannot initialize optional list element from non-optional value";
                    return Err(Failure::Error(format!("{message} {value}")));
                }
                value => values.push(value),
            }
        }
        Ok(values)
    }

    fn map(&mut self, entries: &'a [(Id, Id, bool)]) -> Outcome<'a> {
        let map = self.entries(entries);
        self.charge(cost::MAP)?;
        map
    }

    fn entries(&mut self, entries: &'a [(Id, Id, bool)]) -> Outcome<'a> {
        let mut map = BTreeMap::new();
        for (key_id, value, is_optional) in entries {
            let key_value = self.eval(*key_id)?;
            let key = key_value.key().ok_or("unsupported key type")?;
            match self.eval(*value)? {
                Value::Optional(Some(value)) if *is_optional => {
                    map.insert(key, (*value).clone());
                }
                Value::Optional(None) if *is_optional => {
                    map.remove(&key);
                }
                value if *is_optional => {
                    let (key, value) = (function::display(&key_value), function::display(&value));
                    let message = format!("cannot initialize optional entry '{key}'");
                    return Err(Failure::Error(format!(
                        "{message} from non-optional value {value}"
                    )));
                }
                value => {
                    map.insert(key, value);
                }
            }
        }
        Ok(Value::Map(Map::Made(Rc::new(map))))
    }
}

fn literal_value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(Rc::from(bytes.as_slice())),
        Literal::Type(name) => Value::Type(name),
    }
}

/// Returns the field, entry or item of a value if it is present.
fn look_up<'a>(target: &Value<'a>, key: &Value<'a>) -> Option<Result<Value<'a>, String>> {
    match target {
        Value::Map(map) => map.get(key),
        Value::List(list) => look_up_item(list, key),
        _ => None,
    }
}

fn look_up_item<'a>(list: &List<'a>, key: &Value<'a>) -> Option<Result<Value<'a>, String>> {
    let index = match (key, key.key()) {
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Some(Key::Int(index))) => index,
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            let key = function::display(key);
            return Some(Err(format!("unsupported index value {key} in list")));
        }
        (other, _) => {
            let name = other.type_name();
            return Some(Err(format!("unsupported index type '{name}' in list")));
        }
    };
    usize::try_from(index)
        .ok()
        .and_then(|index| list.get(index))
}
