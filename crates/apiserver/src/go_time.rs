//! Parses and displays times as Go does in the layouts of Kubernetes' types.
//!
//! Guarantees: the accepted texts and the error messages are those of `time.Parse` in Go.

use std::fmt::{self, Write as _};
use std::ops::RangeInclusive;

const SECONDS_PER_DAY: i64 = 86_400;

/// A layout of Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `time.RFC3339`. A fraction of a second is optional.
    Rfc3339,
    /// `RFC3339Micro` of Kubernetes. A fraction of six digits is required.
    Micro,
}

/// A time as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GoTime {
    /// Unix time.
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
    /// Offset from UTC in the text.
    pub(crate) offset_seconds: i32,
}

/// Reads the parts of a time, with the text and the rest of it.
struct Parser<'a> {
    layout: Layout,
    text: &'a str,
    rest: &'a str,
}

impl Layout {
    fn text(self) -> &'static str {
        match self {
            Layout::Rfc3339 => "2006-01-02T15:04:05Z07:00",
            Layout::Micro => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

impl GoTime {
    /// Parses a text in a layout.
    ///
    /// # Errors
    ///
    /// Returns Go's message.
    pub(crate) fn parse(layout: Layout, text: &str) -> Result<GoTime, String> {
        let mut parser = Parser {
            layout,
            text,
            rest: text,
        };
        parser.time()
    }

    /// Returns the text that Kubernetes writes: in UTC, without a fraction or with six digits of it.
    pub(crate) fn canonical(self, layout: Layout) -> String {
        let (year, month, day) = date(self.seconds.div_euclid(SECONDS_PER_DAY));
        let second = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
        if layout == Layout::Micro {
            let _ = write!(text, ".{:06}", self.nanoseconds / 1_000);
        }
        text.push('Z');
        text
    }
}

impl Parser<'_> {
    fn time(&mut self) -> Result<GoTime, String> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", (2, 2), 1..=12, "month")?;
        self.literal("-")?;
        let day = self.number("02", (2, 2), i64::MIN..=i64::MAX, "day")?;
        self.literal("T")?;
        let hour = self.number("15", (1, 2), 0..=23, "hour")?;
        self.literal(":")?;
        let minute = self.number("04", (2, 2), 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.number("05", (2, 2), 0..=59, "second")?;
        let nanoseconds = self.fraction()?;
        let offset = self.offset()?;
        if !self.rest.is_empty() {
            return Err(self.whole(format!(": extra text: {}", quoted(self.rest))));
        }
        let days = days_until(year, month, day);
        if date(days) != (year, month, day) {
            return Err(self.whole(": day out of range"));
        }
        let second = days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
        Ok(GoTime {
            seconds: second - i64::from(offset),
            nanoseconds,
            offset_seconds: offset,
        })
    }

    /// Returns the error about a part of the text, which the layout describes with `part`.
    fn bad(&self, part: &str) -> String {
        self.whole(format!(
            " as {}: cannot parse {} as {}",
            quoted(self.layout.text()),
            quoted(self.rest),
            quoted(part)
        ))
    }

    fn whole(&self, why: impl fmt::Display) -> String {
        format!("parsing time {}{why}", quoted(self.text))
    }

    fn literal(&mut self, text: &'static str) -> Result<(), String> {
        self.rest = self.rest.strip_prefix(text).ok_or_else(|| self.bad(text))?;
        Ok(())
    }

    fn year(&mut self) -> Result<i64, String> {
        let digits = self.rest.get(..4).filter(|digits| is_digits(digits));
        let year = digits.and_then(|digits| digits.parse().ok());
        let year = year.ok_or_else(|| self.bad("2006"))?;
        self.rest = &self.rest[4..];
        Ok(year)
    }

    /// Reads a number with as many digits as the bounds allow.
    fn number(
        &mut self,
        part: &'static str,
        (least, most): (usize, usize),
        range: RangeInclusive<i64>,
        name: &str,
    ) -> Result<i64, String> {
        let digits = self.rest.bytes().take(most);
        let count = digits.take_while(u8::is_ascii_digit).count();
        if count < least {
            return Err(self.bad(part));
        }
        let (digits, rest) = self.rest.split_at(count);
        let number = digits.parse().unwrap_or(i64::MAX);
        if !range.contains(&number) {
            return Err(self.whole(format!(": {name} out of range")));
        }
        self.rest = rest;
        Ok(number)
    }

    /// Returns the nanoseconds of a fraction of a second.
    fn fraction(&mut self) -> Result<u32, String> {
        let has_fraction = self.rest.starts_with(['.', ',']);
        let after = self.rest.get(1..).unwrap_or_default();
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        let count = match self.layout {
            Layout::Rfc3339 if !has_fraction || count == 0 => return Ok(0),
            Layout::Rfc3339 => count,
            Layout::Micro if !has_fraction || count < 6 => return Err(self.bad(".000000")),
            Layout::Micro => 6,
        };
        let (digits, rest) = after.split_at(count);
        self.rest = rest;
        let nanoseconds = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
        Ok(nanoseconds.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    }

    /// Returns the offset from UTC in seconds.
    fn offset(&mut self) -> Result<i32, String> {
        const PART: &str = "Z07:00";
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(0);
        }
        let bad = self.bad(PART);
        let Some((offset, rest)) = self.rest.split_at_checked(6) else {
            return Err(bad);
        };
        if !offset.is_ascii() {
            return Err(bad);
        }
        let (sign, hours, minutes) = (&offset[..1], &offset[1..3], &offset[4..]);
        if offset[3..4] != *":" || !is_digits(hours) || !is_digits(minutes) {
            return Err(bad);
        }
        let [hours, minutes] = [hours, minutes].map(|digits| digits.parse().unwrap_or(i32::MAX));
        for (number, most, name) in [
            (hours, 24, "time zone offset hour"),
            (minutes, 60, "time zone offset minute"),
        ] {
            if number > most {
                return Err(self.whole(format!(": {name} out of range")));
            }
        }
        let seconds = hours * 3600 + minutes * 60;
        self.rest = rest;
        match sign {
            "+" => Ok(seconds),
            "-" => Ok(-seconds),
            _ => Err(bad),
        }
    }
}

/// Returns a text in quotes, as Go's package `time` shows it: characters outside of ASCII are bytes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('"');
    quoted
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the count of days from 1970-01-01 to a date of the Gregorian calendar.
pub(crate) fn days_until(year: i64, month: i64, day: i64) -> i64 {
    // Years start in March, so that the leap day is the last day of a year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Returns year, month and day of a count of days since 1970-01-01.
pub(crate) fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_canonical_text() {
        for (layout, text, canonical) in [
            (
                Layout::Rfc3339,
                "2026-01-31T12:00:00Z",
                "2026-01-31T12:00:00Z",
            ),
            (
                Layout::Rfc3339,
                "2026-01-31T1:00:00.5+01:30",
                "2026-01-30T23:30:00Z",
            ),
            (
                Layout::Rfc3339,
                "2024-02-29T00:00:00,123-00:01",
                "2024-02-29T00:01:00Z",
            ),
            (
                Layout::Micro,
                "2026-01-31T12:00:00.000001Z",
                "2026-01-31T12:00:00.000001Z",
            ),
            (
                Layout::Rfc3339,
                "9999-12-31T23:59:59Z",
                "9999-12-31T23:59:59Z",
            ),
        ] {
            let time = GoTime::parse(layout, text).unwrap();
            assert_eq!(time.canonical(layout), canonical, "{text}");
        }
    }

    /// The messages are those of `time.Parse` in Go 1.26.
    #[test]
    fn malformed_times_have_the_messages_of_go() {
        let rfc = "parsing time \"T\" as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        let micro = "parsing time \"T\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse";
        for (layout, text, expected) in [
            (
                Layout::Rfc3339,
                "yesterday",
                format!("{rfc} \"yesterday\" as \"2006\""),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01T00:00:00\u{e9}1:00",
                format!("{rfc} \"\\xc3\\xa91:00\" as \"Z07:00\""),
            ),
            (Layout::Rfc3339, "", format!("{rfc} \"\" as \"2006\"")),
            (
                Layout::Rfc3339,
                "2026-1-01T00:00:00Z",
                format!("{rfc} \"1-01T00:00:00Z\" as \"01\""),
            ),
            (
                Layout::Rfc3339,
                "2026-13-01T00:00:00Z",
                "parsing time \"T\": month out of range".into(),
            ),
            (
                Layout::Rfc3339,
                "2026-02-30T00:00:00Z",
                "parsing time \"T\": day out of range".into(),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01 00:00:00Z",
                format!("{rfc} \" 00:00:00Z\" as \"T\""),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01T24:00:00Z",
                "parsing time \"T\": hour out of range".into(),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01T00:00:00",
                format!("{rfc} \"\" as \"Z07:00\""),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01T00:00:00+0100",
                format!("{rfc} \"+0100\" as \"Z07:00\""),
            ),
            (
                Layout::Rfc3339,
                "2026-01-01T00:00:00Zx",
                "parsing time \"T\": extra text: \"x\"".into(),
            ),
            (
                Layout::Micro,
                "2026-01-01T00:00:00Z",
                format!("{micro} \"Z\" as \".000000\""),
            ),
            (
                Layout::Micro,
                "2026-01-01T00:00:00.5Z",
                format!("{micro} \".5Z\" as \".000000\""),
            ),
        ] {
            let found = GoTime::parse(layout, text).unwrap_err();
            assert_eq!(found, expected.replacen("\"T\"", &quoted(text), 1));
        }
    }
}
