//! Evaluates macros that repeat an expression for each item.
//!
//! The costs are those of the steps into which cel-go expands a macro: reading the result so far, testing
//! whether to continue, and combining.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::cost::{self, Failure};
use super::super::function;
use super::super::node::{Fold, FoldKind};
use super::super::value::{Key, Map, Value};
use super::{Evaluator, Local, Outcome};

/// The cost of reading a variable, and that of a call without another cost.
const STEP: u64 = 1;

impl<'a> Evaluator<'a, '_> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.eval(fold.range)?;
        if !matches!(range, Value::List(_) | Value::Map(_)) {
            let name = go_type(&range);
            return Err(Failure::Error(match fold.second_variable {
                None => format!("got '{name}', expected iterable type"),
                Some(_) => format!("unsupported comprehension range type: {name}"),
            }));
        }
        match fold.kind {
            FoldKind::All => self.quantify(fold, &range, false),
            FoldKind::Exists => self.quantify(fold, &range, true),
            FoldKind::ExistsOne => self.exists_one(fold, &range),
            FoldKind::List => self.collect_list(fold, &range),
            FoldKind::Map | FoldKind::MapEntries => self.collect_map(fold, &range),
        }
    }

    /// Sets the variables for each item, and calls `step` until it returns `false`.
    fn for_each(
        &mut self,
        fold: &Fold,
        range: &Value<'a>,
        mut step: impl FnMut(&mut Self, &Value<'a>) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let first = fold.variable as usize;
        let second = fold.second_variable.map(|slot| slot as usize);
        let keys = match range {
            Value::Map(map) => {
                self.meter.work(map.len())?;
                Some(map.keys())
            }
            _ => None,
        };
        let count = match range {
            Value::List(list) => list.len(),
            _ => keys.as_ref().map_or(0, Vec::len),
        };
        for index in 0..count {
            let key = match &keys {
                Some(keys) => keys[index].clone(),
                None => Value::Int(i64::try_from(index).unwrap_or(i64::MAX)),
            };
            let item = match range {
                Value::List(list) => list.get(index).unwrap_or(Ok(Value::Null)),
                Value::Map(map) if second.is_some() => map.get(&key).unwrap_or(Ok(Value::Null)),
                _ => Ok(key.clone()),
            };
            let item = self.meter.read(item)?.map_err(Failure::Error);
            match second {
                Some(second) => {
                    self.locals[first] = Local::Known(Ok(key.clone()));
                    self.locals[second] = Local::Known(item);
                }
                None => self.locals[first] = Local::Known(item),
            }
            if !step(self, &key)? {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates `all` and `exists`. The value `decisive` ends the evaluation.
    fn quantify(&mut self, fold: &'a Fold, range: &Value<'a>, decisive: bool) -> Outcome<'a> {
        let mut is_decided = false;
        let mut failure = None;
        self.for_each(fold, range, |this, _| {
            // `exists` also negates the result to test whether to continue.
            this.charge(if decisive { 3 * STEP } else { 2 * STEP })?;
            if is_decided {
                return Ok(false);
            }
            this.charge(STEP)?;
            match this.eval(fold.body) {
                Ok(Value::Bool(value)) => is_decided = value == decisive,
                Err(Failure::LimitExceeded) => return Err(Failure::LimitExceeded),
                other => {
                    let error = other.err().unwrap_or_else(|| "no such overload".into());
                    failure = failure.take().or(Some(error));
                }
            }
            Ok(true)
        })?;
        self.charge(STEP)?;
        match failure {
            Some(failure) if !is_decided => Err(failure),
            _ => Ok(Value::Bool(is_decided == decisive)),
        }
    }

    fn exists_one(&mut self, fold: &'a Fold, range: &Value<'a>) -> Outcome<'a> {
        let mut count = Ok(0_u64);
        self.for_each(fold, range, |this, _| {
            match this.condition(Some(fold.body))? {
                Ok(true) => {
                    this.charge(2 * STEP)?;
                    count = count.clone().map(|count| count + 1);
                }
                Ok(false) => {}
                Err(failure) => count = Err(failure),
            }
            Ok(true)
        })?;
        self.charge(2 * STEP)?;
        count.map(|count| Value::Bool(count == 1))
    }

    /// Evaluates a filter. Only an exceeded limit is an error of the outer result.
    fn condition(&mut self, filter: Option<u32>) -> Result<Result<bool, Failure>, Failure> {
        let Some(filter) = filter else {
            return Ok(Ok(true));
        };
        match self.eval(filter) {
            Ok(Value::Bool(value)) => Ok(Ok(value)),
            Ok(_) => Ok(Err("no such overload".into())),
            Err(Failure::LimitExceeded) => Err(Failure::LimitExceeded),
            Err(failure) => Ok(Err(failure)),
        }
    }

    fn collect_list(&mut self, fold: &'a Fold, range: &Value<'a>) -> Outcome<'a> {
        let mut values = Ok(Vec::new());
        let list_cost = if self.is_constant(fold.body) {
            0
        } else {
            cost::LIST
        };
        self.for_each(fold, range, |this, _| {
            match this.condition(fold.filter)? {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(failure) => {
                    values = Err(failure);
                    return Ok(true);
                }
            }
            let value = this.eval(fold.body);
            this.charge(list_cost + 2 * STEP)?;
            match (&mut values, value) {
                (_, Err(Failure::LimitExceeded)) => return Err(Failure::LimitExceeded),
                (Ok(values), Ok(value)) => values.push(value),
                (Ok(_), Err(failure)) => values = Err(failure),
                (Err(_), _) => {}
            }
            Ok(true)
        })?;
        self.charge(STEP)?;
        values.map(Value::list)
    }

    fn collect_map(&mut self, fold: &'a Fold, range: &Value<'a>) -> Outcome<'a> {
        let mut map: Result<BTreeMap<Key<'a>, Value<'a>>, Failure> = Ok(BTreeMap::new());
        self.for_each(fold, range, |this, key| {
            match this.condition(fold.filter)? {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(failure) => {
                    map = Err(failure);
                    return Ok(true);
                }
            }
            this.charge(STEP)?;
            let is_entry = fold.kind == FoldKind::MapEntries;
            if !is_entry && map.is_err() {
                return Ok(true);
            }
            this.charge(if is_entry { 0 } else { STEP })?;
            let value = this.eval(fold.body);
            this.charge(STEP)?;
            let inserted = match (&mut map, value) {
                (_, Err(Failure::LimitExceeded)) => return Err(Failure::LimitExceeded),
                (Err(_), _) => Ok(()),
                (Ok(_), Err(failure)) => Err(failure),
                (Ok(map), Ok(Value::Map(entries))) if is_entry => this.insert_all(map, &entries),
                (Ok(map), Ok(value)) => insert(map, key, value),
            };
            if let Err(failure) = inserted {
                map = Err(failure);
            }
            Ok(true)
        })?;
        self.charge(STEP)?;
        map.map(|map| Value::Map(Map::Made(Rc::new(map))))
    }

    fn insert_all(
        &mut self,
        map: &mut BTreeMap<Key<'a>, Value<'a>>,
        entries: &Map<'a>,
    ) -> Result<(), Failure> {
        self.meter.work(entries.len())?;
        for key in entries.keys() {
            if let Some(value) = entries.get(&key) {
                insert(map, &key, value?)?;
            }
        }
        Ok(())
    }
}

/// Returns the name of a value's type in Go.
fn go_type(value: &Value<'_>) -> String {
    match value {
        Value::Optional(_) => "*types.Optional".to_owned(),
        Value::Type(_) => "*types.Type".to_owned(),
        other => {
            let name = other.type_name();
            let name = name
                .rsplit('.')
                .next()
                .unwrap_or(name)
                .trim_end_matches("_type");
            format!("types.{}{}", name[..1].to_uppercase(), &name[1..])
        }
    }
}

fn insert<'a>(
    map: &mut BTreeMap<Key<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
) -> Result<(), Failure> {
    let known = key.key().ok_or("unsupported key type")?;
    if map.contains_key(&known) {
        let key = function::display(key);
        return Err(Failure::Error(format!(
            "insert failed: key {key} already exists"
        )));
    }
    map.insert(known, value);
    Ok(())
}
