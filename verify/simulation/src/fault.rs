//! Defines the faults that simulated runs inject into the server, and the permitted recovery times.
//!
//! The table [`KINDS`] contains all kinds of faults. A kind has a fault plan, which the server executes. A
//! kind also has a recovery time. After all faults have ended, the informer must recover within this time.

use std::time::Duration;

use fastrand::Rng;

/// Maximum recovery time, in seconds, if the informer backs off once.
///
/// A backoff pause lasts at most 30 s without jitter, and jitter at most doubles the pause.
const ONE_PAUSE: u64 = 60;

/// Maximum number of seconds by which the fault "answers delayed" delays a response.
///
/// The recovery time of this fault includes the delay, because a delayed error response can arrive after all
/// faults have ended.
const DELAY_MAX: u32 = 20;

/// Name of the fault after which the open watches send nothing until the fault [`THAWED`].
pub(crate) const FROZEN: &str = "watch frozen";

/// Name of the fault after which watches frozen by [`FROZEN`] continue, without loss of events.
pub(crate) const THAWED: &str = "watch thawed";

/// Name of the fault that sends the current state of an object again.
///
/// The state's revision is older than the newest revision that the watch has reported.
pub(crate) const OLD_OBJECT: &str = "old object sent again";

/// Maximum recovery time, in seconds, after two consecutive failures.
///
/// For example, a watch is rejected, and its revision has expired when the informer retries.
const TWO_PAUSES: u64 = 2 * ONE_PAUSE;

#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Name of the kind of fault in printed runs and in coverage counts.
    pub(crate) name: &'static str,
    /// Maximum seconds from the end of all faults until the cache equals the server's state.
    pub(crate) heals_within: u64,
    pub(crate) harm: Harm,
    /// Returns a random fault plan of this kind.
    pub(crate) draw: fn(&mut Rng) -> String,
}

/// Effect of a fault on the events that an informer receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// The server sends only correct events, in the correct order.
    None,
    /// The server sends a wrong or repeated event.
    ///
    /// The informer must recover even without the consistency check, which compares the cache with the
    /// server.
    Lies,
    /// The server drops or reorders events.
    ///
    /// The informer recovers only with the consistency check.
    Loses,
    /// The server is restored to an older state and a lower revision.
    PutsBack,
}

/// A fault that a simulated run injects.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    kind: usize,
    /// The fault plan that the server executes, in the server's text format.
    pub(crate) plan: String,
}

impl Fault {
    /// Draws a fault of a random kind for which `is_used` returns `true`.
    pub(crate) fn draw(rng: &mut Rng, is_used: impl Fn(&Kind) -> bool) -> Self {
        loop {
            let kind = rng.usize(..KINDS.len());
            if is_used(&KINDS[kind]) {
                let plan = (KINDS[kind].draw)(rng);
                return Self { kind, plan };
            }
        }
    }

    /// Returns a fault of the kind `name`, with the same plan in every call.
    ///
    /// # Panics
    /// Panics if no kind has this name.
    pub(crate) fn named(name: &str) -> Self {
        let kind = KINDS.iter().position(|kind| kind.name == name);
        let kind = kind.expect("a kind of that name");
        let plan = (KINDS[kind].draw)(&mut Rng::with_seed(0));
        Self { kind, plan }
    }

    fn kind(&self) -> &'static Kind {
        &KINDS[self.kind]
    }

    pub(crate) fn name(&self) -> &'static str {
        self.kind().name
    }

    pub(crate) fn harm(&self) -> Harm {
        self.kind().harm
    }

    /// Returns the last number in the text [`plan`](Self::plan), such as 7 in `restart back 7`.
    ///
    /// Returns 0 if the text contains no number.
    pub(crate) fn figure(&self) -> u64 {
        let mut words = self.plan.split_whitespace().rev();
        words.find_map(|word| word.parse().ok()).unwrap_or_default()
    }

    pub(crate) fn heals_within(&self) -> Duration {
        Duration::from_secs(self.kind().heals_within)
    }
}

