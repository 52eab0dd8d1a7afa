//! Tests that compare the complete text of the tables with the expected text for given samples.

use super::*;

fn samples(lines: &[(&str, &str)]) -> Samples {
    let mut samples = Samples::default();
    for (case, line) in lines {
        samples.add(case, line).unwrap();
    }
    samples
}

fn shown(topics: &[Topic], samples: &Samples) -> String {
    let plan = Plan {
        topics: topics.to_vec(),
        ..Plan::full(3, 50_000)
    };
    let sections = sections(&plan, samples);
    let sections = sections
        .iter()
        .map(|(name, text)| format!("{name}\n{text}"));
    sections.collect()
}

#[test]
fn figures_are_medians_with_minimum_and_maximum_and_goals_are_ratios_of_medians() {
    let samples = samples(&[
        ("ours, typed", r#"{"sync_s": 1.0, "sync_cpu_s": 1.4}"#),
        (
            "client-go, protobuf",
            r#"{"sync_s": 4.0, "sync_cpu_s": 4.0}"#,
        ),
        ("ours, typed", r#"{"sync_s": 9.0, "sync_cpu_s": 1.4}"#),
        (
            "client-go, protobuf",
            r#"{"sync_s": 4.0, "sync_cpu_s": 4.0}"#,
        ),
        ("ours, typed", r#"{"sync_s": 1.6, "sync_cpu_s": 1.4}"#),
        ("ours, typed, JSON", r#"{"sync_s": 2.4}"#),
        (
            "client-go, protobuf",
            r#"{"sync_s": 4.0, "sync_cpu_s": 4.0}"#,
        ),
    ]);
    assert_eq!(
        shown(&[Topic::Sync], &samples),
        "sync
|  | sync, s | CPU, s |
| --- | ---: | ---: |
| ours, typed | 1.60 (1.00–9.00) | 1.40 |
| ours, typed, JSON | 2.40 |  |
| client-go, protobuf | 4.00 | 4.00 |

|  | of | by that of | goal | is |  | in JSON |
| --- | --- | --- | ---: | ---: | --- | ---: |
| sync, wall | ours, typed | client-go, protobuf | ≤ 0.350 | 0.400 | not reached | 0.600 |
| sync, CPU | ours, typed | client-go, protobuf | ≤ 0.350 | 0.350 | reached |  |
"
    );
}

#[test]
fn a_column_without_samples_is_omitted_and_a_missing_cell_is_empty() {
    let samples = samples(&[
        (
            "ours, typed",
            r#"{"peak_kib": 2048000, "steady_kib": 1024, "steady_freed_kib": null}"#,
        ),
        ("kube-rs", r#"{"peak_kib": 4096000, "steady_kib": null}"#),
    ]);
    assert_eq!(
        shown(&[Topic::Memory], &samples),
        "memory
|  | peak, MiB | steady, MiB |
| --- | ---: | ---: |
| ours, typed | 2,000 | 1 |
| kube-rs | 4,000 |  |
"
    );
}

#[test]
fn latencies_have_a_separate_table() {
    let samples = samples(&[
        ("kube-rs", r#"{"events_per_s": 9000.4}"#),
        (
            "kube-rs at 1000/s",
            r#"{"events_per_s": 1000, "p50_us": 274}"#,
        ),
    ]);
    assert_eq!(
        shown(&[Topic::Events], &samples),
        "events
|  | events/s |
| --- | ---: |
| kube-rs | 9,000 |

|  | p50, µs |
| --- | ---: |
| kube-rs at 1000/s | 274 |
"
    );
}

#[test]
fn rows_are_grouped_by_program_and_sorted_by_size() {
    let samples = samples(&[
        ("kube-rs, 20000 pods", r#"{"sync_s": 2}"#),
        ("ours, typed, 20000 pods", r#"{"sync_s": 2}"#),
        ("kube-rs, 10000 pods", r#"{"sync_s": 1}"#),
        ("ours, typed, 10000 pods", r#"{"sync_s": 1}"#),
    ]);
    let shown = shown(&[Topic::Scale], &samples);
    let rows: Vec<_> = shown.lines().skip(3).collect();
    assert_eq!(
        rows,
        [
            "| ours, typed, 10000 pods | 1.0 |",
            "| ours, typed, 20000 pods | 2.0 |",
            "| kube-rs, 10000 pods | 1.0 |",
            "| kube-rs, 20000 pods | 2.0 |",
        ]
    );
}

#[test]
fn numbers_have_thousands_separators_and_three_significant_digits() {
    for (value, text) in [
        (0.0833, "0.083"),
        (1.0, "1.00"),
        (12.34, "12.3"),
        (1_234_567.8, "1,234,568"),
        (-1_000.0, "-1,000"),
        (-100.0, "-100"),
        (999.96, "1,000"),
    ] {
        assert_eq!(short(value), text);
    }
}
