//! Lists the documented commands that CI does not run, or that CI runs with additional options.

/// Commands that CI does not run, grouped by reason.
pub(super) const NOT_RUN: [(&str, &[&str]); 12] = [
    (
        "the package is not on crates.io yet",
        &["cargo install kube-informer-cli"],
    ),
    ("it runs this check", &["bash .ci/run"]),
    (
        "it takes hours",
        &[
            "PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 cargo mutants -F 'InOrder|DeltaFifo' -C=--lib -C=--test=it",
            "PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 cargo mutants -C=--lib -C=--test=it",
        ],
    ),
    (
        "it takes minutes; stages clients and real run a program with the same library",
        &[
            "bash verify/clients/controller_runtime_suite",
            "bash verify/clients/controller_runtime_suite manager",
            "bash realserver/run bash verify/clients/controller_runtime_suite real",
        ],
    ),
    (
        "it downloads and reads the Go modules of Kubernetes",
        &["cargo xtask kinds", "cargo xtask kinds --check"],
    ),
    (
        "it writes files; a stage runs it with --check",
        &["cargo xtask api", "cargo xtask release"],
    ),
    (
        "it writes files; a test checks that they are current",
        &[
            "cargo xtask conformance cases --document",
            "cargo xtask conformance cases --write --case NAME",
        ],
    ),
    (
        "it measures for minutes or hours, and needs a quiet machine",
        &[
            "cargo bench -p kube-informer --bench parts",
            "cargo xtask bench",
            "cargo xtask bench --only sync --only events",
            "cargo xtask bench --rounds 3 --pods 20000",
            "cargo xtask bench --quick",
            "cargo xtask bench --chunks large",
            "cargo xtask bench real",
            "cargo xtask bench real --rounds 1 --runs 3 --clients 1",
            "cargo xtask bench real --program 'ours, typed'",
        ],
    ),
    (
        "it builds kube-apiserver, for minutes; stage real starts the same server",
        &[
            "cargo xtask apiserver",
            "cargo xtask apiserver --version 1.32.9",
            "cargo xtask apiserver --controllers namespace-controller,garbage-collector-controller",
            "cargo xtask apiserver --feature-gates=WatchList=false -v=4",
            "cargo xtask conformance cases --target apiserver --write --case NAME",
            "RECORD=1 bash realserver/run bash verify/clients/run real",
            "cargo xtask apiserver --controllers '*,-horizontal-pod-autoscaler-controller'",
            "RECORD=1 bash verify/clients/run helm real",
        ],
    ),
    (
        "it belongs to the workspace of the benchmarks, which CI does not build for release",
        &[
            "cargo run --release -p source -- --pods 50000 --port 0",
            "cargo run --release -p source -- --kind secrets --describe",
            "curl -X POST \"$URL/emit?n=1000&rate=100\"",
        ],
    ),
    (
        "a stage runs the same program with other seeds or options",
        &[
            "cargo xtask crash --kills 200 --seed 7",
            "cargo xtask soak --minutes 20 --seed 7",
            "cargo xtask soak --minutes 1 --only 'etcd restored' --informers 20 --small 50",
            "cargo xtask conformance cases --case list/",
            "cargo xtask conformance oracle --seeds 1..2001",
            "cargo xtask conformance requests --seeds 7..8 --print",
            "cargo xtask conformance oracle --seeds 1..20001 --component workqueue --counts",
            "OBJECTS=100000 cargo test --release --package kube-informer-protobuf --lib -- --ignored",
            "OBJECTS=100000 cargo test --release --package kube-informer-apiserver --lib -- --ignored random_",
            "SEQUENCES=10000 cargo test --release --package kube-informer-apiserver --lib -- --ignored random_writes",
            "cargo xtask fuzz",
            "cargo xtask fuzz watch list --runs 1000000 --seed 5",
            "cargo xtask fuzz --time 600 --fresh \"$(date)\"",
            "cargo xtask fuzz watch --input target/fuzz/watch/failure",
            "cargo xtask simulate --seeds 17..18 --trace",
            "cargo xtask simulate --fixed --fresh \"$(git rev-parse HEAD)\" --counts",
        ],
    ),
    (
        "it needs a nightly Rust",
        &[
            "cargo install cargo-fuzz",
            "cargo +nightly fuzz run --fuzz-dir verify/fuzz/libfuzzer watch verify/fuzz/corpus/watch",
        ],
    ),
];

/// Commands and the additional options with which CI runs them in a few seconds.
pub(super) const SHORTENED: [(&str, &str); 1] = [(
    "cargo bench -p kube-informer --bench snapshots",
    "--all-features --profile dev -- 1000",
)];

/// Returns the reason why CI does not run a command, if listed in [`NOT_RUN`].
pub(super) fn not_run(command: &str) -> Option<&'static str> {
    let group = NOT_RUN
        .iter()
        .find(|(_, commands)| commands.contains(&command));
    group.map(|&(reason, _)| reason)
}

/// Returns the additional options with which CI runs a command, if listed in [`SHORTENED`].
pub(super) fn shortened(command: &str) -> Option<&'static str> {
    let entry = SHORTENED.iter().find(|(text, _)| *text == command);
    entry.map(|&(_, options)| options)
}

/// Returns all commands in [`NOT_RUN`] and [`SHORTENED`].
pub(super) fn all() -> impl Iterator<Item = &'static str> {
    let not_run = NOT_RUN.iter().flat_map(|(_, commands)| *commands);
    not_run
        .copied()
        .chain(SHORTENED.iter().map(|(text, _)| *text))
}
