//! Functions of texts and regular expressions. Positions and lengths count characters.

use super::super::cost::{Failure, Meter};
use super::super::value::{Text, Value};
use super::{Outcome, part, text_format};
use crate::go_regex::Pattern;

pub(super) fn call<'a>(
    meter: &mut Meter,
    name: &str,
    arguments: &[Value<'a>],
) -> Option<Outcome<'a>> {
    Some(match (name, arguments) {
        ("size", [value]) => size(meter, value)?,
        ("join", [Value::List(list)]) => join(meter, list, ""),
        ("join", [Value::List(list), Value::String(separator)]) => join(meter, list, separator),
        ("format", [Value::String(text), Value::List(list)]) => {
            text_format::format(meter, text, list)
        }
        (
            "replace",
            [
                Value::String(text),
                Value::String(old),
                Value::String(new),
                count @ ..,
            ],
        ) => replace(meter, text, (old, new), integer(count)?.0.unwrap_or(-1)),
        (_, [Value::String(text), Value::String(other), rest @ ..]) => {
            of_two_texts(meter, name, (text, other), integer(rest)?.0)?
        }
        (_, [Value::String(text), rest @ ..]) => of_text(meter, name, text, rest)?,
        _ => return None,
    })
}

/// Returns the optional last argument, or `None` if there are other arguments.
fn integer(rest: &[Value<'_>]) -> Option<LastArgument> {
    match rest {
        [] => Some(LastArgument(None)),
        [Value::Int(value)] => Some(LastArgument(Some(*value))),
        _ => None,
    }
}

/// An integer that can follow the other arguments.
struct LastArgument(Option<i64>);

fn of_text<'a>(
    meter: &mut Meter,
    name: &str,
    text: &Text<'a>,
    rest: &[Value<'a>],
) -> Option<Outcome<'a>> {
    Some(match (name, rest) {
        ("charAt", [Value::Int(index)]) => char_at(meter, text, *index),
        ("substring", [Value::Int(start)]) => substring(text, *start, None),
        ("substring", [Value::Int(start), Value::Int(end)]) => substring(text, *start, Some(*end)),
        ("lowerAscii", []) => super::text(meter, text.len(), || text.to_ascii_lowercase()),
        ("upperAscii", []) => super::text(meter, text.len(), || text.to_ascii_uppercase()),
        ("trim", []) => Ok(trim(text)),
        ("strings.quote", []) => super::text(meter, 2 * text.len(), || quote(text)),
        _ => return None,
    })
}

fn of_two_texts<'a>(
    meter: &mut Meter,
    name: &str,
    (text, other): (&Text<'a>, &str),
    number: Option<i64>,
) -> Option<Outcome<'a>> {
    Some(match (name, number) {
        ("contains", None) => Ok(Value::Bool(text.contains(other))),
        ("startsWith", None) => Ok(Value::Bool(text.starts_with(other))),
        ("endsWith", None) => Ok(Value::Bool(text.ends_with(other))),
        ("matches", None) => matches(meter, text, other),
        ("find", None) => find(meter, text, other),
        ("findAll", count) => find_all(meter, text, other, count.unwrap_or(-1)),
        ("indexOf", from) => index_of(meter, text, other, from.unwrap_or(0)),
        ("lastIndexOf", from) => last_index_of(meter, text, other, from),
        ("split", count) => split(meter, text, other, count.unwrap_or(-1)),
        _ => return None,
    })
}

fn size<'a>(meter: &mut Meter, value: &Value<'a>) -> Option<Outcome<'a>> {
    let size = match value {
        Value::String(text) => {
            if let Err(exceeded) = meter.work(text.len() / 16) {
                return Some(Err(exceeded));
            }
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return None,
    };
    Some(Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))))
}

fn compile(meter: &mut Meter, text: &Text<'_>, pattern: &str) -> Result<Pattern, Failure> {
    meter.work(text.len() / 16)?;
    meter.pattern(pattern)
}

fn matches<'a>(meter: &mut Meter, text: &Text<'a>, pattern: &str) -> Outcome<'a> {
    let pattern = compile(meter, text, pattern)?;
    Ok(Value::Bool(pattern.is_match(text)))
}

fn illegal(failure: Failure) -> Failure {
    match failure {
        Failure::Error(error) => Failure::Error(format!("Illegal regex: {error}")),
        Failure::LimitExceeded => Failure::LimitExceeded,
    }
}

fn find<'a>(meter: &mut Meter, text: &Text<'a>, pattern: &str) -> Outcome<'a> {
    let pattern = compile(meter, text, pattern).map_err(illegal)?;
    Ok(Value::text(pattern.find(text).unwrap_or_default()))
}

