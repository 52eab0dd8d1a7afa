//! Checks durations such as `1h30m` as Go's `time.ParseDuration` does.

use std::fmt::Write as _;

/// Maximum length of a duration in nanoseconds: the maximum of an `i64`.
const NANOSECONDS_MAX: u64 = i64::MAX as u64;

/// Checks that `text` is a duration of Go: numbers with units, and an optional sign.
///
/// # Errors
///
/// Returns Go's message if `text` is not a duration.
pub(crate) fn check_duration(text: &str) -> Result<(), String> {
    let invalid = || format!("time: invalid duration {}", quoted(text));
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(());
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole = digits(&mut rest);
        let fraction = rest.strip_prefix('.').map(|after| {
            rest = after;
            digits(&mut rest)
        });
        if whole.is_empty() && fraction.is_none_or(str::is_empty) {
            return Err(invalid());
        }
        let end = rest.find(|letter: char| letter == '.' || letter.is_ascii_digit());
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        let nanoseconds = match unit {
            "" => return Err(format!("time: missing unit in duration {}", quoted(text))),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3_600 * 1_000_000_000,
            _ => {
                let (unit, text) = (quoted(unit), quoted(text));
                return Err(format!("time: unknown unit {unit} in duration {text}"));
            }
        };
        let whole = if whole.is_empty() {
            Some(0)
        } else {
            whole.parse::<u64>().ok()
        };
        let whole = whole.and_then(|whole| whole.checked_mul(nanoseconds));
        let part = part_of(fraction.unwrap_or_default(), nanoseconds);
        let sum = whole.and_then(|whole| total.checked_add(whole)?.checked_add(part));
        // The smallest negative duration is one nanosecond longer.
        let sum = sum.filter(|sum| *sum <= NANOSECONDS_MAX + u64::from(is_negative));
        total = sum.ok_or_else(invalid)?;
    }
    Ok(())
}

/// Removes the digits at the start of `rest`, and returns them.
fn digits<'a>(rest: &mut &'a str) -> &'a str {
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let (digits, after) = rest.split_at(end.unwrap_or(rest.len()));
    *rest = after;
    digits
}

/// Returns the fraction `0.{digits}` of a unit of time, in nanoseconds.
///
/// `nanoseconds` is the length of the unit.
fn part_of(digits: &str, nanoseconds: u64) -> u64 {
    // 18 digits are exact in a u128, and further digits are less than one nanosecond.
    let digits = &digits[..digits.len().min(18)];
    let scale = 10_u128.pow(u32::try_from(digits.len()).unwrap_or_default());
    let part = digits.parse::<u128>().unwrap_or_default() * u128::from(nanoseconds) / scale;
    u64::try_from(part).unwrap_or_default()
}

/// Returns `text` in quotes, with all bytes escaped that are not printable ASCII.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..'\u{80}' => quoted.push(letter),
            _ => {
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    write!(quoted, "\\x{byte:02x}").expect("writing to a String does not fail");
                }
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::check_duration;

    #[test]
    fn durations_are_accepted_and_rejected_as_by_go() {
        for valid in [
            "0",
            "-0",
            "+5s",
            "1h2m3.5s1ms1us1ns1µs",
            ".5s",
            "1.s",
            "2540400h10m10s",
            "9223372036854775807ns",
            "-9223372036854775808ns",
            "0.9223372036854775807h",
        ] {
            assert_eq!(check_duration(valid), Ok(()), "{valid}");
        }
        for (text, message) in [
            ("", "invalid duration \"\""),
            ("abc", "invalid duration \"abc\""),
            ("-", "invalid duration \"-\""),
            (".s", "invalid duration \".s\""),
            ("+.s", "invalid duration \"+.s\""),
            ("10", "missing unit in duration \"10\""),
            ("1s2", "missing unit in duration \"1s2\""),
            ("1x", "unknown unit \"x\" in duration \"1x\""),
            (
                "1\"é",
                "unknown unit \"\\\"\\xc3\\xa9\" in duration \"1\\\"\\xc3\\xa9\"",
            ),
            ("9999999h", "invalid duration \"9999999h\""),
            (
                "9223372036854775808ns",
                "invalid duration \"9223372036854775808ns\"",
            ),
            (
                "99999999999999999999s",
                "invalid duration \"99999999999999999999s\"",
            ),
        ] {
            let message = format!("time: {message}");
            assert_eq!(check_duration(text), Err(message), "{text}");
        }
    }
}
