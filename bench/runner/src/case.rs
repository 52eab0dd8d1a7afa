//! Defines the measured cases. A case is a program with its arguments, and has a name that the tables and the
//! performance goals refer to.

use crate::{
    plan::{Plan, RATES, Topic},
    samples::Samples,
};

/// Cache formats of this project's informer, as values of the flag `--store`.
const STORES: [&str; 2] = ["packed", "typed"];

/// Returns the name of the case that requests JSON. For example, `ours, packed` becomes `ours, packed, JSON`.
pub(crate) fn in_json(ours: &str) -> String {
    format!("{ours}, JSON")
}

/// Name of the case in which kube-rs requests its initial list in pages, as by default.
pub(crate) const KUBE_RS_PAGED: &str = "kube-rs, lists in pages";

/// Name of the case in which kube-rs uses all its defaults: paged lists, system allocator.
pub(crate) const KUBE_RS_AS_IT_COMES: &str = "kube-rs, as it comes";

/// Name of the case that measures the allocated bytes of decoded pods, without an informer.
pub(crate) const FLOOR: &str = "floor of the types";

/// Name of the case that measures the resident memory of decoded pods, without an informer.
pub(crate) const FLOOR_RESIDENT: &str = "floor of the types, resident";

/// A benchmark program. Rust programs use jemalloc unless the variant ends with `System`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Subject,
    SubjectSystem,
    ClientGo,
    KubeRs,
    KubeRsSystem,
    /// Measures the memory of decoded objects without an informer.
    Heap,
    /// Prints the sizes of generated objects.
    Source,
}

/// One measurement: a program with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) program: Program,
    pub(crate) arguments: Vec<String>,
    /// Number of pods on the server that the runner starts for this case, or `None` to start no server.
    pub(crate) source: Option<u32>,
    /// Maximum number of times that the runner measures this case.
    pub(crate) rounds: usize,
    /// Name of the same case with fewer pods, from which [`has_room`](Self::has_room) estimates the memory.
    ///
    /// The number is the ratio of the two numbers of pods, rounded up. `None` if this case always runs.
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

    /// Returns whether this case is expected to need less than 90 % of `available_kib`.
    pub(crate) fn has_room(&self, samples: &Samples, available_kib: f64) -> bool {
        let Some((smaller, times)) = &self.smaller else {
            return true;
        };
        let peak = samples.median(smaller, "peak_kib");
        // A tenth is reserved for the source and the rest of the machine.
        peak.is_some_and(|peak| peak * f64::from(*times) < 0.9 * available_kib)
    }
}

/// Returns the cases that `plan` selects by [`Topic`], in the order of measurement.
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

/// Returns the cases in which an informer lists and watches generated pods.
fn observed(plan: &Plan) -> Vec<Case> {
    let ours = of_this_project().into_iter().flat_map(|case| {
        let keys = Case {
            name: format!("{}, keys", case.name),
            ..case.clone().with("--handler keys")
        };
        [case, keys]
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

/// Returns one case per kind of generated object. Each case prints the mean size of the objects.
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
            // Every measurement has the same result.
            rounds: 1,
            ..Case::new(name, Program::Source, &arguments)
        }
    })
}

fn floors(plan: &Plan) -> [Case; 2] {
    let asked = format!("--floor {}", plan.pods);
    [(FLOOR, ""), (FLOOR_RESIDENT, "--resident")].map(|(name, more)| Case {
        rounds: 1,
        ..Case::new(name, Program::Heap, &asked).with(more)
    })
}

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

/// Returns a case for this project's informer and a case for client-go, with equal arguments.
fn both(what: &str, arguments: &str) -> [Case; 2] {
    [("ours", Program::Subject), ("client-go", Program::ClientGo)]
        .map(|(name, program)| Case::new(&format!("{name}, {what}"), program, arguments))
}

pub(crate) fn of_size(name: &str, pods: u32) -> String {
    format!("{name}, {pods} pods")
}

/// For each store in [`STORES`], returns a case that requests protobuf and a case that requests JSON.
fn of_this_project() -> Vec<Case> {
    let of = |store| {
        let (name, arguments) = (format!("ours, {store}"), format!("--store {store}"));
        let case = Case::new(&name, Program::Subject, &arguments);
        let json = Case {
            name: in_json(&name),
            ..case.clone().with("--encoding json")
        };
        [case, json]
    };
    STORES.into_iter().flat_map(of).collect()
}

/// Returns the cases that are measured at several event rates and numbers of pods.
///
/// The caller adds the event rate or the number of pods.
pub(crate) fn growing() -> Vec<Case> {
    let peers = [
        Case::new("client-go, protobuf", Program::ClientGo, ""),
        Case::new("kube-rs", Program::KubeRs, ""),
    ];
    of_this_project().into_iter().chain(peers).collect()
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
