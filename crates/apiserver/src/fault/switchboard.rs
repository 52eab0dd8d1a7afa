//! Stores the active fault rules of a server, and decides which rules affect each request.
//!
//! Guarantees:
//! - at most one rule replaces the response to a request by an error response or a connection reset. If
//!   several such rules match, the rule that was added first takes effect;
//! - other matching rules can delay this error response or reset, but do not change the body of the error
//!   response;
//! - a request that a rule affects counts toward the limits of the rule, even if the response body ends
//!   before the fault takes effect;
//! - every rule has its own random generator, so the random decisions of one rule do not change those of
//!   another.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::disturbance::Laid;
use super::edit::Framing;
use super::open_body::{OpenBodies, OpenBodyGuard};
use super::rule::{Action, Ending, ErrorResponse, Fault, FaultRule, Moment};
use crate::body::Body;
use crate::request_log::{LoggedRequest, Recorder};
use crate::route::Verb;

/// If at least this number of rules is stored, adding a rule first removes the rules that have reached their
/// request limit.
const USED_UP_MAX: usize = 1_000;

/// Duration for which the server refuses connections if the fault has no time limit: 30 years.
const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// The active faults of one server.
pub(crate) struct Switchboard {
    connections: watch::Sender<Connections>,
    rules: Mutex<Rules>,
    open: OpenBodies,
    /// Request log of the server, in which the switchboard records the effects of faults.
    requests: Arc<Recorder>,
}

/// Whether and until when a fault refuses connections to the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Connections {
    refused_until: Option<Instant>,
    /// Requested duration for which connections are refused. `None` means no limit.
    period: Option<Duration>,
}

struct Rules {
    seed: u64,
    /// Number of rules added since the seed was set or all rules were removed.
    since_seed: u64,
    last: u64,
    by_id: BTreeMap<u64, InForce>,
}

/// A rule, the number of requests that it still skips, and the number that it can still affect.
struct InForce {
    rule: FaultRule,
    skip: u64,
    left: Option<u64>,
    rng: fastrand::Rng,
}

/// The effect of the rules on one request: an optional replacement of the response, and a delay.
#[derive(Default)]
pub(crate) struct Verdict {
    pub(crate) answer: Option<Planned>,
    pub(crate) delay: Duration,
}

/// An error response or a connection reset, which the server sends instead of executing the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planned {
    ErrorResponse(ErrorResponse),
    Reset,
    NoStreaming,
}

// === impl Switchboard ===

impl Switchboard {
    pub(crate) fn new(seed: u64, requests: Arc<Recorder>) -> Switchboard {
        Switchboard {
            connections: watch::Sender::new(Connections::default()),
            rules: Mutex::new(Rules {
                seed,
                since_seed: 0,
                last: 0,
                by_id: BTreeMap::new(),
            }),
            open: OpenBodies::default(),
            requests,
        }
    }

    pub(crate) fn connections(&self) -> watch::Receiver<Connections> {
        self.connections.subscribe()
    }

    pub(crate) fn refuses(&self) -> bool {
        self.connections.borrow().refused_until().is_some()
    }

    pub(crate) fn refuse(&self, period: Option<Duration>) {
        self.connections.send_replace(Connections {
            refused_until: Some(Instant::now() + period.unwrap_or(FOREVER)),
            period,
        });
    }

    pub(crate) fn accept(&self) {
        self.connections.send_replace(Connections::default());
    }

    pub(crate) fn open(&self) -> &OpenBodies {
        &self.open
    }

    pub(crate) fn seed(&self, seed: u64) {
        let mut rules = self.rules.lock();
        (rules.seed, rules.since_seed) = (seed, 0);
    }

    /// Adds a rule and returns the id by which other methods identify the rule.
    pub(crate) fn add(&self, rule: FaultRule) -> u64 {
        self.rules.lock().add(rule)
    }

    /// Sets the number of requests that rule `id` affects from now on.
    pub(crate) fn set_times(&self, id: u64, times: u64) {
        if let Some(in_force) = self.rules.lock().by_id.get_mut(&id) {
            in_force.rule.times = Some(times);
            in_force.left = Some(times);
        }
    }

    /// Changes the fault of rule `id`, if the rule exists.
    pub(crate) fn refine(&self, id: u64, change: impl FnOnce(&mut Fault)) {
        if let Some(in_force) = self.rules.lock().by_id.get_mut(&id) {
            change(&mut in_force.rule.fault);
        }
    }

    /// Removes the rules for whose faults `which` returns true.
    pub(crate) fn remove(&self, which: impl Fn(&Fault) -> bool) {
        let mut rules = self.rules.lock();
        rules
            .by_id
            .retain(|_, in_force| !which(&in_force.rule.fault));
    }

    /// Removes all rules, ends the effects of faults on unfinished response bodies, and accepts connections
    /// again.
    pub(crate) fn clear(&self) {
        let mut rules = self.rules.lock();
        rules.by_id.clear();
        rules.since_seed = 0;
        drop(rules);
        self.accept();
        self.open.release();
    }

