//! The function `format` of texts, with the clauses `%s`, `%d`, `%f`, `%e`, `%b`, `%x`, `%X` and `%o`.
//!
//! Numbers with a fraction are written as cel-go does for the locale `en_US`: `1,234.500000`.

use std::fmt::Write as _;

use super::super::cel_type::Type;
use super::super::cost::{Failure, Meter};
use super::super::issue::Location;
use super::super::value::{List, Map, Value};
use super::{Outcome, convert};
use crate::quote::Quoted;

/// Maximum count of digits after the point. Go has no limit.
const MAX_PRECISION: usize = 1000;

/// The count of digits after the point if the clause has none.
const DEFAULT_PRECISION: usize = 6;

/// One clause of a format.
#[derive(Clone, Copy, Debug)]
struct Clause {
    letter: char,
    precision: usize,
}

/// A literal text or a clause.
enum Piece<'t> {
    Text(&'t str),
    Clause(Result<Clause, String>),
    /// A `%` at the end of the text.
    Unfinished,
}

/// Divides a format into its pieces.
struct Pieces<'t>(&'t str);

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let rest = self.0;
        match rest.find('%') {
            None if rest.is_empty() => None,
            None => {
                self.0 = "";
                Some(Piece::Text(rest))
            }
            Some(0) if rest.starts_with("%%") => {
                self.0 = &rest[2..];
                Some(Piece::Text("%"))
            }
            Some(0) if rest.len() == 1 => {
                self.0 = "";
                Some(Piece::Unfinished)
            }
            Some(0) => {
                let clause = self.clause();
                Some(Piece::Clause(clause))
            }
            Some(end) => {
                self.0 = &rest[end..];
                Some(Piece::Text(&rest[..end]))
            }
        }
    }
}

impl Pieces<'_> {
    fn clause(&mut self) -> Result<Clause, String> {
        let mut rest = &self.0[1..];
        let mut precision = DEFAULT_PRECISION;
        if let Some(digits) = rest.strip_prefix('.') {
            let wrong = |error: &str| format!("error while parsing precision: {error}");
            let end = digits.find(|one: char| !one.is_ascii_digit());
            let end = end.ok_or_else(|| wrong("could not find end of precision specifier"))?;
            let text = &digits[..end];
            let parsed = text.parse::<usize>().map_err(|_| {
                let parsing = format!("strconv.Atoi: parsing {}: invalid syntax", Quoted(text));
                wrong(&format!(
                    "error while converting precision to integer: {parsing}"
                ))
            });
            precision = parsed?.min(MAX_PRECISION);
            rest = &digits[end..];
        }
        let Some(letter) = rest.chars().next() else {
            return Err("unrecognized formatting clause".to_owned());
        };
        self.0 = &rest[letter.len_utf8()..];
        match letter {
            's' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o' => Ok(Clause { letter, precision }),
            // Go reads only the first byte of the character.
            _ => Err(format!(
                "unrecognized formatting clause \"{}\"",
                first_byte(letter)
            )),
        }
    }
}

fn first_byte(letter: char) -> char {
    let mut bytes = [0; 4];
    letter.encode_utf8(&mut bytes);
    char::from(bytes[0])
}

fn unparsed(error: &str) -> String {
    format!("could not parse formatting clause: {error}")
}

/// Formats a list of values.
pub(super) fn format<'a>(meter: &mut Meter, text: &str, arguments: &List<'a>) -> Outcome<'a> {
    let mut result = String::new();
    let mut index = 0;
    for piece in Pieces(text) {
        meter.work(1)?;
        let argument = match piece {
            Piece::Text(text) => {
                meter.work(text.len() / 4)?;
                result.push_str(text);
                continue;
            }
            Piece::Clause(_) | Piece::Unfinished => arguments.get(index),
        };
        let argument = argument.ok_or_else(|| format!("index {index} out of range"))?;
        let Piece::Clause(clause) = piece else {
            return Err("unexpected end of string".into());
        };
        let clause = clause.map_err(|error| unparsed(&error))?;
        let before = result.len();
        write_clause(meter, clause, &argument?, &mut result).map_err(|failure| match failure {
            Failure::Error(error) => Failure::Error(format!("error during formatting: {error}")),
            Failure::LimitExceeded => Failure::LimitExceeded,
        })?;
        meter.work((result.len() - before) / 4)?;
        index += 1;
    }
    Ok(Value::text(result))
}

