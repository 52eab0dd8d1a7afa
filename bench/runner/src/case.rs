//! Defines the measured cases. A case is a program with its arguments, and has a name that the tables and the
//! performance goals refer to.
//!
//! This module does not run the programs.

use crate::{
    plan::{Plan, RATES, Topic},
    samples::Samples,
};

/// Formats in which the informer of this project stores objects in its cache: the values of the flag
/// `--store` of the program `subject`.
const STORES: [&str; 2] = ["packed", "typed"];

/// Name of the case in which kube-rs gets its initial list in pages, which is the default of kube-rs.
pub(crate) const KUBE_RS_PAGED: &str = "kube-rs, lists in pages";

/// Name of the case in which kube-rs runs with its defaults: the initial list is in pages, and the allocator
/// is the system's instead of jemalloc.
pub(crate) const KUBE_RS_AS_IT_COMES: &str = "kube-rs, as it comes";

/// Name of the case that measures the memory of decoded pods without an informer, as bytes requested from the
/// allocator.
pub(crate) const FLOOR: &str = "floor of the types";

/// Name of the case that measures the memory of decoded pods without an informer, as resident memory.
pub(crate) const FLOOR_RESIDENT: &str = "floor of the types, resident";

/// A benchmark program that the runner builds and starts. A Rust program uses jemalloc unless the name of its
/// variant ends with `System`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Subject,
    /// The program `subject-system`: the informer of this project with the system's allocator instead of
    /// jemalloc.
    SubjectSystem,
    ClientGo,
    KubeRs,
    /// The program `peer-kube-rs-system`: kube-rs with the system's allocator instead of jemalloc.
    KubeRsSystem,
    /// The program `heap`, which runs no informer. It measures the memory of clones of decoded objects.
    Heap,
    /// The program `source`, which generates objects. A case runs it only to print the sizes of the objects.
    Source,
}

/// One measurement: a program, its arguments, and the number of generated pods that the program reads.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) arguments: Vec<String>,
    /// Number of pods in the source, the server of generated objects. `None` if the program runs without a
    /// source.
    pub(crate) source: Option<u32>,
    /// Maximum number of times that the runner measures this case.
    pub(crate) rounds: usize,
    /// Name of a case that runs the same program with fewer pods, and the factor by which this case has more
    /// pods. [`has_room`](Self::has_room) estimates the memory of this case from the memory of that case.
    /// `None` if there is no estimate.
    smaller: Option<(String, u32)>,
}

impl Case {
    pub(crate) fn new(name: &str, program: Program, arguments: &str) -> Self {
        Self {
            name: name.to_owned(),
            program,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            source: None,
            rounds: usize::MAX,
            smaller: None,
        }
    }

    /// Splits `arguments` at white space, and appends them to the arguments of the program.
    fn with(mut self, arguments: &str) -> Self {
        let arguments = arguments.split_whitespace().map(str::to_owned);
        self.arguments.extend(arguments);
        self
    }

    /// Returns whether the estimated memory of this case is below 90 % of `available_kib`.
    ///
    /// The estimate is the measured peak memory of the case with fewer pods in `smaller`, multiplied by the
    /// ratio in `smaller`. Returns true if `smaller` is `None`. Returns false if the case with fewer pods was
    /// not measured.
    pub(crate) fn has_room(&self, samples: &Samples, available_kib: f64) -> bool {
        let Some((smaller, times)) = &self.smaller else {
            return true;
        };
        let peak = samples.median(smaller, "peak_kib");
        // A tenth is reserved for the source and the rest of the machine.
        peak.is_some_and(|peak| peak * f64::from(*times) < 0.9 * available_kib)
    }
}

