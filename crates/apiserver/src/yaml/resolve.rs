//! Resolves scalars to values, as `go.yaml.in/yaml/v2` does in `resolve.go`.
//!
//! The rules are mostly those of YAML 1.1: `yes`, `on` and `y` are booleans, and `017` is an octal number.
//! Numbers in base 60, such as `1:30`, are texts.

use super::timestamp;

/// Prefix of the tags that YAML defines, such as `!!int`.
const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// The value of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above [`i64::MAX`].
    Uint(u64),
    Float(f64),
    /// A text that looks like a time. It stays a text, but its quotes are necessary.
    Timestamp,
    Text,
}

impl Scalar {
    fn tag(self) -> &'static str {
        match self {
            Scalar::Null => "null",
            Scalar::Bool(_) => "bool",
            Scalar::Int(_) | Scalar::Uint(_) => "int",
            Scalar::Float(_) => "float",
            Scalar::Timestamp => "timestamp",
            Scalar::Text => "str",
        }
    }
}

/// Resolves a scalar without quotes and without a tag.
pub(super) fn resolve(text: &str) -> Scalar {
    plain(text, true)
}

/// Resolves a scalar with the tag `tag`, such as `tag:yaml.org,2002:int`.
///
/// A scalar with a tag that YAML does not define is a text.
///
/// # Errors
///
/// Returns the message of `go.yaml.in/yaml/v2` if the text is no value of the tag.
pub(super) fn resolve_tagged(text: &str, tag: &str) -> Result<Scalar, String> {
    let name = tag.strip_prefix(TAG_PREFIX).unwrap_or_default();
    if !["bool", "int", "float", "null", "timestamp"].contains(&name) {
        return Ok(Scalar::Text);
    }
    match (name, plain(text, name == "timestamp")) {
        // As for a number in JSON, the text of an integer is that of the float.
        ("float", scalar @ Scalar::Int(_)) => Ok(scalar),
        (name, scalar) if scalar.tag() == name => Ok(scalar),
        (name, scalar) => Err(format!(
            "cannot decode !!{} `{text}` as a !!{name}",
            scalar.tag()
        )),
    }
}

/// Resolves a text. `timestamps` is whether a text that looks like a time is a [`Scalar::Timestamp`].
fn plain(text: &str, timestamps: bool) -> Scalar {
    let named = match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(Scalar::Bool(true))
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(Scalar::Bool(false))
        }
        "" | "~" | "null" | "Null" | "NULL" => Some(Scalar::Null),
        ".nan" | ".NaN" | ".NAN" => Some(Scalar::Float(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            Some(Scalar::Float(f64::INFINITY))
        }
        "-.inf" | "-.Inf" | "-.INF" => Some(Scalar::Float(f64::NEG_INFINITY)),
        _ => None,
    };
    named.unwrap_or_else(|| match text.as_bytes() {
        [b'.', ..] if separates_digits(text) => number(&text.replace('_', "")),
        [b'+' | b'-' | b'0'..=b'9', ..] if timestamps && timestamp::is_timestamp(text) => {
            Scalar::Timestamp
        }
        [b'+' | b'-' | b'0'..=b'9', ..] => number(&text.replace('_', "")),
        _ => Scalar::Text,
    })
}

/// Returns whether each underscore is between two digits, as Go's `strconv.ParseFloat` requires.
fn separates_digits(text: &str) -> bool {
    let mut parts = text.split('_').peekable();
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_digit());
    let mut is_first = true;
    while let Some(part) = parts.next() {
        let starts = std::mem::take(&mut is_first) || is_digit(part.bytes().next());
        let ends = parts.peek().is_none() || is_digit(part.bytes().last());
        if !starts || !ends {
            return false;
        }
    }
    true
}