/// The types of an argument and of the items of literals inside, with their places.
pub(in super::super) type Argument = Vec<(Location, Type)>;

/// Returns a message if the types of arguments don't fit a format, with the place of the wrong part.
pub(in super::super) fn check(
    text: &str,
    arguments: &[Argument],
) -> Option<(Option<Location>, String)> {
    let mut index = 0;
    for piece in Pieces(text) {
        let clause = match piece {
            Piece::Text(_) => continue,
            Piece::Unfinished => return Some((None, "unexpected end of string".to_owned())),
            Piece::Clause(clause) => clause,
        };
        let Some(argument) = arguments.get(index) else {
            return Some((None, format!("index {index} out of range")));
        };
        let clause = match clause {
            Ok(clause) => clause,
            Err(error) => return Some((None, unparsed(&error))),
        };
        // Only `%s` shows the items of lists and maps.
        let parts = if clause.letter == 's' {
            argument.as_slice()
        } else {
            &argument[..1]
        };
        if let Some((location, of)) = parts.iter().find(|(_, of)| !fits(clause.letter, of)) {
            let error = mismatch(clause.letter, &type_name(of));
            return Some((Some(*location), format!("error during formatting: {error}")));
        }
        index += 1;
    }
    if arguments.len() > index {
        let count = arguments.len();
        let message = "too many arguments supplied to string.format";
        return Some((None, format!("{message} (expected {index}, got {count})")));
    }
    None
}

fn fits(letter: char, of: &Type) -> bool {
    let Type::Scalar(name) = of else {
        let is_shown = matches!(
            of,
            Type::List(_) | Type::Map(..) | Type::Meta(_) | Type::Null
        );
        return matches!(of, Type::Dyn) || (letter == 's' && is_shown);
    };
    match letter {
        's' => *name != "any",
        'd' | 'o' => matches!(*name, "int" | "uint"),
        'f' | 'e' => matches!(*name, "double" | "string"),
        'b' => matches!(*name, "int" | "uint" | "bool"),
        _ => matches!(*name, "int" | "uint" | "string" | "bytes"),
    }
}

/// Returns the name of a type without its parameters.
fn type_name(of: &Type) -> String {
    match of {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Null => "null_type".to_owned(),
        Type::Scalar("timestamp") => "google.protobuf.Timestamp".to_owned(),
        Type::Scalar("duration") => "google.protobuf.Duration".to_owned(),
        Type::Opaque(name, _) => (*name).to_owned(),
        other => other.to_string(),
    }
}

fn mismatch(letter: char, name: &str) -> String {
    let allowed = match letter {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'o' => "octal clause can only be used on integers",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
    };
    format!("{allowed}, was given {name}")
}

fn write_clause(
    meter: &mut Meter,
    clause: Clause,
    value: &Value<'_>,
    to: &mut String,
) -> Result<(), Failure> {
    let Clause { letter, precision } = clause;
    // Writing to a `String` does not fail.
    let _ = match (letter, value) {
        ('s', value) => return write_text(meter, value, to),
        ('d', Value::Int(value)) => write!(to, "{value}"),
        ('d', Value::Uint(value)) => write!(to, "{value}"),
        ('b', Value::Bool(value)) => write!(to, "{}", u8::from(*value)),
        ('b', Value::Uint(value)) => write!(to, "{value:b}"),
        ('o', Value::Uint(value)) => write!(to, "{value:o}"),
        ('x', Value::Uint(value)) => write!(to, "{value:x}"),
        ('X', Value::Uint(value)) => write!(to, "{value:X}"),
        ('b' | 'o' | 'x' | 'X', Value::Int(value)) => {
            let sign = if *value < 0 { "-" } else { "" };
            let value = value.unsigned_abs();
            match letter {
                'b' => write!(to, "{sign}{value:b}"),
                'o' => write!(to, "{sign}{value:o}"),
                'x' => write!(to, "{sign}{value:x}"),
                _ => write!(to, "{sign}{value:X}"),
            }
        }
        ('x' | 'X', Value::String(text)) => {
            write_hex(text.as_bytes(), letter == 'X', to);
            Ok(())
        }
        ('x' | 'X', Value::Bytes(bytes)) => {
            write_hex(bytes, letter == 'X', to);
            Ok(())
        }
        ('f' | 'e', value) => {
            let number = match value {
                Value::Double(value) => *value,
                Value::String(text) => match &**text {
                    "NaN" => f64::NAN,
                    "Infinity" => f64::INFINITY,
                    "-Infinity" => f64::NEG_INFINITY,
                    _ => return Err(mismatch(letter, "string").into()),
                },
                other => return Err(mismatch(letter, other.type_name()).into()),
            };
            write_number(letter, number, precision, to);
            Ok(())
        }
        (letter, value) => return Err(mismatch(letter, value.type_name()).into()),
    };
    Ok(())
}

