//! Compares the library's rate limiters with the rate limiters of client-go's `workqueue` package.
//!
//! The same random operations run on a limiter of the library and on a limiter of client-go. Delays are
//! compared in nanoseconds.

use std::time::Duration;

use harness::draw::Choose as _;
use kube_informer::workqueue::rate_limiter::{
    self, Bucket, ItemExponentialFailure, ItemFastSlow, MaxOf, RateLimiter, WithMaxWait,
};

use crate::{
    component::{Accepted, Component, Moment, nothing_more},
    draw::Draw,
    oracle::Version,
    planted::Bug,
    sequence::{Answer, Limiter, Operation, Sequence, Step},
};

/// Functions that generate, run and check test sequences for the rate limiters.
pub(crate) const COMPONENT: Component = Component {
    name: "rate_limiter",
    draw,
    versions: |_| &Version::ALL,
    replay,
    counterpart: None,
    behaviours: BEHAVIOURS,
    recognise,
    must_not: nothing_more,
};

/// Maximum accepted difference between the library's and client-go's delays, in nanoseconds.
///
/// client-go rounds the number of tokens in a token bucket, and the library does not. In 20,000 random
/// sequences, no delay differed by more than this maximum.
const ROUNDING: u64 = 1;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

const WHEN_NONE: &str = "When: no delay";
const WHEN_SOME: &str = "When: a delay";
const WHEN_MANY: &str = "When: more than 64 calls in a row";
const FORGET_FAILED: &str = "Forget of an item with failures";
const FORGET_OTHER: &str = "Forget of an item without failures";
const REQUEUES_NONE: &str = "NumRequeues returns zero";
const REQUEUES_SOME: &str = "NumRequeues returns more than zero";

const BEHAVIOURS: &[&str] = &[
    "when",
    "forget",
    "requeues",
    "pass",
    "exponential",
    "fast_slow",
    "bucket",
    "max_of",
    "max_wait",
    "controller_default",
    "item_based_default",
    WHEN_NONE,
    WHEN_SOME,
    WHEN_MANY,
    FORGET_FAILED,
    FORGET_OTHER,
    REQUEUES_NONE,
    REQUEUES_SOME,
];

fn draw(draw: &mut Draw) -> Sequence {
    let limiter = limiter(draw, 2);
    let verbs = [(30, "when"), (6, "forget"), (8, "requeues"), (12, "pass")];
    let length = draw.length();
    let operation = |draw: &mut Draw| {
        let operation = Operation::new(draw.weighted(&verbs));
        match operation.verb {
            "pass" => {
                let longest = *draw.one(&[
                    1000,
                    MILLISECOND,
                    100 * MILLISECOND,
                    2 * SECOND,
                    600 * SECOND,
                ]);
                operation.number(draw.number(1..=longest))
            }
            "when" if draw.chance(5) => {
                let times = draw.number(2..=160);
                operation.text(draw.key()).number(times)
            }
            _ => operation.text(draw.key()),
        }
    };
    let operations = (0..length).map(|_| operation(draw)).collect();
    Sequence {
        component: COMPONENT.name,
        flags: Vec::new(),
        limiter: Some(limiter),
        operations,
    }
}

/// Returns a random rate limiter with at most `depth` levels of nested limiters.
pub(crate) fn limiter(draw: &mut Draw, depth: u32) -> Limiter {
    let leaves = [
        (4, "exponential"),
        (3, "fast_slow"),
        (4, "bucket"),
        (1, "controller_default"),
        (1, "item_based_default"),
    ];
    let inner = [(3, "max_of"), (2, "max_wait")];
    let kinds = if depth == 0 {
        leaves.to_vec()
    } else {
        [leaves.as_slice(), &inner].concat()
    };
    let kind = draw.weighted(&kinds);
    let time = |draw: &mut Draw, longest: u64| {
        let longest = (*draw.one(&[1000, MILLISECOND, SECOND, 1000 * SECOND])).min(longest);
        // Zero is a valid time.
        if draw.chance(8) {
            0
        } else {
            draw.number(1..=longest)
        }
    };
    let within = |draw: &mut Draw, many: u64| (0..many).map(|_| limiter(draw, depth - 1)).collect();
    Limiter {
        kind,
        first: match kind {
            "bucket" if draw.chance(95) => SECOND / *draw.one(&[1, 3, 10, 50, 1000]),
            "bucket" => 0,
            "exponential" => not_power_of_two(time(draw, 10 * SECOND)),
            _ => time(draw, 10 * SECOND),
        },
        second: time(draw, u64::MAX),
        count: u32::try_from(draw.number(0..=20)).expect("it is less than 21"),
        inner: match kind {
            "max_of" => {
                let many = draw.number(1..=3);
                within(draw, many)
            }
            "max_wait" => within(draw, 1),
            _ => Vec::new(),
        },
    }
}

/// Returns `base`, or three times `base` if `base` is a power of two.
///
/// With a power of two, one of client-go's delays is 2^63 ns, which overflows to a negative delay on amd64.
/// client-go's overflow check misses this delay, because 2^63 and the largest `int64` are equal as floating
/// point numbers.
fn not_power_of_two(base: u64) -> u64 {
    if base.is_power_of_two() {
        3 * base
    } else {
        base
    }
}

