//! Formats the samples and the performance goals as Markdown tables.
//!
//! Guarantees: a table omits the cases, fields and goals that have no samples.

use std::fmt::Write as _;

use crate::{
    case::{Case, at_rate, cases, growing, of_size},
    goal::{Bound, goals},
    plan::{Plan, RATES, Topic},
    samples::Samples,
};

/// Column head, field name, factor that converts the field to the unit in the head, and number of digits
/// after the decimal point.
type Column = (&'static str, &'static str, f64, usize);

const MIB: f64 = 1.0 / 1024.0;

const CORPORA: &[Column] = &[
    ("JSON, bytes", "json_bytes", 1.0, 0),
    ("protobuf", "protobuf_bytes", 1.0, 0),
    ("JSON, zstd 1", "zstd_bytes", 1.0, 0),
    ("with a dictionary", "dictionary_bytes", 1.0, 0),
    ("ratio", "ratio", 1.0, 1),
];
const SYNC: &[Column] = &[
    ("sync, s", "sync_s", 1.0, 2),
    ("CPU, s", "sync_cpu_s", 1.0, 2),
];
const MEMORY: &[Column] = &[
    ("peak, MiB", "peak_kib", MIB, 0),
    ("steady, MiB", "steady_kib", MIB, 0),
    (
        "steady after a forced collection, MiB",
        "steady_freed_kib",
        MIB,
        0,
    ),
];
const EVENTS: &[Column] = &[
    ("events/s", "events_per_s", 1.0, 0),
    ("CPU per event, µs", "cpu_us_per_event", 1.0, 0),
    ("peak, MiB", "watch_peak_kib", MIB, 0),
];
const LATENCY: &[Column] = &[
    ("p50, µs", "p50_us", 1.0, 0),
    ("p99, µs", "p99_us", 1.0, 0),
    ("longest, µs", "max_us", 1.0, 0),
    ("CPU per event, µs", "cpu_us_per_event", 1.0, 0),
];
const RELIST: &[Column] = &[
    ("CPU, s", "relist_cpu_s", 1.0, 2),
    ("until told, s", "relist_s", 1.0, 2),
    ("peak, MiB", "relist_peak_kib", MIB, 0),
];
const READS: &[Column] = &[
    ("reads/s", "reads_per_s", 1.0, 0),
    ("writes/s", "writes_per_s", 1.0, 0),
];
const QUEUE: &[Column] = &[
    ("per key, ns", "ns_per_item", 1.0, 0),
    ("per event, ns", "ns_per_event", 1.0, 0),
    ("CPU per event, ns", "cpu_ns_per_event", 1.0, 0),
];
const SCALE: &[Column] = &[
    ("sync, s", "sync_s", 1.0, 1),
    ("CPU, s", "sync_cpu_s", 1.0, 1),
    ("peak, MiB", "peak_kib", MIB, 0),
    ("steady, MiB", "steady_kib", MIB, 0),
];

/// Returns the name and the text of each section of `BENCHMARKING.md`, one per topic of `plan`.
pub(crate) fn sections(plan: &Plan, samples: &Samples) -> Vec<(String, String)> {
    let mut sections = Vec::new();
    for topic in &plan.topics {
        let (name, columns) = columns(*topic);
        let names = names(plan, *topic);
        let mut text = figures(&names, columns, samples);
        if *topic == Topic::Events {
            let of = |rate| move |case: &Case| at_rate(&case.name, rate);
            let paced = RATES.map(|rate| growing().iter().map(of(rate)).collect::<Vec<_>>());
            let paced = paced.concat();
            text = format!("{text}\n{}", figures(&paced, LATENCY, samples));
        }
        let reached = reached(*topic, samples);
        if !reached.is_empty() {
            text = format!("{text}\n{reached}");
        }
        sections.push((name.to_owned(), text));
    }
    sections
}

fn columns(topic: Topic) -> (&'static str, &'static [Column]) {
    match topic {
        Topic::Corpora => ("corpora", CORPORA),
        Topic::Sync => ("sync", SYNC),
        Topic::Memory => ("memory", MEMORY),
        Topic::Events => ("events", EVENTS),
        Topic::Relist => ("relist", RELIST),
        Topic::Reads => ("reads", READS),
        Topic::Queue => ("queue", QUEUE),
        Topic::Scale => ("scale", SCALE),
    }
}

