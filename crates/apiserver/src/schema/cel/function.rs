//! The functions and operators of expressions.
//!
//! Guarantees: a function that makes a text or list counts its size as work before it makes it.

use std::net::IpAddr;
use std::rc::Rc;

use super::cost::{Failure, Meter};
use super::value::{Text, Value};
use super::{named_format, net};

mod convert;
mod kubernetes;
mod lists;
mod operators;
mod strings;
mod text_format;
mod timestamps;

pub(super) use convert::display;
pub(super) use text_format::{Argument as FormatArgument, check as check_format};

/// The result of a function.
type Outcome<'a> = Result<Value<'a>, Failure>;

/// Calls a function. The target of a member function is the first argument.
pub(super) fn call<'a>(
    meter: &mut Meter,
    name: &str,
    overload: Option<&str>,
    arguments: &[Value<'a>],
) -> Outcome<'a> {
    let result = operators::call(meter, name, arguments)
        .or_else(|| convert::call(name, arguments))
        .or_else(|| strings::call(meter, name, arguments))
        .or_else(|| lists::call(meter, name, overload, arguments))
        .or_else(|| timestamps::call(name, arguments))
        .or_else(|| kubernetes::call(name, arguments))
        .or_else(|| network(name, arguments))
        .or_else(|| optional(meter, name, arguments));
    result.unwrap_or_else(|| Err(no_overload(name, arguments)))
}

/// Returns the error for arguments of types that no overload has.
fn no_overload(name: &str, arguments: &[Value<'_>]) -> Failure {
    match (name, arguments.first()) {
        ("contains" | "startsWith" | "endsWith" | "matches" | "!_", _) => {
            return "no such overload".into();
        }
        ("size" | "sort", Some(value)) => return missing_operator(name, value),
        _ => {}
    }
    let types: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Failure::Error(format!("no such overload: {name}({})", types.join(", ")))
}

/// Returns the error for a value without an operator. cel-go does not name the operator for some types.
fn missing_operator(name: &str, value: &Value<'_>) -> Failure {
    match value {
        Value::String(_) | Value::Timestamp(_) | Value::Duration(_) => "no such overload".into(),
        _ => Failure::Error(format!("no such overload: {name}")),
    }
}

/// Returns a text of some length, after counting its size as work.
fn text<'a>(meter: &mut Meter, length: usize, make: impl FnOnce() -> String) -> Outcome<'a> {
    meter.work(length / 4)?;
    Ok(Value::text(make()))
}

fn network<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Outcome<'a>> {
    let result = match (name, arguments) {
        ("ip", [Value::String(text)]) => Value::Ip(match net::parse_ip(text) {
            Ok(ip) => ip,
            Err(error) => return Some(Err(error.into())),
        }),
        ("ip", [Value::Cidr(cidr)]) => Value::Ip(cidr.address),
        ("isIP", [Value::String(text)]) => Value::Bool(net::parse_ip(text).is_ok()),
        ("ip.isCanonical", [Value::String(text)]) => match net::parse_ip(text) {
            Ok(ip) => Value::Bool(ip.to_string() == **text),
            Err(error) => return Some(Err(error.into())),
        },
        ("family", [Value::Ip(ip)]) => Value::Int(if ip.is_ipv4() { 4 } else { 6 }),
        ("isUnspecified", [Value::Ip(ip)]) => Value::Bool(ip.is_unspecified()),
        ("isLoopback", [Value::Ip(ip)]) => Value::Bool(ip.is_loopback()),
        ("isLinkLocalMulticast", [Value::Ip(ip)]) => Value::Bool(net::is_link_local_multicast(*ip)),
        ("isLinkLocalUnicast", [Value::Ip(ip)]) => Value::Bool(net::is_link_local_unicast(*ip)),
        ("isGlobalUnicast", [Value::Ip(ip)]) => Value::Bool(net::is_global_unicast(*ip)),
        ("cidr", [Value::String(text)]) => return Some(cidr(text).map(Value::Cidr)),
        ("isCIDR", [Value::String(text)]) => Value::Bool(net::parse_cidr(text).is_ok()),
        ("masked", [Value::Cidr(cidr)]) => Value::Cidr(cidr.masked()),
        ("prefixLength", [Value::Cidr(cidr)]) => Value::Int(cidr.bits.into()),
        ("containsIP", [Value::Cidr(cidr), other]) => {
            let ip: Result<IpAddr, Failure> = match other {
                Value::Ip(ip) => Ok(*ip),
                Value::String(text) => net::parse_ip(text).map_err(Failure::Error),
                _ => return None,
            };
            return Some(ip.map(|ip| Value::Bool(cidr.contains(ip))));
        }
        ("containsCIDR", [Value::Cidr(one), other]) => {
            let other = match other {
                Value::Cidr(cidr) => Ok(*cidr),
                Value::String(text) => cidr(text),
                _ => return None,
            };
            return Some(other.map(|other| Value::Bool(one.contains_cidr(other))));
        }
        _ => return None,
    };
    Some(Ok(result))
}

fn cidr(text: &str) -> Result<net::Cidr, Failure> {
    net::parse_cidr(text).map_err(|error| {
        Failure::Error(format!(
            "network address parse error during conversion from string: {error}"
        ))
    })
}

fn optional<'a>(meter: &mut Meter, name: &str, arguments: &[Value<'a>]) -> Option<Outcome<'a>> {
    let result = match (name, arguments) {
        ("optional.none", []) => Value::Optional(None),
        ("optional.ofNonZeroValue", [value]) if is_zero(value) => Value::Optional(None),
        ("optional.of" | "optional.ofNonZeroValue", [value]) => Value::some(value.clone()),
        ("hasValue", [Value::Optional(value)]) => Value::Bool(value.is_some()),
        ("value", [Value::Optional(Some(value))]) => (**value).clone(),
        ("value", [Value::Optional(None)]) => {
            return Some(Err("optional.none() dereference".into()));
        }
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let mut values = Vec::new();
            if let Err(failure) = meter.work(list.len()) {
                return Some(Err(failure));
            }
            for item in list.iter() {
                match item {
                    Ok(Value::Optional(value)) => values.extend(value.as_deref().cloned()),
                    Ok(other) => {
                        let message = format!("value {} is not optional", display(&other));
                        return Some(Err(message.into()));
                    }
                    Err(error) => return Some(Err(error.into())),
                }
            }
            Value::list(values)
        }
        ("format.named", [Value::String(name)]) => {
            let format = named_format::find(name).map(|name| Rc::new(Value::Format(name)));
            Value::Optional(format)
        }
        ("validate", [Value::Format(format), Value::String(text)]) => {
            let faults = named_format::faults(format, text);
            let faults: Vec<Value<'a>> = faults.into_iter().map(Value::text).collect();
            let is_valid = faults.is_empty();
            Value::Optional((!is_valid).then(|| Rc::new(Value::list(faults))))
        }
        (format, []) => Value::Format(named_format::find(format.strip_prefix("format.")?)?),
        _ => return None,
    };
    Some(Ok(result))
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Timestamp(timestamp) => timestamp.is_zero(),
        Value::Duration(duration) => *duration == 0,
        Value::List(list) => list.len() == 0 && list.like().is_none(),
        Value::Map(super::value::Map::Made(entries)) => entries.is_empty(),
        Value::Optional(value) => value.is_none(),
        _ => false,
    }
}

/// Returns the part of a text between two byte offsets as a value that shares or borrows it.
fn part<'a>(text: &Text<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::String(Text::Borrowed(&text[range])),
        Text::Shared(text) => Value::text(&text[range]),
    }
}