/// Resolves a text that starts with a sign, a digit or a point, and from which underscores were removed.
fn number(text: &str) -> Scalar {
    let (sign, digits) = match text.as_bytes() {
        [b'-', ..] => ("-", &text[1..]),
        [b'+', ..] => ("+", &text[1..]),
        _ => ("", text),
    };
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', _, ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', _, ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    // Rust accepts a second sign.
    if !digits.starts_with(['+', '-']) {
        let signed = if sign == "-" {
            format!("-{digits}")
        } else {
            digits.to_owned()
        };
        if let Ok(integer) = i64::from_str_radix(&signed, base) {
            return Scalar::Int(integer);
        }
        // As in Go, an integer with a sign has 64 bits with the sign.
        if let Some(integer) = u64::from_str_radix(digits, base)
            .ok()
            .filter(|_| sign.is_empty())
        {
            return Scalar::Uint(integer);
        }
    }
    // As in Go, a sign can follow the prefix of a binary number.
    let binary = text
        .strip_prefix("0b")
        .map(|bits| i64::from_str_radix(bits, 2));
    if let Some(Ok(integer)) = binary {
        return Scalar::Int(integer);
    }
    float(text).map_or(Scalar::Text, Scalar::Float)
}

/// Parses a decimal floating-point number. A number beyond the range of `f64` is a text, as in Go.
fn float(text: &str) -> Option<f64> {
    let is_decimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let is_decimal = text.bytes().all(is_decimal);
    let number = is_decimal.then(|| text.parse::<f64>().ok()).flatten();
    number.filter(|number| number.is_finite())
}

/// Returns whether a text has the form of a number in base 60 of YAML 1.1, such as `1:30`.
///
/// Such a text has quotes in the output, for other parsers.
pub(super) fn is_base_60(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = digits.split_once(':') else {
        return false;
    };
    let (rest, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_digit_or_underscore = |byte: u8| byte.is_ascii_digit() || byte == b'_';
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [digit] | [b'0'..=b'5', digit] => is_digit(*digit),
        _ => false,
    };
    first.bytes().next().is_some_and(is_digit)
        && first.bytes().all(is_digit_or_underscore)
        && rest.split(':').all(is_sixtieth)
        && fraction.bytes().all(is_digit_or_underscore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_resolve_as_in_go() {
        for (text, scalar) in [
            ("0o17", Scalar::Int(15)),
            ("017", Scalar::Int(15)),
            ("1_0", Scalar::Int(10)),
            ("0b11", Scalar::Int(3)),
            ("-0x1F", Scalar::Int(-31)),
            ("+1", Scalar::Int(1)),
            ("-0", Scalar::Int(0)),
            ("++1", Scalar::Text),
            ("0x-1", Scalar::Text),
            ("0b-1", Scalar::Int(-1)),
            ("09", Scalar::Float(9.0)),
            ("1.", Scalar::Float(1.0)),
            (".5", Scalar::Float(0.5)),
            (".", Scalar::Text),
            (".5_0", Scalar::Float(0.5)),
            ("._5", Scalar::Text),
            (".5_", Scalar::Text),
            ("1e3", Scalar::Float(1000.0)),
            ("1e400", Scalar::Text),
            ("18446744073709551615", Scalar::Uint(u64::MAX)),
            (
                "+18446744073709551615",
                Scalar::Float(18_446_744_073_709_551_615.0),
            ),
            ("1:30", Scalar::Text),
            ("infinity", Scalar::Text),
            ("y", Scalar::Bool(true)),
            ("oFF", Scalar::Text),
            ("", Scalar::Null),
            ("2020-1-1", Scalar::Timestamp),
        ] {
            assert_eq!(resolve(text), scalar, "{text}");
        }
    }

    #[test]
    fn a_tag_selects_the_type() {
        let tagged = |text, name: &str| resolve_tagged(text, &format!("{TAG_PREFIX}{name}"));
        assert_eq!(tagged("1", "str"), Ok(Scalar::Text));
        assert_eq!(tagged("1", "float"), Ok(Scalar::Int(1)));
        assert_eq!(tagged("1", "set"), Ok(Scalar::Text));
        let message = "cannot decode !!str `x` as a !!int".to_owned();
        assert_eq!(tagged("x", "int"), Err(message));
        assert_eq!(resolve_tagged("1", "!foo"), Ok(Scalar::Text));
    }

    #[test]
    fn numbers_in_base_60_are_recognized() {
        for (text, expected) in [
            ("1:30", true),
            ("-1_0:0:59.5_", true),
            ("1:60", false),
            ("1:", false),
            ("a:30", false),
            ("_1:30", false),
        ] {
            assert_eq!(is_base_60(text), expected, "{text}");
        }
    }
}
