//! The functions and operators that expressions can call, with the types of their overloads.
//!
//! The table `overloads.txt` lists the environment of Kubernetes 1.36 in the order in which cel-go tries the
//! overloads. Each line has the function, the overload, `g` or `m` for a global or member function, the types
//! of the arguments, and the type of the result.
//! A single capital letter is a type variable.

#[expect(clippy::disallowed_types, reason = "a pure look-up by name")]
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::cel_type::{
    BOOL, BYTES, Bindings, DOUBLE, DURATION, INT, OPTIONAL, STRING, TIMESTAMP, Type, UINT,
};

/// One signature of a function.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) id: &'static str,
    pub(super) is_member: bool,
    pub(super) arguments: Vec<Type>,
    pub(super) result: Type,
    /// Count of type variables, which are numbered from 0 in the types above.
    variables: usize,
}

/// The overloads of one function.
#[derive(Debug, Default)]
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) overloads: Vec<Overload>,
}

#[expect(clippy::disallowed_types, reason = "a pure look-up by name")]
static FUNCTIONS: LazyLock<HashMap<&'static str, Function>> = LazyLock::new(|| {
    let mut functions = HashMap::new();
    for line in include_str!("overloads.txt").lines() {
        if let Some((name, overload)) = parse_line(line) {
            let function: &mut Function = functions.entry(name).or_default();
            function.name = name;
            function.overloads.push(overload);
        }
    }
    functions
});

/// Returns the function of a name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// The types that an identifier can name, besides [`OPAQUE_NAMES`].
const TYPE_NAMES: [(&str, Type); 10] = [
    ("bool", BOOL),
    ("bytes", BYTES),
    ("double", DOUBLE),
    ("google.protobuf.Duration", DURATION),
    ("google.protobuf.Timestamp", TIMESTAMP),
    ("int", INT),
    ("null_type", Type::Null),
    ("string", STRING),
    ("uint", UINT),
    ("dyn", Type::Dyn),
];

const OPAQUE_NAMES: [&str; 12] = [
    "kubernetes.authorization.Authorizer",
    "kubernetes.authorization.Decision",
    "kubernetes.authorization.GroupCheck",
    "kubernetes.authorization.PathCheck",
    "kubernetes.authorization.ResourceCheck",
    "kubernetes.NamedFormat",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "kubernetes.URL",
    "net.CIDR",
    "net.IP",
    OPTIONAL,
];

/// Returns the type that an identifier names, and the name that values of this type report.
pub(super) fn find_type(name: &str, bindings: &mut Bindings) -> Option<(Type, &'static str)> {
    if let Some((known, of)) = TYPE_NAMES
        .iter()
        .find(|(known, _)| *known == name && name != "dyn")
    {
        return Some((of.clone(), known));
    }
    match name {
        "list" => Some((Type::list(bindings.new_variable()), "list")),
        "map" => {
            let (key, value) = (bindings.new_variable(), bindings.new_variable());
            Some((Type::map(key, value), "map"))
        }
        "type" => Some((Type::Meta(None), "type")),
        other => {
            let name = OPAQUE_NAMES.iter().find(|known| **known == other)?;
            Some((Type::Opaque(name, Vec::new()), name))
        }
    }
}

impl Overload {
    /// Returns the types of the arguments and of the result, with new type variables.
    pub(super) fn instantiate(&self, bindings: &mut Bindings) -> (Vec<Type>, Type) {
        if self.variables == 0 {
            return (self.arguments.clone(), self.result.clone());
        }
        let fresh: Vec<Type> = (0..self.variables)
            .map(|_| bindings.new_variable())
            .collect();
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|one| replace(one, &fresh)).collect();
        (arguments, replace(&self.result, &fresh))
    }
}

fn replace(of: &Type, fresh: &[Type]) -> Type {
    match of {
        Type::Variable(number) => fresh[*number as usize].clone(),
        Type::List(items) => Type::list(replace(items, fresh)),
        Type::Map(key, value) => Type::map(replace(key, fresh), replace(value, fresh)),
        Type::Opaque(name, all) => {
            Type::Opaque(name, all.iter().map(|one| replace(one, fresh)).collect())
        }
        Type::Meta(Some(of)) => Type::Meta(Some(Arc::new(replace(of, fresh)))),
        other => other.clone(),
    }
}

fn parse_line(line: &'static str) -> Option<(&'static str, Overload)> {
    // The operator `_||_` contains the separator.
    let (name, rest) = match line.strip_prefix("_||_|") {
        Some(rest) => ("_||_", rest),
        None => line.split_once('|')?,
    };
    let mut columns = rest.split('|');
    let (id, style) = (columns.next()?, columns.next()?);
    let mut variables = Vec::new();
    let arguments = columns.next()?.split(';').filter(|one| !one.is_empty());
    let arguments = arguments
        .map(|one| parse_type(one, &mut variables))
        .collect();
    let result = parse_type(columns.next()?, &mut variables);
    let overload = Overload {
        id,
        is_member: style == "m",
        arguments,
        result,
        variables: variables.len(),
    };
    Some((name, overload))
}

fn parse_type(text: &'static str, variables: &mut Vec<&'static str>) -> Type {
    if let Some((name, rest)) = text.split_once('(') {
        let inner = rest.strip_suffix(')').unwrap_or(rest);
        return match name {
            "list" => Type::list(parse_type(inner, variables)),
            "map" => {
                let (key, value) = inner.split_once(", ").unwrap_or((inner, "dyn"));
                Type::map(parse_type(key, variables), parse_type(value, variables))
            }
            "type" => Type::Meta(Some(Arc::new(parse_type(inner, variables)))),
            _ => Type::optional(parse_type(inner, variables)),
        };
    }
    if text.len() == 1 {
        let known = variables.iter().position(|one| *one == text);
        let number = known.unwrap_or_else(|| {
            variables.push(text);
            variables.len() - 1
        });
        return Type::Variable(u32::try_from(number).unwrap_or(u32::MAX));
    }
    match text {
        "timestamp" => TIMESTAMP,
        "duration" => DURATION,
        _ => {
            let known = TYPE_NAMES.iter().find(|(name, _)| *name == text);
            known.map_or_else(|| Type::Opaque(text, Vec::new()), |(_, of)| of.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FUNCTIONS, find};

    #[test]
    fn every_line_of_the_table_is_an_overload() {
        let lines = include_str!("overloads.txt").lines().count();
        let overloads: usize = FUNCTIONS.values().map(|one| one.overloads.len()).sum();
        assert_eq!(overloads, lines);
        let shown = |name| format!("{:?}", find(name).unwrap().overloads[0]);
        assert!(shown("_||_").contains("logical_or"), "{}", shown("_||_"));
        assert!(shown("getQuery").contains("Map(Scalar(\"string\"), List(Scalar(\"string\")))"));
    }
}
