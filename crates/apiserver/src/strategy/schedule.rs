//! Validates the schedules and time zones of cron jobs.
//!
//! Guarantees: the accepted schedules and the messages are those of `cron.ParseStandard`, which Kubernetes uses, and the
//! time zones are those that kube-apiserver contains.

use serde_json::Value;

use super::field::Field;
use super::report::Report;
use crate::go_duration::check_duration;
use crate::quote::Quoted;

/// Names of time zones, one per line, after a line with their origin.
const TIME_ZONES: &str = include_str!("schedule/time_zones.txt");

/// The smallest and the greatest value of each field of a schedule, and the names of values, from the smallest on.
const FIELDS: [(u64, u64, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

/// Checks the schedule of the `spec` of a cron job. A time zone in a schedule can only stay.
pub(super) fn check_schedule(spec: &Field<'_, '_>, old: Option<&Value>, report: &mut Report) {
    let schedule = spec.at("schedule");
    if schedule.is_empty() {
        return schedule.required(report);
    }
    if let Err(why) = parse(schedule.text()) {
        schedule.invalid(report, why);
    }
    let allows_zone = old
        .and_then(|old| old["schedule"].as_str())
        .is_some_and(|old| old.contains("TZ"));
    let has_zone = schedule.text().contains("TZ");
    if has_zone && !allows_zone {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        schedule.invalid(report, why);
    } else if has_zone && spec.at("timeZone").exists() {
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        schedule.invalid(report, why);
    }
}

/// Checks the time zone of a cron job, which can be absent.
pub(super) fn check_time_zone(zone: &Field<'_, '_>, report: &mut Report) {
    if !zone.exists() {
        return;
    }
    if zone.text().is_empty() {
        return zone.invalid(report, "timeZone must be nil or non-empty string");
    }
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(is_allowed)
    };
    if !zone.text().split('/').all(is_part) {
        return zone.invalid(report, format_args!("unknown time zone {}", zone.text()));
    }
    if zone.text().eq_ignore_ascii_case("local") {
        let why =
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        zone.invalid(report, why);
    }
    if let Err(why) = location(zone.text()) {
        zone.invalid(report, why);
    }
}

/// Checks the name of a time zone, as Go's `time.LoadLocation` does.
fn location(name: &str) -> Result<(), String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(());
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    let mut known = TIME_ZONES.lines().skip(1);
    if known.any(|known| known == name) {
        Ok(())
    } else {
        Err(format!("unknown time zone {name}"))
    }
}

fn parse(schedule: &str) -> Result<(), String> {
    let mut schedule = schedule;
    let zone = ["TZ=", "CRON_TZ="]
        .iter()
        .find_map(|start| schedule.strip_prefix(start));
    if let Some(zone) = zone {
        let Some((name, rest)) = zone.split_once(' ') else {
            return Err(
                "invalid schedule format: runtime error: slice bounds out of range [:-1]"
                    .to_owned(),
            );
        };
        location(name).map_err(|why| format!("provided bad location {name}: {why}"))?;
        schedule = rest.trim();
    }
    if schedule.starts_with('@') {
        return parse_descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let (count, fields) = (fields.len(), fields.join(" "));
        return Err(format!(
            "expected exactly 5 fields, found {count}: [{fields}]"
        ));
    }
    for (field, bounds) in fields.iter().zip(FIELDS) {
        for range in field.split(',').filter(|range| !range.is_empty()) {
            parse_range(range, bounds)?;
        }
    }
    Ok(())
}

fn parse_descriptor(schedule: &str) -> Result<(), String> {
    if let Some(duration) = schedule.strip_prefix("@every ") {
        let failed = |why| format!("failed to parse duration {schedule}: {why}");
        return check_duration(duration).map_err(failed);
    }
    match schedule {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => {
            Ok(())
        }
        _ => Err(format!("unrecognized descriptor: {schedule}")),
    }
}

fn parse_range(range: &str, (min, max, names): (u64, u64, &[&str])) -> Result<(), String> {
    let value = |text: &str| {
        let at = names
            .iter()
            .position(|name| text.eq_ignore_ascii_case(name));
        match at.and_then(|at| u64::try_from(at).ok()) {
            Some(at) => Ok(at + min),
            None => integer(text),
        }
    };
    let mut parts = range.split('/');
    let bounds: Vec<&str> = parts.next().unwrap_or_default().split('-').collect();
    let (mut start, mut end) = (min, max);
    if !matches!(bounds[0], "*" | "?") {
        start = value(bounds[0])?;
        end = match bounds[..] {
            [_] => start,
            [_, end] => value(end)?,
            _ => return Err(format!("too many hyphens: {range}")),
        };
    }
    let step = match (parts.next(), parts.next()) {
        (None, _) => 1,
        (Some(step), None) => {
            let step = integer(step)?;
            if bounds.len() == 1 {
                end = max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {range}")),
    };
    let fault = if start < min {
        format!("beginning of range ({start}) below minimum ({min})")
    } else if end > max {
        format!("end of range ({end}) above maximum ({max})")
    } else if start > end {
        format!("beginning of range ({start}) beyond end of range ({end})")
    } else if step == 0 {
        "step of range should be a positive number".to_owned()
    } else {
        return Ok(());
    };
    Err(format!("{fault}: {range}"))
}

/// Parses a number as Go's `strconv.Atoi`.
fn integer(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let why = match text.parse::<i64>() {
        Ok(number) => {
            return u64::try_from(number)
                .map_err(|_| format!("negative number ({number}) not allowed: {text}"));
        }
        Err(_) if is_number => "value out of range",
        Err(_) => "invalid syntax",
    };
    let text_quoted = Quoted(text);
    Err(format!(
        "failed to parse int from {text}: strconv.Atoi: parsing {text_quoted}: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_those_of_cron() {
        for schedule in [
            "* * * * ?",
            "*/5 1-3,7 1 jan-MAR mon",
            "5/15 * * * 0",
            "@hourly",
            "@every 1h30m",
            "TZ=Europe/Berlin 0 0 1 1 *",
            "CRON_TZ=UTC  0 0 1 1 * ",
        ] {
            assert_eq!(parse(schedule), Ok(()), "{schedule}");
        }
        for (schedule, why) in [
            ("* * *", "expected exactly 5 fields, found 3: [* * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("*/1/2 * * * *", "too many slashes: */1/2"),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            (
                "* * * * 99999999999999999999",
                "failed to parse int from 99999999999999999999: strconv.Atoi: parsing \"99999999999999999999\": value out of range",
            ),
            ("1--2 * * * *", "too many hyphens: 1--2"),
            ("*/-2 * * * *", "negative number (-2) not allowed: -2"),
            ("@often", "unrecognized descriptor: @often"),
            (
                "@every x",
                "failed to parse duration @every x: time: invalid duration \"x\"",
            ),
            (
                "TZ=Mars/Olympus * * * * *",
                "provided bad location Mars/Olympus: unknown time zone Mars/Olympus",
            ),
            (
                "TZ=0",
                "invalid schedule format: runtime error: slice bounds out of range [:-1]",
            ),
        ] {
            assert_eq!(parse(schedule), Err(why.to_owned()), "{schedule}");
        }
    }
}
