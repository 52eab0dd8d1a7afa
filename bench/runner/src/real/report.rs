//! The tables of the measurement against a real server.

use std::fmt::Write as _;

use super::{CASES, NO_CLIENT, SERVED, clients::at_once};
use crate::{
    samples::{Samples, Spread},
    table::{grouped, row, short},
};

const MIB: f64 = 1.0 / 1024.0;

/// A head, the field, what that is multiplied by, and digits after the point.
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

/// A list that costs less is chosen unless the server's peak is more than so many times the other's.
const MEMORY_AT_MOST: f64 = 1.5;

/// One table for each number of clients, and which initial list each client should have by them.
pub(super) fn tables(clients: &[usize], samples: &Samples) -> String {
    let served = |field| samples.median(SERVED, field);
    let (pods, bytes) = (served("pods"), served("json_bytes"));
    let mut text = pods.zip(bytes).map_or(String::new(), |(pods, bytes)| {
        let [pods, bytes] = [pods, bytes].map(|value| grouped(&format!("{value:.0}")));
        format!("{pods} pods, each {bytes} bytes of JSON as they are served.\n")
    });
    if let Some(writes) = samples.spread(NO_CLIENT, EVENTS_CPU) {
        let writes = cell(writes, None, |value| format!("{value:.2}"));
        // Writing to a text can't fail.
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

/// One row a case: the least, and behind it the median.
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

/// Least and median, less those of another measurement.
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

/// One row for each pair of cases and number of clients.
fn choices(clients: &[usize], samples: &Samples) -> String {
    let mut rows = String::new();
    for &clients in clients {
        for pair in CASES.chunks_exact(2) {
            let names = [pair[0].0, pair[1].0].map(|name| at_once(name, clients));
            let of = |field| {
                let [streaming, listing] = names.each_ref().map(|name| samples.spread(name, field));
                streaming.zip(listing)
            };
            let (Some(cpu), Some(peak)) = (of(SERVER_CPU), of(SERVER_PEAK)) else {
                continue;
            };
            let cpu = cpu.1.least / cpu.0.least;
            let peak = peak.1.median / peak.0.median;
            let chosen = chosen(cpu, peak);
            let who = pair[1].0.rsplit_once(", ");
            let (who, how) = who.unwrap_or((pair[1].0, ""));
            let chosen = if chosen == Chosen::Streaming {
                "streaming"
            } else {
                how
            };
            let (cpu, peak) = (short(cpu), short(peak));
            rows += &row([who, &clients.to_string(), how, &cpu, &peak, chosen]);
        }
    }
    let head = row([
        "",
        "clients",
        "beside streaming",
        "server CPU",
        "server peak memory",
        "chosen",
    ]);
    let rule = row(["---", "---:", "---", "---:", "---:", "---"]);
    if rows.is_empty() {
        rows
    } else {
        format!("{head}{rule}{rows}")
    }
}

/// What an initial list is, by what it costs the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Streaming,
    Listing,
}

/// By CPU time and memory of listing divided by those of streaming.
fn chosen(cpu: f64, peak: f64) -> Chosen {
    let listing_costs_less = cpu < 1.0;
    match listing_costs_less {
        true if peak <= MEMORY_AT_MOST => Chosen::Listing,
        true => Chosen::Streaming,
        false if peak * MEMORY_AT_MOST >= 1.0 => Chosen::Streaming,
        false => Chosen::Listing,
    }
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
    fn the_list_that_costs_the_server_less_is_chosen_unless_it_takes_much_more_memory() {
        assert_eq!(chosen(0.5, 1.5), Chosen::Listing);
        assert_eq!(chosen(0.5, 1.6), Chosen::Streaming);
        assert_eq!(chosen(1.1, 1.0), Chosen::Streaming);
        assert_eq!(chosen(1.1, 0.6), Chosen::Listing);
    }

    #[test]
    fn a_row_has_the_least_and_the_median_and_events_without_the_writes() {
        let mut samples = samples(&[
            ("ours, typed, list", 1.0, 2048.0),
            ("ours, typed, list", 4.0, 4096.0),
            ("ours, typed, list", 2.0, 2048.0),
        ]);
        samples.add(NO_CLIENT, r#"{"events_cpu_s": 1.0}"#).unwrap();
        let table = figures(1, &samples);
        let row = "| ours, typed, list |  |  |  | 1.00 (2.00) | 2 | 2.00 |\n";
        assert!(table.ends_with(row), "{table}");
    }

    #[test]
    fn a_choice_compares_the_same_client() {
        let both = samples(&[
            ("ours, typed, streaming, 16 at once", 4.0, 1000.0),
            ("ours, typed, list, 16 at once", 1.0, 1200.0),
            ("kube-rs, streaming", 1.0, 1.0),
        ]);
        let table = choices(&[1, 16], &both);
        let row = "| ours, typed | 16 | list | 0.250 | 1.20 | list |\n";
        assert!(
            table.ends_with(row) && table.lines().count() == 3,
            "{table}"
        );
    }
}