/// Returns the cases of all topics of `plan`, in the order in which the runner measures them.
pub(crate) fn cases(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    if plan.has(&[Topic::Corpora]) {
        cases.extend(corpora(plan));
    }
    if plan.has(&[Topic::Sync, Topic::Memory, Topic::Events, Topic::Relist]) {
        cases.extend(observed(plan));
    }
    if plan.has(&[Topic::Memory]) {
        cases.extend(floors(plan));
    }
    if plan.has(&[Topic::Events]) {
        cases.extend(paced(plan));
    }
    if plan.has(&[Topic::Reads]) {
        for readers in plan.readers {
            let arguments = format!("reads --readers {readers} --seconds {}", plan.seconds);
            cases.extend(both(&format!("{readers} readers"), &arguments));
        }
    }
    if plan.has(&[Topic::Queue]) {
        cases.extend(both("queue", &format!("queue --items {}", plan.items)));
        for handlers in [1, 64] {
            let events = plan.fanned_out;
            let arguments = format!("fan-out --handlers {handlers} --events {events}");
            cases.extend(both(&format!("{handlers} handlers"), &arguments));
        }
    }
    if plan.has(&[Topic::Scale]) {
        cases.extend(scaled(plan));
    }
    cases
}

/// Returns the cases in which an informer lists and watches generated pods. The cases include the watch phase
/// only if `plan` has the topic `Events`, and the relist phase only if `plan` has the topic `Relist`.
fn observed(plan: &Plan) -> Vec<Case> {
    let ours = STORES.into_iter().flat_map(|store| {
        ["objects", "keys"].map(|handler| {
            let name = match handler {
                "keys" => format!("ours, {store}, keys"),
                _ => format!("ours, {store}"),
            };
            let arguments = format!("--store {store} --handler {handler}");
            Case::new(&name, Program::Subject, &arguments)
        })
    });
    let peers = [
        ("client-go, protobuf", Program::ClientGo, ""),
        (
            "client-go, protobuf, keys",
            Program::ClientGo,
            "--handler keys",
        ),
        ("client-go, JSON", Program::ClientGo, "--encoding json"),
        ("kube-rs", Program::KubeRs, ""),
        (KUBE_RS_PAGED, Program::KubeRs, "--list pages"),
        (
            "kube-rs, managedFields kept",
            Program::KubeRs,
            "--prune false",
        ),
        ("kube-rs, system's allocator", Program::KubeRsSystem, ""),
        (KUBE_RS_AS_IT_COMES, Program::KubeRsSystem, "--list pages"),
        (
            "ours, packed, system's allocator",
            Program::SubjectSystem,
            "--store packed",
        ),
        (
            "ours, packed, keys, system's allocator",
            Program::SubjectSystem,
            "--store packed --handler keys",
        ),
    ];
    let peers = peers.map(|(name, program, arguments)| Case::new(name, program, arguments));
    let phase = |topic, arguments: String| {
        if plan.has(&[topic]) {
            arguments
        } else {
            String::new()
        }
    };
    let events = phase(Topic::Events, format!("--events {}", plan.events));
    let relists = phase(Topic::Relist, format!("--relist {}", plan.relists));
    ours.chain(peers)
        .map(|case| Case {
            source: Some(plan.pods),
            ..case.with(&events).with(&relists)
        })
        .collect()
}

/// Returns the cases that print the sizes of generated objects, one case for each kind of object. Each case
/// is measured only once, because every measurement has the same result.
fn corpora(plan: &Plan) -> [Case; 4] {
    [
        ("pods", "pods"),
        ("config maps", "configmaps"),
        ("custom resources", "custom"),
        ("secrets", "secrets"),
    ]
    .map(|(name, kind)| {
        let arguments = format!("--kind {kind} --pods {} --describe --line", plan.pods);
        Case {
            rounds: 1,
            ..Case::new(name, Program::Source, &arguments)
        }
    })
}

/// Returns the two cases that measure the memory of decoded pods without an informer: as bytes requested from
/// the allocator, and as resident memory. The runner measures each case only once.
fn floors(plan: &Plan) -> [Case; 2] {
    let asked = format!("--floor {}", plan.pods);
    [(FLOOR, ""), (FLOOR_RESIDENT, "--resident")].map(|(name, more)| Case {
        rounds: 1,
        ..Case::new(name, Program::Heap, &asked).with(more)
    })
}