fn write_hex(bytes: &[u8], is_upper: bool, to: &mut String) {
    for byte in bytes {
        let _ = if is_upper {
            write!(to, "{byte:02X}")
        } else {
            write!(to, "{byte:02x}")
        };
    }
}

/// Writes a number in the form of the locale `en_US`.
fn write_number(letter: char, number: f64, precision: usize, to: &mut String) {
    if number.is_nan() {
        to.push_str("NaN");
        return;
    }
    if number.is_sign_negative() {
        to.push('-');
    }
    let number = number.abs();
    if number.is_infinite() {
        to.push('∞');
        return;
    }
    if letter == 'f' {
        let plain = format!("{number:.precision$}");
        let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
        write_grouped(whole, to);
        if !fraction.is_empty() {
            to.push('.');
            to.push_str(fraction);
        }
        return;
    }
    // cel-go takes the precision of this clause as a width.
    let scientific = format!("{number:.DEFAULT_PRECISION$e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    to.push_str(digits);
    to.push_str("×10");
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ("⁻", exponent),
        None => ("", exponent),
    };
    to.push_str(sign);
    for digit in format!("{exponent:0>2}").chars() {
        let raised = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
        to.push(
            digit
                .to_digit(10)
                .map_or(digit, |digit| raised[digit as usize]),
        );
    }
}

fn write_grouped(digits: &str, to: &mut String) {
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            to.push(',');
        }
        to.push(digit);
    }
}

/// Writes a value for `%s`.
fn write_text(meter: &mut Meter, value: &Value<'_>, to: &mut String) -> Result<(), Failure> {
    match value {
        Value::List(list) => write_list(meter, list, to)?,
        Value::Map(map) => write_map(meter, map, to)?,
        Value::Null => to.push_str("null"),
        Value::Type(name) => to.push_str(name),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Duration(_) => to.push_str(&convert::display(value)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => to.push_str(text),
            Err(_) => return Err("could not convert argument to string".into()),
        },
        other => return Err(mismatch('s', other.type_name()).into()),
    }
    Ok(())
}

fn write_list(meter: &mut Meter, list: &List<'_>, to: &mut String) -> Result<(), Failure> {
    to.push('[');
    for (index, item) in list.iter().enumerate() {
        meter.work(1)?;
        if index > 0 {
            to.push_str(", ");
        }
        let item = meter.read(item)??;
        write_literal(meter, &item, to)?;
    }
    to.push(']');
    Ok(())
}

fn write_map(meter: &mut Meter, map: &Map<'_>, to: &mut String) -> Result<(), Failure> {
    let mut entries = Vec::new();
    for key in map.keys() {
        meter.work(1)?;
        let (mut shown, mut value) = (String::new(), String::new());
        match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => {
                write_literal(meter, &key, &mut shown)?;
            }
            other => {
                let name = other.type_name();
                let message = format!("no formatting function for map key of type {name}");
                return Err(message.into());
            }
        }
        if let Some(found) = map.get(&key) {
            let found = meter.read(found)??;
            write_literal(meter, &found, &mut value)?;
        }
        entries.push((shown, value));
    }
    entries.sort();
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{key}:{value}"))
        .collect();
    let _ = write!(to, "{{{}}}", entries.join(", "));
    Ok(())
}

/// Writes a value inside a list or map.
fn write_literal(meter: &mut Meter, value: &Value<'_>, to: &mut String) -> Result<(), Failure> {
    let _ = match value {
        Value::String(text) => write!(to, "{}", Quoted(text)),
        Value::Bytes(bytes) => write!(to, "b{}", crate::quote::quoted_bytes(bytes)),
        Value::Timestamp(value) => write!(to, "timestamp({})", Quoted(&value.to_string())),
        Value::Duration(_) => write!(to, "duration({})", Quoted(&convert::display(value))),
        Value::Double(number) if number.is_finite() => write!(to, "{number:.6}"),
        Value::Double(number) => write!(to, "\"{}\"", convert::general(*number)),
        other => return write_text(meter, other, to),
    };
    Ok(())
}