/// Returns the names of the topic's cases. Omits the cases with a fixed event rate, which have their own
/// table.
fn names(plan: &Plan, topic: Topic) -> Vec<String> {
    if topic == Topic::Scale {
        let sizes = |name: &str| plan.scale.iter().map(|pods| of_size(name, *pods)).collect();
        return growing()
            .iter()
            .flat_map(|case| -> Vec<_> { sizes(&case.name) })
            .collect();
    }
    let only = Plan {
        topics: vec![topic],
        ..plan.clone()
    };
    let cases = cases(&only).into_iter();
    let names = cases.map(|case| case.name);
    names.filter(|name| !name.ends_with("/s")).collect()
}

/// Returns a table of medians, minimums and maximums, without rows and columns that have no samples.
fn figures(names: &[String], columns: &[Column], samples: &Samples) -> String {
    let measured = |column: &&Column| {
        let has = |name: &String| samples.spread(name, column.1).is_some();
        names.iter().any(has)
    };
    let columns: Vec<_> = columns.iter().filter(measured).collect();
    let heads = columns.iter().map(|column| column.0);
    let mut table = row(std::iter::once("").chain(heads));
    table += &row(std::iter::once("---").chain(columns.iter().map(|_| "---:")));
    for name in names {
        let cells: Vec<_> = columns
            .iter()
            .map(|column| cell(name, column, samples))
            .collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            table += &row(std::iter::once(name.as_str()).chain(cells.iter().map(String::as_str)));
        }
    }
    table
}

fn cell(name: &str, (_, field, factor, digits): &Column, samples: &Samples) -> String {
    let Some(spread) = samples.spread(name, field) else {
        return String::new();
    };
    let [least, median, most] = [spread.least, spread.median, spread.most]
        .map(|value| grouped(&format!("{:.*}", *digits, value * factor)));
    if least == most {
        median
    } else {
        format!("{median} ({least}–{most})")
    }
}

/// Returns a table of the measured performance goals of `topic`, or an empty string if none was measured.
fn reached(topic: Topic, samples: &Samples) -> String {
    let mut rows = String::new();
    for goal in goals().iter().filter(|goal| goal.topic == topic) {
        let Some(value) = goal.value(samples) else {
            continue;
        };
        let (limit, verdict) = match (goal.bound, goal.bound.is_reached(value)) {
            (Bound::AtMost(limit), Some(reached)) => (format!("≤ {}", short(limit)), said(reached)),
            (Bound::AtLeast(limit), Some(reached)) => {
                (format!("≥ {}", short(limit)), said(reached))
            }
            _ => (String::new(), ""),
        };
        let (value, against) = (short(value), goal.against());
        let json = goal.value_in_json(samples).map(short).unwrap_or_default();
        rows += &row([
            goal.what, &goal.case, against, &limit, &value, verdict, &json,
        ]);
    }
    if rows.is_empty() {
        return rows;
    }
    let head = row(["", "of", "by that of", "goal", "is", "", "in JSON"]);
    let rule = row(["---", "---", "---", "---:", "---:", "---", "---:"]);
    format!("{head}{rule}{rows}")
}

fn said(reached: bool) -> &'static str {
    if reached { "reached" } else { "not reached" }
}

/// Formats `value` with about three significant digits.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        above if above >= 99.95 => 0,
        above if above >= 9.995 => 1,
        above if above >= 0.9995 => 2,
        _ => 3,
    };
    grouped(&format!("{value:.digits$}"))
}

/// Adds commas between groups of three digits, such as in `1,234.5`.
pub(crate) fn grouped(number: &str) -> String {
    let (whole, rest) = number.split_at(number.find('.').unwrap_or(number.len()));
    let (sign, digits) = whole.split_at(whole.len() - whole.trim_start_matches('-').len());
    let mut text = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

pub(crate) fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        // Writing to a `String` can't fail.
        let _ = write!(row, " {cell} |");
    }
    row + "\n"
}

#[cfg(test)]
mod tests;
