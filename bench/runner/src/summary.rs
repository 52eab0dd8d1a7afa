//! Writes the summary tables at the start of `BENCHMARKING.md` and `README.md`.
//!
//! Guarantees: each figure of a summary table is copied from another table of `BENCHMARKING.md`. If a run
//! measures only some topics, the figures of the other topics remain unchanged.

use crate::{document::Document, table::row};

/// Name by which [`Document`] finds the summary table in `BENCHMARKING.md` and in `README.md`.
const PLACE: &str = "summary";

/// Displayed name of each compared program, and its name in the other tables.
const PROGRAMS: [(&str, &str); 4] = [
    ("kube-informer, typed (default)", "ours, typed"),
    ("kube-informer, packed", "ours, packed"),
    ("client-go", "client-go, protobuf"),
    ("kube-rs", "kube-rs"),
];

/// One figure of the summary tables.
struct Figure {
    /// Name of the figure in the summary tables.
    head: &'static str,
    table: &'static str,
    column: &'static str,
    /// Text after the program's name in the row label of `table`, such as ` at 1000/s`. Empty if the label is
    /// only the name.
    suffix: &'static str,
}

const fn figure(head: &'static str, table: &'static str, column: &'static str) -> Figure {
    Figure {
        head,
        table,
        column,
        suffix: "",
    }
}

impl Figure {
    const fn of(self, suffix: &'static str) -> Self {
        Self { suffix, ..self }
    }

    /// Returns the median of this figure for one program, or an empty string if `document` does not contain
    /// the figure.
    ///
    /// `case` is the name of the program in the row labels of `document`, such as `client-go, protobuf`.
    fn read<'a>(&self, document: &'a Document, case: &str) -> &'a str {
        let name = format!("{case}{}", self.suffix);
        let cell = document.cell(self.table, &name, self.column);
        cell.and_then(|cell| cell.split(' ').next())
            .unwrap_or_default()
    }
}

/// The figures in the summary table of `README.md`, one per column.
const README: [Figure; 3] = [
    figure("memory, MiB", "memory", "steady, MiB"),
    figure("first sync, s", "sync", "sync, s"),
    figure("events/s", "events", "events/s"),
];

const MILLION: &str = ", 1000000 pods";

/// The figures in the summary table of `BENCHMARKING.md`, one per row.
const BENCHMARKING: [Figure; 10] = [
    figure("memory, MiB", "memory", "steady, MiB"),
    figure("first sync, s", "sync", "sync, s"),
    figure("CPU time of the first sync, s", "sync", "CPU, s"),
    figure("events/s", "events", "events/s"),
    figure("CPU time per event, µs", "events", "CPU per event, µs"),
    figure("latency at 1,000 events/s, p99, µs", "events", "p99, µs").of(" at 1000/s"),
    figure("CPU time of a relist, s", "relist", "CPU, s"),
    figure("peak memory of a relist, MiB", "relist", "peak, MiB"),
    figure("memory of 1,000,000 pods, MiB", "scale", "steady, MiB").of(MILLION),
    figure("first sync of 1,000,000 pods, s", "scale", "sync, s").of(MILLION),
];

/// Replaces the summary tables of both documents.
pub(crate) fn set(benchmarking: &mut Document, readme: &mut Document) {
    readme.set(PLACE, &by_program(benchmarking));
    let table = by_figure(benchmarking);
    benchmarking.set(PLACE, &table);
}

/// Returns the summary table of `README.md`.
fn by_program(document: &Document) -> String {
    let mut table = row(std::iter::once("").chain(README.iter().map(|figure| figure.head)));
    table += &rule(README.len());
    for (name, case) in PROGRAMS {
        let figures = README.iter().map(|figure| figure.read(document, case));
        table += &row(std::iter::once(name).chain(figures));
    }
    table
}

/// Returns the summary table of `BENCHMARKING.md`.
fn by_figure(document: &Document) -> String {
    let mut table = row(std::iter::once("").chain(PROGRAMS.map(|(name, _)| name)));
    table += &rule(PROGRAMS.len());
    for figure in &BENCHMARKING {
        let figures = PROGRAMS.map(|(_, case)| figure.read(document, case));
        table += &row(std::iter::once(figure.head).chain(figures));
    }
    table
}

fn rule(columns: usize) -> String {
    row(std::iter::once("---").chain(std::iter::repeat_n("---:", columns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Words.\n<!-- measured: summary -->\nold\n<!-- end -->\n";

    const TABLES: &str = "<!-- measured: memory -->

|  | peak, MiB | steady, MiB |
| --- | ---: | ---: |
| ours, packed | 97 | 96 (93–96) |
| ours, packed, keys | 94 | 93 |
| kube-rs | 2,107 | 2,106 (2,105–2,106) |

<!-- end -->
<!-- measured: events -->

|  | events/s |
| --- | ---: |
| kube-rs | 10,987 (9,836–12,073) |

|  | p99, µs |
| --- | ---: |
| kube-rs at 1000/s | 447 (401–538) |
| kube-rs at 4000/s | 1,169 |

<!-- end -->
";

    #[test]
    fn a_summary_has_the_medians_of_the_other_tables() {
        let mut benchmarking = Document::of(&format!("{OLD}{TABLES}"));
        let mut readme = Document::of(OLD);
        set(&mut benchmarking, &mut readme);
        assert_eq!(
            readme.text(),
            "Words.
<!-- measured: summary -->

|  | memory, MiB | first sync, s | events/s |
| --- | ---: | ---: | ---: |
| kube-informer, typed (default) |  |  |  |
| kube-informer, packed | 96 |  |  |
| client-go |  |  |  |
| kube-rs | 2,106 |  | 10,987 |

<!-- end -->
"
        );
        let latency = "latency at 1,000 events/s, p99, µs";
        let cell = |program| benchmarking.cell(PLACE, latency, program);
        assert_eq!(cell("kube-rs"), Some("447"));
        assert_eq!(cell("client-go"), Some(""));
        assert!(benchmarking.text().ends_with(TABLES));
    }

    #[test]
    fn the_summaries_in_the_repository_match_its_tables() {
        let texts = [
            include_str!("../../../BENCHMARKING.md"),
            include_str!("../../../README.md"),
        ];
        let [mut benchmarking, mut readme] = texts.map(Document::of);
        set(&mut benchmarking, &mut readme);
        for (document, text) in [&benchmarking, &readme].into_iter().zip(texts) {
            assert!(
                document.text() == text,
                "run `cargo xtask bench` to update it"
            );
        }
        for (name, _) in PROGRAMS {
            for figure in &README {
                let cell = readme.cell(PLACE, name, figure.head);
                assert!(cell.is_some_and(|cell| !cell.is_empty()), "{name}");
            }
        }
    }
}
