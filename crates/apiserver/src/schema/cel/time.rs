//! Timestamps and durations, as Go parses, displays and computes them.
//!
//! Time zones with a name are those of the system's time zone database.

use std::fmt::{self, Write as _};

use crate::go_time::{self, GoTime, Layout, date, days_until};

/// Nanoseconds of one second.
pub(super) const SECOND: i64 = 1_000_000_000;

/// The first second of year 1 and the last second of year 9999, which bound all timestamps.
const SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// An instant, and the offset from UTC with which it was written.
///
/// The offset only affects the text of the timestamp.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timestamp {
    /// Since 1970.
    pub(super) seconds: i64,
    pub(super) nanoseconds: u32,
    offset_seconds: i32,
}

/// A date and time of day without a time zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) day_of_year: i64,
    /// Sunday is 0.
    pub(super) day_of_week: i64,
    pub(super) second_of_day: i64,
}

impl Timestamp {
    /// Returns the instant with an offset of zero, or `None` outside of the years 1 to 9999.
    pub(super) fn new(seconds: i64, nanoseconds: u32) -> Option<Timestamp> {
        SECONDS.contains(&seconds).then_some(Timestamp {
            seconds,
            nanoseconds,
            offset_seconds: 0,
        })
    }

    /// Adds a duration. The result keeps the offset.
    pub(super) fn add(self, nanoseconds: i128) -> Option<Timestamp> {
        let total = self.total_nanoseconds() + nanoseconds;
        let seconds = i64::try_from(total.div_euclid(i128::from(SECOND))).ok()?;
        let nanoseconds = u32::try_from(total.rem_euclid(i128::from(SECOND))).ok()?;
        let added = Timestamp::new(seconds, nanoseconds)?;
        Some(Timestamp {
            offset_seconds: self.offset_seconds,
            ..added
        })
    }

    pub(super) fn total_nanoseconds(self) -> i128 {
        i128::from(self.seconds) * i128::from(SECOND) + i128::from(self.nanoseconds)
    }

    /// Returns whether this is the zero time of Go.
    pub(super) fn is_zero(self) -> bool {
        self.seconds == *SECONDS.start() && self.nanoseconds == 0
    }

    /// Returns the date and time at an offset from UTC.
    pub(super) fn civil(self, offset_seconds: i64) -> Civil {
        let local = self.seconds + offset_seconds;
        let days = local.div_euclid(86_400);
        let (year, month, day) = date(days);
        Civil {
            year,
            month,
            day,
            day_of_year: days - days_until(year, 1, 1) + 1,
            day_of_week: (days + 4).rem_euclid(7),
            second_of_day: local.rem_euclid(86_400),
        }
    }

    pub(super) fn is_in_range(self) -> bool {
        SECONDS.contains(&self.seconds)
    }

    /// Returns the offset from UTC in a time zone, which is a name or `+hh:mm`.
    pub(super) fn offset_in(self, zone: &str) -> Result<i64, String> {
        if let Some((hours, minutes)) = zone.split_once(':') {
            let parse = |text: &str| {
                let parsed = text.parse::<i32>().map(i64::from);
                parsed.map_err(|_| {
                    let quoted = crate::quote::Quoted(text);
                    format!("strconv.Atoi: parsing {quoted}: invalid syntax")
                })
            };
            let (hours, minutes) = (parse(hours)? * 60, parse(minutes)?);
            let is_west = zone.starts_with('-');
            return Ok(60
                * if is_west {
                    hours - minutes
                } else {
                    hours + minutes
                });
        }
        if matches!(zone, "" | "UTC") {
            return Ok(0);
        }
        let known = jiff::tz::TimeZone::get(zone);
        let known = known.map_err(|_| format!("unknown time zone {zone}"))?;
        let instant = jiff::Timestamp::from_second(self.seconds).unwrap_or_default();
        Ok(i64::from(known.to_offset(instant).seconds()))
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.total_nanoseconds() == other.total_nanoseconds()
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.total_nanoseconds()
            .partial_cmp(&other.total_nanoseconds())
    }
}

/// Displays a timestamp in RFC 3339 with as many digits of the fraction as needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Civil {
            year,
            month,
            day,
            second_of_day,
            ..
        } = self.civil(self.offset_seconds.into());
        let (hour, minute) = (second_of_day / 3600, second_of_day / 60 % 60);
        let second = second_of_day % 60;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
        )?;
        if self.nanoseconds != 0 {
            let digits = format!("{:09}", self.nanoseconds);
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        if self.offset_seconds == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset_seconds < 0 { '-' } else { '+' };
        let minutes = self.offset_seconds.unsigned_abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// Parses a timestamp as Go does with `time.RFC3339`. Returns `None` for other texts.
pub(super) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let parsed = GoTime::parse(Layout::Rfc3339, text).ok()?;
    Some(Timestamp {
        seconds: parsed.seconds,
        nanoseconds: parsed.nanoseconds,
        offset_seconds: parsed.offset_seconds,
    })
}

/// Parses a value of the format `date-time`, which can lack the offset.
pub(super) fn parse_format_date_time(text: &str) -> Result<Timestamp, String> {
    if text.is_empty() {
        return Timestamp::new(0, 0).ok_or_else(String::new);
    }
    let with_offset = parse_rfc3339(text);
    let parsed = with_offset.or_else(|| parse_rfc3339(&format!("{text}Z")));
    parsed.ok_or_else(|| cannot_parse(text, "2006-01-02T15:04:05"))
}