/// Returns the name of the variant of the case `name` in which the server of generated objects sends `rate`
/// events per second.
pub(crate) fn at_rate(name: &str, rate: usize) -> String {
    format!("{name} at {rate}/s")
}

fn paced(plan: &Plan) -> Vec<Case> {
    let at = |rate| {
        // At the higher rate, the full plan's ten seconds of events include a garbage collection of
        // client-go. Two seconds of events may not include one.
        let events = plan.paced * rate;
        growing().into_iter().map(move |case| Case {
            name: at_rate(&case.name, rate),
            source: Some(plan.pods),
            ..case.with(&format!("--events {events} --rate {rate}"))
        })
    };
    RATES.into_iter().flat_map(at).collect()
}

/// Returns two cases with the arguments `arguments`: one runs the program `subject`, which measures the
/// informer of this project, and the other runs the client-go program. The names of the two cases end with
/// `what`.
fn both(what: &str, arguments: &str) -> [Case; 2] {
    [("ours", Program::Subject), ("client-go", Program::ClientGo)]
        .map(|(name, program)| Case::new(&format!("{name}, {what}"), program, arguments))
}

/// Returns the name of the variant of the case `name` in which the server of generated objects has `pods`
/// pods.
pub(crate) fn of_size(name: &str, pods: u32) -> String {
    format!("{name}, {pods} pods")
}

/// Returns the cases that the runner repeats at fixed event rates, and with increasing numbers of pods.
///
/// There are four cases: the informer of this project with each of its two cache formats, client-go, and
/// kube-rs. The caller adds the rate or the number of pods.
pub(crate) fn growing() -> Vec<Case> {
    let ours = STORES.map(|store| {
        let name = format!("ours, {store}");
        Case::new(&name, Program::Subject, &format!("--store {store}"))
    });
    let peers = [
        Case::new("client-go, protobuf", Program::ClientGo, ""),
        Case::new("kube-rs", Program::KubeRs, ""),
    ];
    ours.into_iter().chain(peers).collect()
}

fn scaled(plan: &Plan) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut before: Option<u32> = None;
    for &pods in plan.scale {
        cases.extend(growing().into_iter().map(|case| Case {
            name: of_size(&case.name, pods),
            source: Some(pods),
            rounds: 1,
            smaller: before.map(|before| (of_size(&case.name, before), pods.div_ceil(before))),
            ..case
        }));
        before = Some(pods);
    }
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn case_names_are_unique() {
        let cases = cases(&Plan::full(5, 50_000));
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
    }

    #[test]
    fn only_phases_of_the_selected_topics_are_measured() {
        let mut plan = Plan::full(5, 50_000);
        plan.topics = vec![Topic::Relist];
        let cases = cases(&plan);
        let relist = |case: &Case| case.arguments.ends_with(&["--relist".into(), "3".into()]);
        assert!(cases.iter().all(relist));
        let events = |case: &Case| case.arguments.contains(&"--events".into());
        assert!(!cases.iter().any(events));
        assert!(cases.iter().all(|case| case.source == Some(50_000)));
    }

    #[test]
    fn a_case_that_does_not_fit_into_memory_is_skipped_with_all_larger_ones() {
        let sizes = scaled(&Plan::full(1, 1));
        let case = |pods: u32| {
            let name = of_size("kube-rs", pods);
            let found = sizes.iter().find(|case| case.name == name);
            found.unwrap().clone()
        };
        let mut samples = Samples::default();
        assert!(case(10_000).has_room(&samples, 1.0));
        let name = of_size("kube-rs", 10_000);
        samples.add(&name, r#"{"peak_kib": 400}"#).unwrap();
        assert!(case(20_000).has_room(&samples, 900.0));
        assert!(!case(20_000).has_room(&samples, 880.0));
        assert!(!case(50_000).has_room(&samples, 1e6));
    }
}