    /// Determines which rules replace or delay the response to `request`, and records their faults in the
    /// request log.
    pub(crate) fn judge(&self, request: &LoggedRequest) -> Verdict {
        let mut verdict = Verdict::default();
        let mut rules = self.rules.lock();
        for in_force in rules.by_id.values_mut() {
            let (answers, delay) = match &in_force.rule.fault {
                Fault::Delay(Moment::Answer, period) => (false, *period),
                fault if fault.is_answer() && verdict.answer.is_none() => (true, Duration::ZERO),
                _ => continue,
            };
            if !in_force.hits(request) {
                continue;
            }
            verdict.delay = verdict.delay.saturating_add(delay);
            let hit = in_force.rule.fault.to_string();
            self.requests.hit(request.sequence, &hit);
            if answers {
                verdict.answer = match in_force.rule.fault {
                    Fault::Answer(refusal) => Some(Planned::ErrorResponse(refusal)),
                    Fault::RefuseStreaming => Some(Planned::NoStreaming),
                    _ => Some(Planned::Reset),
                };
            }
        }
        verdict
    }

    /// Registers a response body, so that the actions of fault plans, such as `cut watch pods`, can end or
    /// freeze the body.
    ///
    /// Dropping the returned guard removes the registration.
    ///
    /// For a watch, the caller must hold the lock of the server's state during two steps: this call, and
    /// adding the watch to the watch cache. Otherwise an action between the steps could end only the body or
    /// only the watch.
    pub(crate) fn hold(&self, request: &Arc<LoggedRequest>) -> OpenBodyGuard {
        self.open.enter(&self.requests, request)
    }

    /// Applies the faults of the matching rules to the body of a watch.
    ///
    /// `held` is the registration of the body, which [`Switchboard::hold`] returned.
    pub(crate) fn disturb_watch(&self, held: OpenBodyGuard, body: Body, framing: Framing) -> Body {
        let laid = self.lay(held.request());
        held.disturb(body, laid, framing)
    }

    /// Applies the faults of the matching rules to a response body that is not the body of a watch.
    ///
    /// Returns the body of a watch unchanged, because [`Switchboard::disturb_watch`] applies its faults.
    pub(crate) fn disturb(
        &self,
        request: &Arc<LoggedRequest>,
        body: Body,
        framing: Framing,
    ) -> Body {
        // `disturb_watch` has already applied the faults.
        if request.verb == Verb::Watch {
            return body;
        }
        let laid = self.lay(request);
        if laid.is_empty() {
            return body;
        }
        self.hold(request).disturb(body, laid, framing)
    }

    /// Returns the faults that the matching rules apply to the response body of `request`.
    ///
    /// Counts the request in the counters of these rules.
    pub(crate) fn lay(&self, request: &LoggedRequest) -> Vec<Laid> {
        let mut rules = self.rules.lock();
        let for_bodies = rules.by_id.values_mut().filter(|in_force| {
            let fault = &in_force.rule.fault;
            !fault.is_answer() && !matches!(fault, Fault::Delay(Moment::Answer, _))
        });
        for_bodies
            .filter_map(|in_force| {
                in_force
                    .hits(request)
                    .then(|| Laid::new(&in_force.rule.fault, in_force.rng.fork()))
            })
            .collect()
    }

    /// Returns a fault plan with the current seed, the rules, the `freeze` actions in effect, and the refusal
    /// of connections.
    pub(crate) fn plan(&self) -> String {
        let rules = self.rules.lock();
        let mut plan = format!("seed {}\n", rules.seed);
        for in_force in rules.by_id.values() {
            let left = match in_force.left {
                Some(0) => "  # used up".to_owned(),
                Some(left) if in_force.rule.times != Some(left) => format!("  # {left} left"),
                _ => String::new(),
            };
            let _ = writeln!(plan, "{}{left}", in_force.rule);
        }
        drop(rules);
        for frozen in self.open.frozen() {
            let _ = writeln!(plan, "{}", Action::End(Ending::Freeze, frozen));
        }
        let connections = *self.connections.borrow();
        if connections.refused_until().is_some() {
            let _ = writeln!(plan, "{}", Action::Refuse(connections.period));
        }
        plan
    }
}

// === impl Connections ===

impl Connections {
    /// Returns the time until which connections are refused, or `None` if connections are accepted.
    pub(crate) fn refused_until(&self) -> Option<Instant> {
        self.refused_until.filter(|until| *until > Instant::now())
    }
}

// === impl Rules ===

impl Rules {
    fn add(&mut self, rule: FaultRule) -> u64 {
        if self.by_id.len() >= USED_UP_MAX {
            self.by_id.retain(|_, in_force| in_force.left != Some(0));
        }
        self.since_seed += 1;
        self.last += 1;
        // The odd factor spreads neighbouring numbers over all bits (Knuth's multiplicative hashing).
        let seed = self.seed ^ self.since_seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let in_force = InForce {
            skip: rule.skip,
            left: rule.times,
            rng: fastrand::Rng::with_seed(seed),
            rule,
        };
        self.by_id.insert(self.last, in_force);
        self.last
    }
}

// === impl InForce ===

impl InForce {
    /// Returns whether the rule affects the request, and updates the rule's counters.
    fn hits(&mut self, request: &LoggedRequest) -> bool {
        let concerned = self.left != Some(0)
            && self.rule.matches.matches(request)
            && self.rule.fault.fits(request);
        if !concerned {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        if !self.rule.chance.draw(&mut self.rng) {
            return false;
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
        }
        true
    }
}