/// Fault plan that makes the informer list again.
const LIST: &str = "expire history; cut watch pods";

/// Maximum recovery time, in seconds, of an informer that does not back off.
const AT_ONCE: u64 = 1;

const fn kind(name: &'static str, heals_within: u64, draw: fn(&mut Rng) -> String) -> Kind {
    Kind {
        name,
        heals_within,
        harm: Harm::None,
        draw,
    }
}

const fn harmful(harm: Harm, kind: Kind) -> Kind {
    Kind { harm, ..kind }
}

/// Number of requests that a fault affects if the fault must last until all faults are cleared.
///
/// The number is never reached, because an informer sends fewer requests until then.
const WITHOUT_END: u32 = 60;

/// All kinds of faults.
///
/// The recovery time of most kinds includes one backoff pause. Such a fault can end a watch before the watch
/// sends an event, and the informer then backs off.
pub(crate) const KINDS: [Kind; 36] = [
    kind("watch cut", ONE_PAUSE, |_| "cut watch pods".to_owned()),
    kind("watch cut at a byte", ONE_PAUSE, |rng| {
        let (bytes, times) = (rng.u32(..600), rng.u32(1..4));
        format!("watch pods: cut after {bytes} bytes x{times}; cut watch pods")
    }),
    // The informer must also recover if the failure repeats until all faults end.
    kind("every watch cut", ONE_PAUSE, |rng| {
        let bytes = rng.u32(..300);
        format!("watch pods: cut after {bytes} bytes x{WITHOUT_END}; cut watch pods")
    }),
    kind("watch broken", ONE_PAUSE, |_| "break watch pods".to_owned()),
    kind("watch broken at a byte", ONE_PAUSE, |rng| {
        let (bytes, times) = (rng.u32(..600), rng.u32(1..4));
        format!("watch pods: break after {bytes} bytes x{times}; cut watch pods")
    }),
    kind("list cut at a byte", ONE_PAUSE, |rng| {
        let (bytes, times) = (rng.u32(..2000), rng.u32(1..3));
        format!("list pods: cut after {bytes} bytes x{times}; {LIST}")
    }),
    kind(FROZEN, ONE_PAUSE, |_| "freeze watch pods".to_owned()),
    kind(THAWED, AT_ONCE, |_| "thaw watch pods".to_owned()),
    kind("events delayed", ONE_PAUSE, |rng| {
        let (pause, times) = (rng.u32(1..2000), rng.u32(1..3));
        format!("watch pods: delay each event {pause}ms x{times}; cut watch pods")
    }),
    kind("answers delayed", ONE_PAUSE + DELAY_MAX as u64, |rng| {
        let (pause, times) = (rng.u32(1..=DELAY_MAX), rng.u32(1..4));
        format!("* pods: delay {pause}s x{times}; cut watch pods")
    }),
    kind("body split", AT_ONCE, |_| {
        "* pods: split randomly x4; cut watch pods".to_owned()
    }),
    kind("reader too slow", ONE_PAUSE, |_| {
        "close watch pods".to_owned()
    }),
    kind("list 410", ONE_PAUSE, |rng| {
        format!("list pods: 410 x{}; {LIST}", rng.u32(1..4))
    }),
    kind("watch 410", ONE_PAUSE, |rng| {
        format!("watch pods: 410 x{}; cut watch pods", rng.u32(1..4))
    }),
    kind("every watch 410", ONE_PAUSE, |_| {
        format!("watch pods: 410 x{WITHOUT_END}; cut watch pods")
    }),
    kind("history expired", ONE_PAUSE, |_| {
        "expire history".to_owned()
    }),
    kind("history expired and watch cut", ONE_PAUSE, |_| {
        LIST.to_owned()
    }),
    kind("continue token expired", ONE_PAUSE, |_| {
        format!("list pods: 410 skip=1 x1; {LIST}")
    }),
    kind("429", TWO_PAUSES, |rng| {
        let (pause, times) = (rng.u32(1..30), rng.u32(1..4));
        format!("* pods: 429 retry-after={pause} x{times}; cut watch pods")
    }),
    kind("429 in words", TWO_PAUSES, |rng| {
        format!("* pods: 429 plain x{}; cut watch pods", rng.u32(1..4))
    }),
    kind("500", ONE_PAUSE, |rng| {
        format!("* pods: 500 x{}; {LIST}", rng.u32(1..5))
    }),
    // Failures after which a watch keeps its revision.
    kind("temporarily rejected", ONE_PAUSE, |rng| {
        let code = [401, 502, 503, 504][rng.usize(..4)];
        format!("* pods: {code} x{}; cut watch pods", rng.u32(1..5))
    }),
    kind("revision too large", ONE_PAUSE, |rng| {
        format!("* pods: 504 too-large x{}; {LIST}", rng.u32(1..4))
    }),
    kind("restart", ONE_PAUSE, |_| "restart".to_owned()),
    kind("connections refused", ONE_PAUSE, |rng| {
        format!(
            "refuse connections for {}s; break watch pods",
            rng.u32(1..90)
        )
    }),
    kind("connection reset", ONE_PAUSE, |rng| {
        format!("* pods: reset x{}; cut watch pods", rng.u32(1..4))
    }),
    kind("streaming lists refused", ONE_PAUSE, |rng| {
        format!("watch pods: refuse streaming x{}; {LIST}", rng.u32(1..4))
    }),
    kind("end of a streaming list lost", ONE_PAUSE, |rng| {
        format!("watch pods: drop end-bookmark x{}; {LIST}", rng.u32(2..5))
    }),
    kind("bookmarks lost", ONE_PAUSE, |_| {
        "watch pods: drop bookmarks x2; cut watch pods".to_owned()
    }),
    harmful(
        Harm::Lies,
        kind("garbage", ONE_PAUSE, |rng| {
            let edit = ["garble", "retype"][rng.usize(..2)];
            let (event, times) = (rng.u32(1..3), rng.u32(1..4));
            format!("watch pods: {edit} event {event} x{times}; cut watch pods")
        }),
    ),
    harmful(
        Harm::Lies,
        kind("event sent twice", ONE_PAUSE, |rng| {
            format!(
                "watch pods: duplicate event {} x1; cut watch pods",
                rng.u32(1..4)
            )
        }),
    ),
    // The plan is created when the fault starts, because it contains a cached object.
    harmful(Harm::Lies, kind(OLD_OBJECT, ONE_PAUSE, |_| String::new())),
    // The object is correct again once its next state arrives.
    harmful(
        Harm::Lies,
        kind("undecodable object", ONE_PAUSE, |rng| {
            format!(
                "watch pods: spoil event {} x1; cut watch pods",
                rng.u32(1..4)
            )
        }),
    ),
    // Recovery needs up to two comparisons, because the first may already be running, and one list.
    harmful(
        Harm::Loses,
        kind("event lost", TWO_PAUSES, |rng| {
            let (event, times) = (rng.u32(1..3), rng.u32(1..4));
            format!("watch pods: drop event {event} x{times}; cut watch pods")
        }),
    ),
    // A watch may end between two comparisons, so recovery takes as long as after a lost event.
    harmful(
        Harm::Loses,
        kind("events swapped", TWO_PAUSES, |rng| {
            let (event, times) = (rng.u32(1..3), rng.u32(1..4));
            format!("watch pods: swap event {event} x{times}; cut watch pods")
        }),
    ),
    // A pending watch ends one pause later, and a server is probed at most once a minute.
    harmful(
        Harm::PutsBack,
        kind("server restored to an older state", TWO_PAUSES, |rng| {
            format!("restart back {}", rng.u32(1..12))
        }),
    ),
];
