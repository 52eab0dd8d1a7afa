//! Evaluates the JSON paths of printer columns, such as `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Guarantees: the paths are read as by `k8s.io/client-go/util/jsonpath`, as far as definitions use them: names,
//! quoted names, indices, wildcards, and filters that compare a field for equality. A path of another form
//! selects nothing.

use serde_json::Value;

use crate::go_json::to_text;
use crate::quote::go_text;

/// Maximum number of steps of a path.
const STEPS_MAX: usize = 64;

/// A parsed path, which selects values in an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The member of this name.
    Name(String),
    /// Every item of a list, and every member of an object.
    Every,
    /// The item at this index. A negative index counts from the end.
    Index(i64),
    /// Every item of which the path selects a value of the operand's type that is equal (or unequal) to it.
    Where {
        path: Vec<Step>,
        is_equal: bool,
        operand: Value,
    },
}

impl JsonPath {
    /// Parses a path. Returns `None` if the path has a form that this module does not evaluate.
    pub(crate) fn parse(text: &str) -> Option<JsonPath> {
        let steps = steps(text.strip_prefix('$').unwrap_or(text))?;
        Some(JsonPath(steps))
    }

    /// Returns the first value that the path selects.
    pub(crate) fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        select(&self.0, root).into_iter().next()
    }
}

fn select<'a>(steps: &[Step], root: &'a Value) -> Vec<&'a Value> {
    let mut selected = vec![root];
    for step in steps {
        selected = selected
            .into_iter()
            .flat_map(|value| step.of(value))
            .collect();
    }
    selected
}

/// Returns whether two scalars are equal; `None` if they have different types.
fn compare(operand: &Value, value: &Value) -> Option<bool> {
    let is_comparable = matches!(
        (operand, value),
        (Value::String(_), Value::String(_))
            | (Value::Number(_), Value::Number(_))
            | (Value::Bool(_), Value::Bool(_))
    );
    is_comparable.then_some(operand == value)
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let items = || value.as_array().into_iter().flatten();
        match self {
            Step::Name(name) => value.get(name).into_iter().collect(),
            Step::Every => match value {
                Value::Object(members) => members.values().collect(),
                _ => items().collect(),
            },
            Step::Index(index) => {
                let length = value.as_array().map_or(0, Vec::len);
                let from_end = usize::try_from(index.unsigned_abs()).ok();
                let at = match from_end {
                    Some(back) if *index < 0 => length.checked_sub(back),
                    forward => forward,
                };
                at.and_then(|at| value.get(at)).into_iter().collect()
            }
            Step::Where {
                path,
                is_equal,
                operand,
            } => {
                let matches = |item: &&Value| {
                    let found = select(path, item).into_iter().next();
                    let equal = found.and_then(|found| compare(operand, found));
                    equal == Some(*is_equal)
                };
                items().filter(matches).collect()
            }
        }
    }
}

/// Returns a value as a cell shows it: a list or an object as JSON, and a scalar in Go's format.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => to_text(value),
        scalar => go_text(scalar),
    }
}

fn steps(text: &str) -> Option<Vec<Step>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if found.len() == STEPS_MAX {
            return None;
        }
        let (step, after) = match rest.strip_prefix('.') {
            Some(named) if named.starts_with('[') => bracket(named)?,
            Some(named) => name(named)?,
            None => bracket(rest)?,
        };
        found.push(step);
        rest = after;
    }
    Some(found)
}

/// Parses a name, in which a backslash makes the next character a part of the name.
fn name(text: &str) -> Option<(Step, &str)> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            _ => name.push(letter),
        }
    }
    let step = match name.as_str() {
        "" => return None,
        "*" => Step::Every,
        _ => Step::Name(name),
    };
    Some((step, &text[end..]))
}

/// Parses a step in brackets, such as `[0]`, `['a.b']` or `[?(@.type=="Ready")]`.
fn bracket(text: &str) -> Option<(Step, &str)> {
    let inner = text.strip_prefix('[')?;
    if let Some(filter) = inner.strip_prefix("?(@") {
        let (filter, rest) = filter.split_once(")]")?;
        return Some((condition(filter)?, rest));
    }
    let (index, rest) = inner.split_once(']')?;
    let quoted = index
        .strip_prefix('\'')
        .and_then(|index| index.strip_suffix('\''));
    let step = match (quoted, index) {
        // As in client-go, a dot in a quoted name separates names. `steps` of one name is one step.
        (Some(quoted), _) => match steps(&format!(".{quoted}"))?.as_slice() {
            [only] => only.clone(),
            _ => return None,
        },
        (None, "*") => Step::Every,
        (None, number) => Step::Index(number.parse().ok()?),
    };
    Some((step, rest))
}

/// Parses a comparison such as `.type=="Ready"`.
fn condition(filter: &str) -> Option<Step> {
    let (is_equal, (path, value)) = match filter.split_once("==") {
        Some(parts) => (true, parts),
        None => (false, filter.split_once("!=")?),
    };
    let value = value.trim();
    let unquoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let operand = match unquoted('"').or_else(|| unquoted('\'')) {
        Some(text) => Value::from(text),
        None => match serde_json::from_str::<Value>(value).ok()? {
            scalar @ (Value::Number(_) | Value::Bool(_)) => scalar,
            _ => return None,
        },
    };
    let path = steps(path.trim())?;
    // Filters in filters do not occur, and would allow deep recursion.
    let is_flat = path.iter().all(|step| !matches!(step, Step::Where { .. }));
    is_flat.then_some(Step::Where {
        path,
        is_equal,
        operand,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_select_as_in_kubernetes() {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"items": [{"name": "p", "port": 1}, {"name": "q", "port": 2}]},
            "status": {"conditions": [
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]},
        });
        let first = |path: &str| {
            let path = JsonPath::parse(path)?;
            path.first(&object).cloned()
        };
        for (path, expected) in [
            (".spec.items[0].name", json!("p")),
            (".spec.items[-1].port", json!(2)),
            (".spec.items[*].name", json!("p")),
            (".spec.items.*.port", json!(1)),
            (".spec.items[?(@.port==2)].name", json!("q")),
            (
                r#".status.conditions[?(@.type=="Ready")].status"#,
                json!("True"),
            ),
            (
                ".status.conditions[?(@.type=='Ready')].status",
                json!("True"),
            ),
            (
                r#".status.conditions[?(@.type != "Synced")].type"#,
                json!("Ready"),
            ),
            (r".metadata.labels.a\.b/c", json!("x")),
            (r".metadata.labels['a\.b/c']", json!("x")),
        ] {
            assert_eq!(first(path), Some(expected), "{path}");
        }
        for path in [
            ".spec.none",
            ".spec.items[7]",
            ".spec.items[-3]",
            ".spec.name[0]",
        ] {
            assert_eq!(first(path), None, "{path}");
        }
        for odd in [
            "..spec",
            ".a[",
            ".a[?(@.b)]",
            ".a[0:2]",
            ".a[?(@.b[?(@.c==1)]==2)]",
            r".a\",
            ".a[?(@.b==c)]",
            r#".a["b"]"#,
        ] {
            assert_eq!(JsonPath::parse(odd), None, "{odd}");
        }
        assert_eq!(JsonPath::parse(&".a".repeat(65)), None);
    }
}
