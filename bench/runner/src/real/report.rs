//! Formats the results of `cargo xtask bench real` as Markdown tables.
//!
//! For each client, this module also selects the list method that costs the server the least CPU time. The
//! methods are streaming, one list, and pages. A method can't be selected if the server's peak memory is more
//! than 1.5 times the lowest peak memory of all methods.

use std::fmt::Write as _;

use super::{CASES, NO_CLIENT, SERVED, clients::at_once};
use crate::{
    samples::{Samples, Spread},
    table::{grouped, row, short},
};

const MIB: f64 = 1.0 / 1024.0;

/// Columns of the result tables: heading, measured field, factor that converts the field to the heading's
/// unit, and number of decimal places.
const COLUMNS: [(&str, &str, f64, usize); 6] = [
    ("until synced, s", "sync_s", 1.0, 2),
    ("client CPU, s", "sync_cpu_s", 1.0, 2),
    ("client memory, MiB", "steady_kib", MIB, 0),
    ("server CPU of the list, s", SERVER_CPU, 1.0, 2),
    ("server peak memory, MiB", SERVER_PEAK, MIB, 0),
    ("server CPU of the events, s", EVENTS_CPU, 1.0, 2),
];

const SERVER_CPU: &str = "server_list_cpu_s";
const SERVER_PEAK: &str = "server_peak_kib";
const EVENTS_CPU: &str = "events_cpu_s";

/// Maximum peak memory of a kind of list that [`chosen`] selects, as a multiple of the lowest peak memory.
const MEMORY_AT_MOST: f64 = 1.5;

/// Returns all result tables as Markdown.
pub(super) fn tables(clients: &[usize], samples: &Samples) -> String {
    let served = |field| samples.median(SERVED, field);
    let (pods, bytes) = (served("pods"), served("json_bytes"));
    let mut text = pods.zip(bytes).map_or(String::new(), |(pods, bytes)| {
        let [pods, bytes] = [pods, bytes].map(|value| grouped(&format!("{value:.0}")));
        format!("{pods} pods, each {bytes} bytes of JSON as they are served.\n")
    });
    if let Some(writes) = samples.spread(NO_CLIENT, EVENTS_CPU) {
        let writes = cell(writes, None, |value| format!("{value:.2}"));
        // Writing to a `String` can't fail.
        let _ = writeln!(
            text,
            "The changes without a client: {writes} s of server CPU."
        );
    }
    for &clients in clients {
        let figures = figures(clients, samples);
        let _ = match clients {
            1 => writeln!(text, "\nOne client:\n\n{figures}"),
            _ => writeln!(text, "\n{clients} clients at the same time:\n\n{figures}"),
        };
    }
    text + &choices(clients, samples)
}

/// Returns the result table for `clients` simultaneous clients, with one row per benchmark case.
fn figures(clients: usize, samples: &Samples) -> String {
    let heads = COLUMNS.iter().map(|column| column.0);
    let mut table = row(std::iter::once("").chain(heads));
    table += &row(std::iter::once("---").chain(COLUMNS.iter().map(|_| "---:")));
    let writes = samples.spread(NO_CLIENT, EVENTS_CPU);
    for (name, ..) in CASES {
        let case = at_once(name, clients);
        if samples.spread(&case, SERVER_CPU).is_none() {
            continue;
        }
        let cells = COLUMNS.map(|(_, field, factor, digits)| {
            let spread = samples.spread(&case, field);
            let less = writes.filter(|_| field == EVENTS_CPU);
            spread.map_or(String::new(), |spread| {
                cell(spread, less, |value| {
                    grouped(&format!("{:.digits$}", value * factor))
                })
            })
        });
        table += &row(std::iter::once(name).chain(cells.iter().map(String::as_str)));
    }
    table
}

/// Returns the text of a table cell: the minimum of `spread`, and its median in parentheses.
///
/// The median is omitted if both texts are equal. The minimum and the median of the baseline `less` are
/// subtracted. Negative differences count as zero.
fn cell(spread: Spread, less: Option<Spread>, shown: impl Fn(f64) -> String) -> String {
    let (least, median) = less.map_or((0.0, 0.0), |less| (less.least, less.median));
    let least = shown((spread.least - least).max(0.0));
    let median = shown((spread.median - median).max(0.0));
    if least == median {
        least
    } else {
        format!("{least} ({median})")
    }
}

