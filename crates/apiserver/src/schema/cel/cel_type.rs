//! The types of CEL expressions, and the rules by which one type is assignable to another.
//!
//! The rules are those of cel-go 0.26, so that the same expressions are accepted.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::escape::escape;
use super::structural::Schema;

/// A type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// Any type. Values are checked during the evaluation.
    Dyn,
    /// The type of an expression with an error. It is assignable to every type, so that one mistake causes
    /// one message.
    Error,
    Null,
    Scalar(&'static str),
    List(Arc<Type>),
    Map(Arc<Type>, Arc<Type>),
    Object(Arc<ObjectType>),
    /// A type without fields, such as `net.IP` or `optional_type(string)`.
    Opaque(&'static str, Vec<Type>),
    /// The type of a type. `None` is the type of all types.
    Meta(Option<Arc<Type>>),
    /// A variable that the checker replaces by a type.
    Variable(u32),
}

pub(super) const BOOL: Type = Type::Scalar("bool");
pub(super) const INT: Type = Type::Scalar("int");
pub(super) const UINT: Type = Type::Scalar("uint");
pub(super) const DOUBLE: Type = Type::Scalar("double");
pub(super) const STRING: Type = Type::Scalar("string");
pub(super) const BYTES: Type = Type::Scalar("bytes");
pub(super) const TIMESTAMP: Type = Type::Scalar("timestamp");
pub(super) const DURATION: Type = Type::Scalar("duration");

/// The name of the type that optional values have.
pub(super) const OPTIONAL: &str = "optional_type";

/// The type of an object with properties.
///
/// Objects at different places of a schema have different types, even if their properties are equal.
#[derive(Debug)]
pub(super) struct ObjectType {
    pub(super) name: String,
    /// By escaped name.
    pub(super) fields: BTreeMap<String, Type>,
}

impl Type {
    pub(super) fn optional(value: Type) -> Type {
        Type::Opaque(OPTIONAL, vec![value])
    }

    pub(super) fn list(items: Type) -> Type {
        Type::List(Arc::new(items))
    }

    pub(super) fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// Returns the type of the values that a schema describes, or `None` if rules can't access them.
    ///
    /// `name` is the name of the type if it is an object.
    pub(super) fn of_schema(schema: &Schema, is_resource: bool, name: &str) -> Option<Type> {
        if schema.extensions.int_or_string {
            return Some(Type::Dyn);
        }
        if is_resource {
            return Type::of_schema(&schema.with_type_and_object_meta(), false, name);
        }
        let nested = |nested: &Schema, name: String| {
            Type::of_schema(nested, nested.extensions.embedded_resource, &name)
        };
        match schema.kind.as_str() {
            "array" => {
                let items = nested(schema.items.as_ref()?, format!("{name}.@idx"))?;
                Some(Type::list(items))
            }
            "object" => {
                if let Some(additional) = &schema.additional {
                    let value = nested(additional, format!("{name}.@elem"))?;
                    return Some(Type::map(STRING, value));
                }
                let mut fields = BTreeMap::new();
                for (property, schema) in schema.properties.iter().flatten() {
                    if let Some(identifier) = escape(property)
                        && let Some(field) = nested(schema, format!("{name}.{identifier}"))
                    {
                        fields.insert(identifier, field);
                    }
                }
                let name = name.to_owned();
                Some(Type::Object(Arc::new(ObjectType { name, fields })))
            }
            "string" => Some(match schema.format.as_str() {
                "byte" => BYTES,
                "duration" => DURATION,
                "date" | "date-time" => TIMESTAMP,
                _ => STRING,
            }),
            "boolean" => Some(BOOL),
            "number" => Some(DOUBLE),
            "integer" => Some(INT),
            _ => None,
        }
    }

    pub(super) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// Returns the type inside an optional type.
    pub(super) fn unwrap_optional(&self) -> Option<&Type> {
        match self {
            Type::Opaque(OPTIONAL, parameters) => parameters.first(),
            _ => None,
        }
    }

    /// Returns the types that this type is made of.
    fn parameters(&self) -> Vec<&Type> {
        match self {
            Type::List(items) => vec![items],
            Type::Map(key, value) => vec![key, value],
            Type::Opaque(_, parameters) => parameters.iter().collect(),
            Type::Meta(Some(of)) => vec![of],
            _ => Vec::new(),
        }
    }

    /// Returns whether two types are the same. With `any_variables`, all type variables are the same.
    pub(super) fn is_same(&self, other: &Type, any_variables: bool) -> bool {
        let same_kind = match (self, other) {
            (Type::Dyn, Type::Dyn)
            | (Type::Error, Type::Error)
            | (Type::Null, Type::Null)
            | (Type::List(_), Type::List(_))
            | (Type::Map(..), Type::Map(..))
            | (Type::Meta(_), Type::Meta(_)) => true,
            (Type::Scalar(one), Type::Scalar(other))
            | (Type::Opaque(one, _), Type::Opaque(other, _)) => one == other,
            (Type::Object(one), Type::Object(other)) => one.name == other.name,
            (Type::Variable(one), Type::Variable(other)) => any_variables || one == other,
            _ => false,
        };
        let (one, other) = (self.parameters(), other.parameters());
        same_kind
            && one.len() == other.len()
            && one
                .iter()
                .zip(other)
                .all(|(one, other)| one.is_same(other, any_variables))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Scalar(name) => f.write_str(name),
            Type::List(items) => write!(f, "list({items})"),
            Type::Map(key, value) => write!(f, "map({key}, {value})"),
            Type::Object(object) => f.write_str(&object.name),
            Type::Opaque(name, parameters) => {
                f.write_str(name)?;
                for (index, parameter) in parameters.iter().enumerate() {
                    f.write_str(if index == 0 { "(" } else { ", " })?;
                    write!(f, "{parameter}")?;
                }
                f.write_str(if parameters.is_empty() { "" } else { ")" })
            }
            Type::Meta(None) => f.write_str("type"),
            Type::Meta(Some(of)) => write!(f, "type({of})"),
            Type::Variable(number) => write!(f, "_var{number}"),
        }
    }
}