fn find_all<'a>(meter: &mut Meter, text: &Text<'a>, pattern: &str, count: i64) -> Outcome<'a> {
    let pattern = compile(meter, text, pattern).map_err(illegal)?;
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = pattern.find_all(text, limit);
    meter.work(found.len())?;
    Ok(Value::list(found.into_iter().map(Value::text).collect()))
}

fn out_of_range(index: i64) -> Failure {
    Failure::Error(format!("index out of range: {index}"))
}

/// Returns the byte offset of a character, or of the end of the text.
fn offset(text: &str, index: i64) -> Result<usize, Failure> {
    let chars = usize::try_from(index).map_err(|_| out_of_range(index))?;
    let mut offsets = text
        .char_indices()
        .map(|(offset, _)| offset)
        .chain([text.len()]);
    offsets.nth(chars).ok_or_else(|| out_of_range(index))
}

fn char_at<'a>(meter: &mut Meter, text: &Text<'a>, index: i64) -> Outcome<'a> {
    meter.work(text.len() / 16)?;
    let start = offset(text, index)?;
    let letter = text[start..].chars().next();
    Ok(part(text, start..start + letter.map_or(0, char::len_utf8)))
}

fn position<'a>(text: &str, offset: usize) -> Value<'a> {
    Value::Int(i64::try_from(text[..offset].chars().count()).unwrap_or(i64::MAX))
}

fn index_of<'a>(meter: &mut Meter, text: &Text<'a>, part: &str, from: i64) -> Outcome<'a> {
    meter.work(text.len() / 16)?;
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    let found = offset(text, from).ok().and_then(|start| {
        let found = text[start..].find(part)?;
        Some(position(text, start + found))
    });
    Ok(found.unwrap_or(Value::Int(-1)))
}

fn last_index_of<'a>(
    meter: &mut Meter,
    text: &Text<'a>,
    part: &str,
    from: Option<i64>,
) -> Outcome<'a> {
    meter.work(text.len() / 16)?;
    let length = text.chars().count();
    if part.is_empty() {
        let end = i64::try_from(length).unwrap_or(i64::MAX);
        return Ok(Value::Int(from.unwrap_or(end)));
    }
    let mut end = match from {
        None => text.len(),
        Some(from) if from < 0 => return Err(out_of_range(from)),
        Some(from) if usize::try_from(from).is_ok_and(|from| from >= length) => {
            return Ok(Value::Int(-1));
        }
        Some(from) => (offset(text, from)? + part.len()).min(text.len()),
    };
    // The end can be inside a character, because the part can differ from what is at `from`.
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let found = text[..end].rfind(part);
    Ok(found.map_or(Value::Int(-1), |found| position(text, found)))
}

fn trim<'a>(text: &Text<'a>) -> Value<'a> {
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    if trimmed.is_empty() {
        Value::String(Text::Borrowed(""))
    } else {
        part(text, start..start + trimmed.len())
    }
}

fn replace<'a>(
    meter: &mut Meter,
    text: &Text<'a>,
    (old, new): (&str, &str),
    count: i64,
) -> Outcome<'a> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = text.matches(old).take(limit).count();
    let length = text.len().saturating_add(found.saturating_mul(new.len()));
    super::text(meter, length, || text.replacen(old, new, limit))
}

fn split<'a>(meter: &mut Meter, text: &Text<'a>, separator: &str, count: i64) -> Outcome<'a> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    meter.work(text.len() / 16 + text.matches(separator).take(limit).count())?;
    let parts: Vec<&str> = if separator.is_empty() {
        split_letters(text, limit)
    } else {
        text.splitn(limit, separator).collect()
    };
    Ok(Value::list(parts.into_iter().map(Value::text).collect()))
}

fn split_letters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (first, after) = rest.split_at(letter.len_utf8());
        parts.push(first);
        rest = after;
    }
    parts
}

fn substring<'a>(text: &Text<'a>, start: i64, end: Option<i64>) -> Outcome<'a> {
    if let Some(end) = end.filter(|end| start > *end) {
        let message = format!("invalid substring range. start: {start}, end: {end}");
        return Err(Failure::Error(message));
    }
    let from = offset(text, start)?;
    let to = end.map_or(Ok(text.len()), |end| offset(text, end))?;
    Ok(part(text, from..to))
}

fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn join<'a>(
    meter: &mut Meter,
    list: &super::super::value::List<'a>,
    separator: &str,
) -> Outcome<'a> {
    let mut joined = String::new();
    for (index, item) in list.iter().enumerate() {
        let Value::String(text) = item? else {
            return Err("join: invalid input".into());
        };
        meter.work((text.len() + separator.len()) / 4 + 1)?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&text);
    }
    Ok(Value::text(joined))
}