/// Parses a value of the format `date`.
pub(super) fn parse_date(text: &str) -> Result<Timestamp, String> {
    let days = parse_days(text).filter(|_| text.len() == 10);
    let days = days.ok_or_else(|| cannot_parse(text, "2006-01-02"))?;
    Ok(Timestamp {
        seconds: days * 86_400,
        nanoseconds: 0,
        offset_seconds: 0,
    })
}

/// Returns the message of Go, without the place of the mistake.
fn cannot_parse(text: &str, layout: &str) -> String {
    let quoted = crate::quote::Quoted(text);
    format!("parsing time {quoted} as \"{layout}\": cannot parse {quoted} as \"2006\"")
}

fn parse_days(date: &str) -> Option<i64> {
    let bytes = date.as_bytes();
    if date.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (year, month, day) = (
        digits(&date[..4])?,
        digits(&date[5..7])?,
        digits(&date[8..])?,
    );
    let days = days_until(year, month, day);
    let is_real = (1..=12).contains(&month) && go_time::date(days) == (year, month, day);
    is_real.then_some(days)
}

fn digits(text: &str) -> Option<i64> {
    let is_number = text.bytes().all(|one| one.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

/// The units of Go's durations in nanoseconds.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Parses a duration as Go's `time.ParseDuration`. Returns `None` for other texts.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    let is_negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit() || letter == '.');
        let (unit, after) = after.split_at(unit_end.unwrap_or(after.len()));
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().ok()?
        };
        // Digits beyond these change the result by less than a nanosecond.
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
        let fraction: i128 = if fraction.is_empty() {
            0
        } else {
            fraction.parse().ok()?
        };
        total = total.checked_add(whole.checked_mul((*unit).into())?)?;
        total = total.checked_add(fraction * i128::from(*unit) / scale)?;
        if total > 1 << 63 {
            return None;
        }
        rest = after;
    }
    i64::try_from(if is_negative { -total } else { total }).ok()
}

/// Parses a value of the format `duration`: also with the units day and week, and long names of units.
pub(super) fn parse_format_duration(text: &str) -> Result<i64, String> {
    if let Some(duration) = parse_duration(text) {
        return Ok(duration);
    }
    let mut total: i64 = 0;
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let number = &rest[start..];
        let end = number
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(number.len());
        let unit = number[end..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let length = unit.find(|letter: char| !letter.is_alphabetic() && letter != 'µ');
        let (unit, after) = unit.split_at(length.unwrap_or(unit.len()));
        if let Some(multiplier) = long_unit(&unit.to_lowercase()) {
            let factor = number[..end].parse::<i64>();
            let factor = factor.map_err(|_| format!("unable to parse {text} as duration"))?;
            total = total.wrapping_add(factor.wrapping_mul(multiplier));
            found = true;
        }
        rest = after;
    }
    found
        .then_some(total)
        .ok_or_else(|| format!("unable to parse {text} as duration"))
}

fn long_unit(unit: &str) -> Option<i64> {
    const DAY: i64 = 86_400 * SECOND;
    let units: [(&[&str], i64); 8] = [
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], SECOND),
        (&["m", "min"], 60 * SECOND),
        (&["h", "hr", "hour"], 3600 * SECOND),
        (&["d", "day"], DAY),
        (&["w", "wk", "week"], 7 * DAY),
    ];
    let matches = |names: &[&str]| {
        let is_prefix = names.last().is_some_and(|last| unit.starts_with(last));
        is_prefix || names.contains(&unit)
    };
    units
        .iter()
        .find(|(names, _)| matches(names))
        .map(|(_, multiplier)| *multiplier)
}

/// Displays a duration in seconds, such as `1.5s`.
pub(super) fn display_duration(nanoseconds: i64) -> String {
    let mut text = String::new();
    if nanoseconds < 0 {
        text.push('-');
    }
    let nanoseconds = nanoseconds.unsigned_abs();
    let (seconds, fraction) = (
        nanoseconds / SECOND.unsigned_abs(),
        nanoseconds % SECOND.unsigned_abs(),
    );
    // Go divides floating-point numbers, whose digits end after the 17th.
    #[expect(
        clippy::cast_precision_loss,
        reason = "as in Go, which converts to float64"
    )]
    let value = seconds as f64 + fraction as f64 / 1e9;
    let _ = write!(text, "{value}s");
    text
}

#[cfg(test)]
mod tests {
    use super::{display_duration, parse_duration, parse_format_duration, parse_rfc3339};

    #[test]
    fn timestamps_keep_their_text() {
        for text in [
            "1970-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
            "2011-08-18T19:03:37.01+01:00",
            "2024-02-29T23:59:59.123456789-07:30",
        ] {
            assert_eq!(parse_rfc3339(text).unwrap().to_string(), text);
        }
        for text in [
            "2023-02-29T00:00:00Z",
            "2023-01-01",
            "2023-13-01T00:00:00Z",
            "2023-01-01T24:00:00Z",
        ] {
            assert!(parse_rfc3339(text).is_none(), "{text}");
        }
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, nanoseconds) in [
            ("1h1m1s1ms1us1ns", Some(3_661_001_001_001)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("0", Some(0)),
            (".5s", Some(500_000_000)),
            ("1", None),
            ("", None),
            ("1d", None),
            ("9223372036.854775808s", None),
        ] {
            assert_eq!(parse_duration(text), nanoseconds, "{text}");
        }
        assert_eq!(
            parse_format_duration("2 days 1 hour"),
            Ok(49 * 3_600_000_000_000)
        );
        assert_eq!(display_duration(-1_500_000_000), "-1.5s");
    }
}