/// The types that stand for type variables.
///
/// The changes of a failed attempt are undone with [`Bindings::mark`] and [`Bindings::undo`].
#[derive(Debug, Default)]
pub(super) struct Bindings {
    bound: Vec<Option<Type>>,
    /// The variables changed, with their previous types.
    changes: Vec<(u32, Option<Type>)>,
}

impl Bindings {
    pub(super) fn new_variable(&mut self) -> Type {
        self.bound.push(None);
        Type::Variable(u32::try_from(self.bound.len() - 1).unwrap_or(u32::MAX))
    }

    fn find(&self, variable: &Type) -> Option<&Type> {
        match variable {
            Type::Variable(number) => self.bound.get(*number as usize)?.as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, variable: &Type, to: Type) {
        if let Type::Variable(number) = variable
            && let Some(bound) = self.bound.get_mut(*number as usize)
        {
            self.changes.push((*number, bound.replace(to)));
        }
    }

    fn mark(&self) -> usize {
        self.changes.len()
    }

    fn undo(&mut self, mark: usize) {
        while self.changes.len() > mark {
            if let Some((number, previous)) = self.changes.pop() {
                self.bound[number as usize] = previous;
            }
        }
    }

    /// Returns the type with all bound variables replaced. With `free_to_dyn`, others become `dyn`.
    pub(super) fn resolve(&self, of: &Type, free_to_dyn: bool) -> Type {
        if let Some(bound) = self.find(of) {
            return self.resolve(bound, free_to_dyn);
        }
        let resolve = |one: &Type| self.resolve(one, free_to_dyn);
        match of {
            Type::Variable(_) if free_to_dyn => Type::Dyn,
            Type::List(items) => Type::list(resolve(items)),
            Type::Map(key, value) => Type::map(resolve(key), resolve(value)),
            Type::Opaque(name, all) => Type::Opaque(name, all.iter().map(resolve).collect()),
            Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(resolve(of)))),
            other => other.clone(),
        }
    }

    /// Returns whether each type is assignable to its counterpart, and binds variables if all are.
    pub(super) fn assign_all(&mut self, types: &[Type], to: &[Type]) -> bool {
        let mark = self.mark();
        let assignable = types.len() == to.len()
            && types
                .iter()
                .zip(to)
                .all(|(one, to)| self.is_assignable(one, to));
        if !assignable {
            self.undo(mark);
        }
        assignable
    }

    /// Returns whether two types are assignable to each other, and binds variables if they are.
    pub(super) fn assign(&mut self, one: &Type, other: &Type) -> bool {
        self.assign_all(std::slice::from_ref(one), std::slice::from_ref(other))
    }

    fn is_assignable(&mut self, one: &Type, other: &Type) -> bool {
        if matches!(other, Type::Variable(_)) {
            let (valid, was_bound) = self.substitutes(one, other);
            if valid || was_bound {
                return valid;
            }
        }
        if matches!(one, Type::Variable(_)) {
            return self.substitutes(other, one).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, other) | (other, Type::Null) => is_nullable(other),
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(_), Type::List(_)) | (Type::Map(..), Type::Map(..)) => {
                self.parameters_assignable(one, other)
            }
            (Type::Opaque(name, _), Type::Opaque(other_name, _)) => {
                name == other_name && self.parameters_assignable(one, other)
            }
            _ => one.is_same(other, false),
        }
    }

    fn parameters_assignable(&mut self, one: &Type, other: &Type) -> bool {
        let (one, other) = (one.parameters(), other.parameters());
        let pairs = one.iter().zip(&other);
        one.len() == other.len()
            && pairs
                .into_iter()
                .all(|(one, other)| self.is_assignable(one, other))
    }

    /// Returns whether the variable can stand for the type, and whether it was bound before.
    fn substitutes(&mut self, of: &Type, variable: &Type) -> (bool, bool) {
        if of.is_same(variable, false) {
            return (true, true);
        }
        if let Some(bound) = self.find(variable).cloned() {
            if of.is_same(&bound, false) {
                return (true, true);
            }
            if self.is_assignable(of, &bound) {
                let general = most_general(of, &bound);
                if !self.refers_to(variable, general) {
                    self.bind(variable, general.clone());
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.refers_to(variable, of) {
            return (false, false);
        }
        self.bind(variable, of.clone());
        (true, false)
    }

    /// Returns whether the variable is part of the type.
    fn refers_to(&self, variable: &Type, within: &Type) -> bool {
        if variable.is_same(within, false) {
            return true;
        }
        match within {
            Type::Variable(_) => {
                let bound = self.find(within);
                bound.is_some_and(|bound| self.refers_to(variable, bound))
            }
            other => other
                .parameters()
                .iter()
                .any(|one| self.refers_to(variable, one)),
        }
    }
}

fn is_nullable(of: &Type) -> bool {
    matches!(of, Type::Null | Type::Opaque(..) | Type::Object(_))
        || of.is_same(&TIMESTAMP, false)
        || of.is_same(&DURATION, false)
}

/// Returns the more general one of two types that are assignable to each other.
pub(super) fn most_general<'a>(one: &'a Type, other: &'a Type) -> &'a Type {
    if is_equal_or_less_specific(one, other) {
        one
    } else {
        other
    }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Variable(_), _) | (Type::Meta(_), Type::Meta(_)) => true,
        (_, Type::Dyn | Type::Variable(_)) => false,
        (Type::List(_), Type::List(_)) | (Type::Map(..), Type::Map(..)) => {
            all_less_specific(one, other)
        }
        (Type::Opaque(name, _), Type::Opaque(other_name, _)) => {
            name == other_name && all_less_specific(one, other)
        }
        _ => one.is_same(other, false),
    }
}

fn all_less_specific(one: &Type, other: &Type) -> bool {
    let (one, other) = (one.parameters(), other.parameters());
    let mut pairs = one.iter().zip(&other);
    one.len() == other.len() && pairs.all(|(one, other)| is_equal_or_less_specific(one, other))
}
