//! Defines the performance goals, and calculates the value of each goal from the measured samples.

use crate::{
    case::{FLOOR, FLOOR_RESIDENT, KUBE_RS_AS_IT_COMES, KUBE_RS_PAGED, at_rate, in_json, of_size},
    plan::{RATES, Topic},
    samples::Samples,
};

const MIB_OF_KIB: f64 = 1.0 / 1024.0;

/// A cache format of this project's informer.
#[derive(Clone, Copy)]
enum Store {
    Packed,
    Typed,
}

impl Store {
    /// Returns the name of the case that requests protobuf.
    const fn case(self) -> &'static str {
        self.select("ours, packed", "ours, typed")
    }

    const fn select<T: Copy>(self, packed: T, typed: T) -> T {
        match self {
            Self::Packed => packed,
            Self::Typed => typed,
        }
    }
}

/// The limit for the value of a goal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    /// No limit: the table shows the value of the goal without a verdict.
    Shown,
}

impl Bound {
    pub(crate) fn is_reached(self, value: f64) -> Option<bool> {
        match self {
            Self::AtMost(limit) => Some(value <= limit),
            Self::AtLeast(limit) => Some(value >= limit),
            Self::Shown => None,
        }
    }
}

/// The formula that calculates the value of a goal from the medians of one or two measured cases.
#[derive(Clone, Debug)]
enum Value {
    /// Divides the median of the goal's case by the median of the case named `theirs`.
    Ratio { theirs: String },
    /// Multiplies the median of the goal's case by `factor`, which converts the unit.
    Alone { factor: f64 },
    /// Calculates the cost per additional handler: the difference between the medians with 64 handlers and
    /// with one handler, divided by 63. `one` is the name of the case with one handler.
    PerHandler { one: String },
}

/// A performance goal: a value that is calculated from the samples, and its limit.
#[derive(Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) topic: Topic,
    pub(crate) what: &'static str,
    /// Name of the measured case to which the goal applies.
    pub(crate) case: String,
    /// Name of the same case with JSON instead of protobuf. The table also shows the value for this case.
    ///
    /// `None` if `case` requests no objects from a server.
    json: Option<String>,
    field: &'static str,
    value: Value,
    pub(crate) bound: Bound,
}