fn recognise(moment: &Moment<'_>) -> Option<Accepted> {
    let nanoseconds = |answer: &Answer| answer.text()?.parse::<u64>().ok();
    let (our, their) = (nanoseconds(moment.our())?, nanoseconds(moment.their()?)?);
    let limiter = moment.sequence.limiter.as_ref()?;
    if moment.verb() != "when" {
        return None;
    }
    if has(limiter, is_empty_bucket) && our < their {
        return Some(Accepted::Here("a_bucket_without_a_burst"));
    }
    let rounded = has(limiter, is_bucket) && our.abs_diff(their) <= ROUNDING;
    rounded.then_some(Accepted::Here("a_bucket_does_not_round"))
}

fn is_bucket(limiter: &Limiter) -> bool {
    ["bucket", "controller_default"].contains(&limiter.kind)
}

fn is_empty_bucket(limiter: &Limiter) -> bool {
    limiter.kind == "bucket" && limiter.count == 0 && limiter.first > 0
}

/// Returns whether the limiter, or any limiter nested in it, satisfies the condition `such`.
fn has(limiter: &Limiter, such: fn(&Limiter) -> bool) -> bool {
    such(limiter) || limiter.inner.iter().any(|inner| has(inner, such))
}

/// A boxed rate limiter of any type.
pub(crate) type Dynamic = Box<dyn RateLimiter<String>>;

/// Builds the library's rate limiter from its description.
pub(crate) fn build(limiter: &Limiter) -> Dynamic {
    let (first, second) = (
        Duration::from_nanos(limiter.first),
        Duration::from_nanos(limiter.second),
    );
    match limiter.kind {
        "exponential" => Box::new(ItemExponentialFailure::new(first, second)),
        "fast_slow" => Box::new(ItemFastSlow::new(first, second, limiter.count)),
        "bucket" => Box::new(Bucket::every(first, limiter.count)),
        "max_of" => {
            let inner = limiter.inner.iter();
            Box::new(inner.fold(MaxOf::new(), |all, inner| all.with(Boxed(build(inner)))))
        }
        "max_wait" => Box::new(WithMaxWait::new(Boxed(build(&limiter.inner[0])), first)),
        "controller_default" => Box::new(rate_limiter::controller_default()),
        "item_based_default" => Box::new(rate_limiter::item_based_default()),
        other => unreachable!("{other} is not drawn"),
    }
}

/// A boxed `RateLimiter`, so that `MaxOf` can combine limiters of different types.
pub(crate) struct Boxed(pub(crate) Dynamic);

impl RateLimiter<String> for Boxed {
    fn when(&mut self, item: &String, now: Duration) -> Duration {
        self.0.when(item, now)
    }

    fn forget(&mut self, item: &String) {
        self.0.forget(item);
    }

    fn requeues(&self, item: &String) -> u32 {
        self.0.requeues(item)
    }
}

/// A rate limiter with the planted bug `ForgetIgnored`: its `forget` does nothing.
struct FaultyLimiter(Dynamic);

impl RateLimiter<String> for FaultyLimiter {
    fn when(&mut self, item: &String, now: Duration) -> Duration {
        self.0.when(item, now)
    }

    fn forget(&mut self, _: &String) {}

    fn requeues(&self, item: &String) -> u32 {
        self.0.requeues(item)
    }
}

fn replay(sequence: &Sequence, bug: Option<Bug>) -> Vec<Step> {
    let drawn = sequence
        .limiter
        .as_ref()
        .expect("a limiter is always drawn");
    let mut limiter = build(drawn);
    if bug.is_some() {
        limiter = Box::new(FaultyLimiter(limiter));
    }
    let mut now = Duration::ZERO;
    let operations = sequence.operations.iter();
    operations
        .map(|operation| step(&mut limiter, drawn.kind, &mut now, operation))
        .collect()
}

fn step(
    limiter: &mut Dynamic,
    kind: &'static str,
    now: &mut Duration,
    operation: &Operation,
) -> Step {
    let item = &operation.text;
    let mut seen = vec![kind];
    let answer = match operation.verb {
        "when" => {
            let times = operation.number.max(1);
            let mut delay = Duration::ZERO;
            for _ in 0..times {
                delay = limiter.when(item, *now);
            }
            seen.push(if delay.is_zero() {
                WHEN_NONE
            } else {
                WHEN_SOME
            });
            seen.extend((times > 64).then_some(WHEN_MANY));
            Answer::said(delay.as_nanos().to_string())
        }
        "forget" => {
            seen.push(if limiter.requeues(item) > 0 {
                FORGET_FAILED
            } else {
                FORGET_OTHER
            });
            limiter.forget(item);
            Answer::ok()
        }
        "requeues" => {
            let requeues = limiter.requeues(item);
            seen.push(if requeues > 0 {
                REQUEUES_SOME
            } else {
                REQUEUES_NONE
            });
            Answer::said(requeues.to_string())
        }
        "pass" => {
            *now += Duration::from_nanos(operation.number);
            Answer::ok()
        }
        other => unreachable!("{other} is not drawn for a rate limiter"),
    };
    Step { answer, seen }
}