/// Returns a table that compares the server's cost of the kinds of initial list.
///
/// The comparison is separate for each client program and each number of clients. The table marks the kind
/// that [`chosen`] selects.
fn choices(clients: &[usize], samples: &Samples) -> String {
    let mut rows = String::new();
    for &clients in clients {
        for ways in CASES.chunk_by(|one, other| who(one.0) == who(other.0)) {
            let measured = ways.iter().filter_map(|(name, ..)| {
                let case = at_once(name, clients);
                let cpu = samples.spread(&case, SERVER_CPU)?.least;
                let peak = samples.spread(&case, SERVER_PEAK)?.median;
                Some((*name, Cost { cpu, peak }))
            });
            let measured: Vec<_> = measured.collect();
            let costs: Vec<_> = measured.iter().map(|(_, cost)| *cost).collect();
            let [least_cpu, least_peak] = [|cost: &Cost| cost.cpu, |cost: &Cost| cost.peak]
                .map(|of| costs.iter().map(of).fold(f64::INFINITY, f64::min));
            if measured.len() < 2 {
                continue;
            }
            for (at, (name, cost)) in measured.iter().enumerate() {
                let [cpu, peak] = [cost.cpu / least_cpu, cost.peak / least_peak].map(short);
                let is_chosen = chosen(&costs) == Some(at);
                let mark = if is_chosen { "chosen" } else { "" };
                rows += &row([*name, &clients.to_string(), &cpu, &peak, mark]);
            }
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let head = row(["", "clients", "× least CPU", "× least peak", ""]);
    let rule = row(["---", "---:", "---:", "---:", "---"]);
    format!(
        "\nServer CPU time and server peak memory beside the least of the same client:\n\n{head}{rule}{rows}"
    )
}

/// Returns the part of a case name before the last comma: the client's name.
fn who(name: &str) -> &str {
    name.rsplit_once(", ").map_or(name, |(who, _)| who)
}

/// The cost of one kind of initial list for the server.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Minimum CPU time of all runs, in seconds.
    cpu: f64,
    /// Median peak memory of all runs, in KiB.
    peak: f64,
}

/// Returns the index of the kind of initial list that costs the server the least CPU time.
///
/// Only considers the kinds whose peak memory is at most [`MEMORY_AT_MOST`] times the lowest peak memory.
fn chosen(costs: &[Cost]) -> Option<usize> {
    let least = costs
        .iter()
        .map(|cost| cost.peak)
        .fold(f64::INFINITY, f64::min);
    let allowed = costs.iter().enumerate();
    let allowed = allowed.filter(|(_, cost)| cost.peak <= least * MEMORY_AT_MOST);
    let least = allowed.min_by(|(_, one), (_, other)| one.cpu.total_cmp(&other.cpu));
    least.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(cases: &[(&str, f64, f64)]) -> Samples {
        let mut samples = Samples::default();
        for (name, cpu, peak) in cases {
            let line = format!(
                r#"{{"{SERVER_CPU}": {cpu}, "{SERVER_PEAK}": {peak}, "{EVENTS_CPU}": 3.0}}"#
            );
            samples.add(name, &line).unwrap();
        }
        samples
    }

    #[test]
    fn the_cheapest_list_within_the_memory_limit_is_chosen() {
        let chosen = |costs: &[(f64, f64)]| {
            let costs = costs.iter().map(|&(cpu, peak)| Cost { cpu, peak });
            chosen(&costs.collect::<Vec<_>>())
        };
        assert_eq!(chosen(&[(1.0, 1.0), (0.5, 1.5)]), Some(1));
        assert_eq!(chosen(&[(1.0, 1.0), (0.5, 1.6)]), Some(0));
        assert_eq!(chosen(&[(1.0, 1.0), (0.5, 1.6), (0.6, 1.2)]), Some(2));
        assert_eq!(chosen(&[(1.0, 1.0), (1.1, 0.6)]), Some(1));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_row_has_minimum_and_median_and_events_without_the_writes() {
        let mut samples = samples(&[
            ("ours, typed, whole", 1.0, 2048.0),
            ("ours, typed, whole", 4.0, 4096.0),
            ("ours, typed, whole", 2.0, 2048.0),
        ]);
        samples.add(NO_CLIENT, r#"{"events_cpu_s": 1.0}"#).unwrap();
        let table = figures(1, &samples);
        let row = "| ours, typed, whole |  |  |  | 1.00 (2.00) | 2 | 2.00 |\n";
        assert!(table.ends_with(row), "{table}");
    }

    #[test]
    fn a_choice_compares_the_same_client() {
        let both = samples(&[
            ("ours, typed, streaming, 16 at once", 4.0, 1000.0),
            ("ours, typed, whole, 16 at once", 1.0, 1200.0),
            ("kube-rs, streaming", 1.0, 1.0),
        ]);
        let table = choices(&[1, 16], &both);
        let rows = "| ours, typed, streaming | 16 | 4.00 | 1.00 |  |\n| ours, typed, whole | 16 | 1.00 | 1.20 | chosen |\n";
        assert!(table.ends_with(rows), "{table}");
        assert!(!table.contains("kube-rs"), "{table}");
    }
}
