//! Functions of URLs, quantities and semantic versions.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::cost::Failure;
use super::super::semver::Version;
use super::super::url;
use super::super::value::{Key, Map, Text, TextKey, Value};
use super::Outcome;
use crate::quantity::Quantity;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Outcome<'a>> {
    match arguments.first() {
        Some(Value::Quantity(quantity)) => of_quantity(*quantity, name, &arguments[1..]),
        Some(Value::Version(version)) => of_version(version, name, &arguments[1..]),
        Some(Value::Url(url)) if arguments.len() == 1 => of_url(url, name),
        Some(Value::String(text)) => of_text(text, name, &arguments[1..]),
        _ => None,
    }
}

fn of_text<'a>(text: &str, name: &str, rest: &[Value<'a>]) -> Option<Outcome<'a>> {
    let normalize = match rest {
        [] => false,
        [Value::Bool(normalize)] if name.ends_with("emver") => *normalize,
        _ => return None,
    };
    Some(match name {
        "quantity" => Quantity::parse(text)
            .map(Value::Quantity)
            .map_err(Failure::from),
        "isQuantity" => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        "semver" => {
            let version = Version::parse(text, normalize);
            version
                .map(|version| Value::Version(Rc::new(version)))
                .map_err(Failure::Error)
        }
        "isSemver" => Ok(Value::Bool(Version::parse(text, normalize).is_ok())),
        "url" => url::parse(text)
            .map(|url| Value::Url(Rc::new(url)))
            .map_err(|error| {
                Failure::Error(format!(
                    "URL parse error during conversion from string: {error}"
                ))
            }),
        "isURL" => Ok(Value::Bool(url::check_request_uri(text).is_ok())),
        _ => return None,
    })
}

fn of_url<'a>(url: &url::Url, name: &str) -> Option<Outcome<'a>> {
    Some(Ok(match name {
        "getScheme" => Value::text(&*url.scheme),
        "getHost" => Value::text(&*url.host),
        "getHostname" => Value::text(url.host_name()),
        "getPort" => Value::text(url.port()),
        "getEscapedPath" => Value::text(&*url.escaped_path),
        "getQuery" => {
            let entries = url.query().into_iter().map(|(key, values)| {
                let key = Key::String(TextKey(Text::Shared(key.into())));
                (
                    key,
                    Value::list(values.into_iter().map(Value::text).collect()),
                )
            });
            let entries: BTreeMap<Key<'a>, Value<'a>> = entries.collect();
            Value::Map(Map::Made(Rc::new(entries)))
        }
        _ => return None,
    }))
}

fn of_quantity<'a>(quantity: Quantity, name: &str, rest: &[Value<'a>]) -> Option<Outcome<'a>> {
    Some(Ok(match (name, rest) {
        ("sign", []) => Value::Int(quantity.sign()),
        ("asApproximateFloat", []) => Value::Double(quantity.as_float()),
        ("isInteger", []) => Value::Bool(quantity.as_integer().is_some()),
        ("asInteger", []) => match quantity.as_integer() {
            Some(value) => Value::Int(value),
            None => return Some(Err("cannot convert value to integer".into())),
        },
        ("isGreaterThan", [Value::Quantity(other)]) => {
            Value::Bool(quantity.compare(*other).is_gt())
        }
        ("isLessThan", [Value::Quantity(other)]) => Value::Bool(quantity.compare(*other).is_lt()),
        ("compareTo", [Value::Quantity(other)]) => Value::Int(quantity.compare(*other) as i64),
        ("add", [Value::Quantity(other)]) => Value::Quantity(quantity.add(*other)),
        ("add", [Value::Int(other)]) => {
            Value::Quantity(quantity.add(Quantity::from_integer(*other)))
        }
        ("sub", [Value::Quantity(other)]) => Value::Quantity(quantity.add(other.negate())),
        ("sub", [Value::Int(other)]) => {
            Value::Quantity(quantity.add(Quantity::from_integer(*other).negate()))
        }
        _ => return None,
    }))
}

fn of_version<'a>(version: &Version, name: &str, rest: &[Value<'a>]) -> Option<Outcome<'a>> {
    let number =
        |index: usize| Value::Int(i64::try_from(version.numbers[index]).unwrap_or(i64::MAX));
    Some(Ok(match (name, rest) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("isGreaterThan", [Value::Version(other)]) => Value::Bool(version.compare(other).is_gt()),
        ("isLessThan", [Value::Version(other)]) => Value::Bool(version.compare(other).is_lt()),
        ("compareTo", [Value::Version(other)]) => Value::Int(version.compare(other) as i64),
        _ => return None,
    }))
}