impl Goal {
    fn ratio(
        (topic, what): (Topic, &'static str),
        (case, field): (&str, &'static str),
        theirs: &str,
        bound: Bound,
    ) -> Self {
        let (case, theirs) = (case.to_owned(), theirs.to_owned());
        let value = Value::Ratio { theirs };
        Self {
            topic,
            what,
            case,
            json: None,
            field,
            value,
            bound,
        }
    }

    fn alone(
        (topic, what): (Topic, &'static str),
        (case, field): (&str, &'static str),
        factor: f64,
        limit: f64,
    ) -> Self {
        Self {
            topic,
            what,
            case: case.to_owned(),
            json: None,
            field,
            value: Value::Alone { factor },
            bound: Bound::AtMost(limit),
        }
    }

    /// Adds the case that requests JSON.
    ///
    /// `ours` is the start of the goal's case name, such as `ours, packed`.
    fn with_json(mut self, ours: &str) -> Self {
        self.json = Some(self.case.replacen(ours, &in_json(ours), 1));
        self
    }

    /// Returns the name of the case to compare with, or an empty string.
    pub(crate) fn against(&self) -> &str {
        match &self.value {
            Value::Ratio { theirs } => theirs,
            Value::Alone { .. } => "",
            Value::PerHandler { one } => one,
        }
    }

    /// Calculates the value, or returns `None` if a measurement is missing or a divisor is zero.
    pub(crate) fn value(&self, samples: &Samples) -> Option<f64> {
        self.value_of(&self.case, samples)
    }

    /// Calculates the value of the goal for the case that requests JSON instead of protobuf.
    ///
    /// Returns `None` if the goal has no such case, a measurement is missing or a divisor is zero.
    pub(crate) fn value_in_json(&self, samples: &Samples) -> Option<f64> {
        self.value_of(self.json.as_ref()?, samples)
    }

    fn value_of(&self, case: &str, samples: &Samples) -> Option<f64> {
        let ours = samples.median(case, self.field)?;
        match &self.value {
            Value::Ratio { theirs } => {
                let theirs = samples.median(theirs, self.field)?;
                (theirs > 0.0).then(|| ours / theirs)
            }
            Value::Alone { factor } => Some(ours * factor),
            Value::PerHandler { one } => Some((ours - samples.median(one, self.field)?) / 63.0),
        }
    }
}

const PROTOBUF: &str = "client-go, protobuf";
const PROTOBUF_KEYS: &str = "client-go, protobuf, keys";
const KUBE_RS: &str = "kube-rs";

/// Returns all goals. In `BENCHMARKING.md`, the table of each topic has its goals in this order.
pub(crate) fn goals() -> Vec<Goal> {
    let mut goals = Vec::new();
    for store in [Store::Packed, Store::Typed] {
        let of_store = [
            of_sync(store),
            of_memory(store),
            of_events(store),
            of_relist(store),
            of_scale(store),
        ];
        let of_store = of_store.into_iter().flatten();
        goals.extend(of_store.map(|goal| goal.with_json(store.case())));
    }
    goals.extend(of_reads());
    goals.extend(of_parts());
    goals
}

fn of_sync(store: Store) -> Vec<Goal> {
    let at_most = |packed, typed| Bound::AtMost(store.select(packed, typed));
    let ours = store.case();
    let keys = format!("{ours}, keys");
    let wall = (Topic::Sync, "sync, wall");
    let cpu = (Topic::Sync, "sync, CPU");
    let (ours_s, ours_cpu_s) = ((ours, "sync_s"), (ours, "sync_cpu_s"));
    let keys_limit = at_most(0.1, 0.35);
    vec![
        Goal::ratio(wall, ours_s, PROTOBUF, at_most(0.2, 0.35)),
        Goal::ratio(wall, ours_s, KUBE_RS, Bound::AtMost(0.3)),
        Goal::ratio(wall, ours_s, KUBE_RS_PAGED, Bound::AtMost(0.3)),
        Goal::ratio(wall, ours_s, KUBE_RS_AS_IT_COMES, Bound::AtMost(0.3)),
        Goal::ratio(cpu, ours_cpu_s, PROTOBUF, at_most(0.2, 0.35)),
        Goal::ratio(wall, (&keys, "sync_s"), PROTOBUF_KEYS, keys_limit),
        Goal::ratio(cpu, (&keys, "sync_cpu_s"), PROTOBUF_KEYS, keys_limit),
    ]
}

/// Returns the memory goals of `store`.
///
/// For the typed store, the ratios to client-go and kube-rs have no limit. The table only shows them.
fn of_memory(store: Store) -> Vec<Goal> {
    let at_most = |limit| store.select(Bound::AtMost(limit), Bound::Shown);
    let ours = store.case();
    let steady = (Topic::Memory, "memory, steady");
    let peak = (Topic::Memory, "memory, peak");
    let mut goals = vec![
        Goal::ratio(steady, (ours, "steady_kib"), PROTOBUF, at_most(1.0 / 12.0)),
        Goal::ratio(steady, (ours, "steady_kib"), KUBE_RS, at_most(1.0 / 25.0)),
        Goal::ratio(peak, (ours, "peak_kib"), PROTOBUF, at_most(1.0 / 8.0)),
    ];
    goals.extend(match store {
        Store::Packed => vec![Goal::alone(
            (Topic::Memory, "memory, steady, MiB"),
            (ours, "steady_kib"),
            MIB_OF_KIB,
            60.0,
        )],
        Store::Typed => [FLOOR, FLOOR_RESIDENT]
            .map(|floor| Goal::ratio(steady, (ours, "steady_kib"), floor, Bound::AtMost(1.1)))
            .into(),
    });
    goals
}

fn of_events(store: Store) -> Vec<Goal> {
    let at_least = |packed, typed| Bound::AtLeast(store.select(packed, typed));
    let at_most = |packed, typed| Bound::AtMost(store.select(packed, typed));
    let ours = store.case();
    let keys = format!("{ours}, keys");
    let speed = (Topic::Events, "events/s");
    let cpu = (Topic::Events, "CPU per event");
    let median = (Topic::Events, "latency, p50");
    let tail = (Topic::Events, "latency, p99");
    let (per_second, per_event) = ("events_per_s", "cpu_us_per_event");
    let mut goals = vec![
        Goal::ratio(speed, (ours, per_second), PROTOBUF, at_least(4.0, 2.0)),
        Goal::ratio(cpu, (ours, per_event), PROTOBUF, at_most(0.25, 0.6)),
        Goal::ratio(
            speed,
            (&keys, per_second),
            PROTOBUF_KEYS,
            at_least(7.0, 4.0),
        ),
        Goal::ratio(cpu, (&keys, per_event), PROTOBUF_KEYS, at_most(0.12, 0.3)),
    ];
    for rate in RATES {
        let (paced, peer) = (at_rate(ours, rate), at_rate(PROTOBUF, rate));
        goals.extend([
            Goal::ratio(median, (&paced, "p50_us"), &peer, Bound::AtMost(1.0)),
            Goal::ratio(tail, (&paced, "p99_us"), &peer, Bound::AtMost(1.0)),
        ]);
    }
    goals
}

fn of_relist(store: Store) -> Vec<Goal> {
    use Bound::AtMost;
    let ours = store.case();
    let cpu = (Topic::Relist, "relist, CPU");
    let peak = (Topic::Relist, "relist, peak memory");
    vec![
        Goal::ratio(cpu, (ours, "relist_cpu_s"), PROTOBUF, AtMost(0.2)),
        Goal::ratio(peak, (ours, "relist_peak_kib"), PROTOBUF, AtMost(0.1)),
    ]
}

fn of_scale(store: Store) -> Vec<Goal> {
    let case = of_size(store.case(), 1_000_000);
    let (wall, memory) = ("sync, seconds", "memory, steady, MiB");
    vec![
        Goal::alone((Topic::Scale, wall), (&case, "sync_s"), 1.0, 15.0),
        Goal::alone(
            (Topic::Scale, memory),
            (&case, "steady_kib"),
            MIB_OF_KIB,
            800.0,
        ),
    ]
}

fn of_reads() -> Vec<Goal> {
    let mut goals = Vec::new();
    for readers in [0, 10, 20, 40, 80] {
        let [ours, theirs] = ["ours", "client-go"].map(|who| format!("{who}, {readers} readers"));
        let at_least = if readers == 0 { 1.0 } else { 100.0 };
        let writes = (Topic::Reads, "writes/s");
        let bound = Bound::AtLeast(at_least);
        goals.push(Goal::ratio(writes, (&ours, "writes_per_s"), &theirs, bound));
        if readers > 0 {
            let reads = (Topic::Reads, "reads/s");
            let bound = Bound::AtLeast(5.0);
            goals.push(Goal::ratio(reads, (&ours, "reads_per_s"), &theirs, bound));
        }
    }
    goals
}

fn of_parts() -> Vec<Goal> {
    let queue = (Topic::Queue, "work queue, add + get + done");
    let ours = ("ours, queue", "ns_per_item");
    vec![
        Goal::ratio(queue, ours, "client-go, queue", Bound::AtMost(0.5)),
        Goal {
            topic: Topic::Queue,
            what: "one handler more, ns per event",
            case: "ours, 64 handlers".to_owned(),
            json: None,
            field: "ns_per_event",
            value: Value::PerHandler {
                one: "ours, 1 handlers".to_owned(),
            },
            bound: Bound::AtMost(200.0),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{case::cases, plan::Plan};

    fn samples(lines: &[(&str, &str)]) -> Samples {
        let mut samples = Samples::default();
        for (case, line) in lines {
            samples.add(case, line).unwrap();
        }
        samples
    }

    fn value(what: &str, against: &str, samples: &Samples) -> Option<f64> {
        let mut rows = goals().into_iter();
        let row = rows.find(|goal| {
            goal.what == what && goal.against() == against && goal.value(samples).is_some()
        })?;
        row.value(samples)
    }

    #[test]
    fn a_ratio_is_our_median_divided_by_the_other() {
        let samples = samples(&[
            ("ours, typed", r#"{"sync_s": 3}"#),
            (PROTOBUF, r#"{"sync_s": 2}"#),
        ]);
        assert_eq!(value("sync, wall", PROTOBUF, &samples), Some(1.5));
        assert_eq!(value("sync, wall", KUBE_RS, &samples), None);
    }

    #[test]
    fn the_value_in_json_is_that_of_the_case_that_requests_json() {
        let samples = samples(&[
            ("ours, packed, JSON at 1000/s", r#"{"p99_us": 6}"#),
            ("client-go, protobuf at 1000/s", r#"{"p99_us": 4}"#),
            ("ours, packed, JSON, 1000000 pods", r#"{"sync_s": 20}"#),
        ]);
        let values = |what| -> Vec<_> {
            let goals = goals().into_iter().filter(|goal| goal.what == what);
            goals
                .filter_map(|goal| goal.value_in_json(&samples))
                .collect()
        };
        assert_eq!(values("latency, p99"), [1.5]);
        assert_eq!(values("sync, seconds"), [20.0]);
        assert_eq!(values("writes/s"), [0.0; 0]);
    }

    #[test]
    fn a_ratio_to_zero_has_no_value() {
        let samples = samples(&[
            ("ours, 10 readers", r#"{"writes_per_s": 3}"#),
            ("client-go, 10 readers", r#"{"writes_per_s": 0}"#),
        ]);
        assert_eq!(value("writes/s", "client-go, 10 readers", &samples), None);
    }

    #[test]
    fn the_cost_of_a_handler_is_the_difference_of_63_divided_by_63() {
        let samples = samples(&[
            ("ours, 1 handlers", r#"{"ns_per_event": 1000}"#),
            ("ours, 64 handlers", r#"{"ns_per_event": 7300}"#),
        ]);
        let what = "one handler more, ns per event";
        assert_eq!(value(what, "ours, 1 handlers", &samples), Some(100.0));
    }

    #[test]
    fn a_limit_includes_its_value() {
        assert_eq!(Bound::AtMost(0.5).is_reached(0.5), Some(true));
        assert_eq!(Bound::AtMost(0.5).is_reached(0.51), Some(false));
        assert_eq!(Bound::AtLeast(2.0).is_reached(2.0), Some(true));
        assert_eq!(Bound::AtLeast(2.0).is_reached(1.9), Some(false));
        assert_eq!(Bound::Shown.is_reached(1.0), None);
    }

    #[test]
    fn every_case_of_a_goal_is_measured() {
        let cases = cases(&Plan::full(5, 50_000));
        let measured = |name: &str| cases.iter().any(|case| case.name == name);
        for goal in goals() {
            assert!(measured(&goal.case), "{goal:?}");
            assert!(goal.json.as_deref().is_none_or(measured), "{goal:?}");
            let against = goal.against();
            assert!(against.is_empty() || measured(against), "{goal:?}");
        }
    }
}
