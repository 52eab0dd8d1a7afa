//! Generates simulated runs from seeds.
//!
//! A seed determines the settings, the changes, the faults and the user actions of a simulated run.

use std::{num::NonZeroUsize, time::Duration};

use fastrand::Rng;
use harness::draw::Choose as _;
use kube_informer::{InitialList, shared_informer::ListenerBuffer};

use crate::{
    fault::{FROZEN, Fault, Harm, THAWED},
    life::{
        Act, Change, End, Handler, Key, Life, NAMES, NAMESPACES, Queue, Scope, Setting, Step,
        Store, Written,
    },
};

/// Generates the simulated run of a seed; the same seed always yields the same run.
pub(crate) fn draw(seed: u64) -> Life {
    let mut drawing = Drawing {
        rng: Rng::with_seed(seed),
        value: 0,
    };
    let mut setting = drawing.setting();
    // Drawn last, so that the rest of a run does not depend on its encoding.
    setting.protobuf = Rng::with_seed(!seed).u8(..3) == 0;
    let mut steps = vec![Step::User(Act::Join(drawing.handler(true)))];
    let count = drawing.rng.usize(40..120);
    let mut thaw_at = None;
    while steps.len() < count {
        let step = drawing.step(&setting);
        if matches!(&step, Step::Fault(fault) if fault.name() == FROZEN) {
            thaw_at.get_or_insert(steps.len() + drawing.rng.usize(2..20));
        }
        steps.push(step);
        // While its watch is frozen, the informer receives no effects of other steps.
        if thaw_at.is_some_and(|at| steps.len() > at) {
            steps.push(Step::Fault(Fault::named(THAWED)));
            thaw_at = None;
        }
        if drawing.rng.u8(..4) > 0 {
            steps.push(Step::Pass(drawing.pause()));
        }
    }
    Life {
        seed,
        setting,
        steps: steps.into_iter().enumerate().collect(),
    }
}

struct Drawing {
    rng: Rng,
    /// Label value of the last generated object state, incremented so that all states differ.
    value: u32,
}

impl Drawing {
    fn setting(&mut self) -> Setting {
        let rng = &mut self.rng;
        let objects = (0..rng.usize(..8)).map(|_| key(rng)).collect();
        let rng = &mut self.rng;
        let seed = rng.u64(..);
        let store = *rng.one(&[Store::Typed, Store::Dynamic, Store::Metadata]);
        let form = rng.u8(..3);
        Setting {
            rng: seed,
            store,
            packed: (form == 0).then(|| rng.usize(8..32)),
            lazy: form == 1,
            protobuf: false,
            scope: match rng.u8(..4) {
                0 => Scope::TwoNamespaces,
                1 => Scope::Labelled,
                _ => Scope::Everywhere,
            },
            queue: if rng.bool() {
                Queue::DeltaFifo
            } else {
                Queue::InOrder(rng.usize(1..20))
            },
            capacity: if rng.bool() { rng.usize(1..10) } else { 2000 },
            // A streaming list is drawn more often, because it can end in the most ways.
            initial_list: match rng.u8(..6) {
                0 => InitialList::List,
                1 => InitialList::Pages,
                _ => InitialList::Streaming,
            },
            page_size: rng.bool().then(|| rng.u32(1..6)),
            resync: rng.u64(20..60),
            consistency: if rng.bool() { rng.u64(5..60) } else { 0 },
            watch_cache: (rng.u8(..4) > 0).then(|| rng.usize(4..64)),
            objects,
            end: match rng.u8(..10) {
                0 => End::Stop,
                1 => End::Kill,
                _ => End::Heal,
            },
        }
    }

    fn step(&mut self, setting: &Setting) -> Step {
        match self.rng.u8(..100) {
            0..50 => Step::Change(self.change()),
            50..80 => {
                let compares = setting.consistency > 0;
                Step::Fault(Fault::draw(&mut self.rng, |kind| {
                    kind.harm != Harm::Loses || compares
                }))
            }
            _ => Step::User(self.act()),
        }
    }

    fn change(&mut self) -> Change {
        match self.rng.u8(..50) {
            0..28 => Change::Write(self.written()),
            28..38 => Change::Delete(key(&mut self.rng)),
            38..43 => Change::Recreate(self.written()),
            43..48 => {
                let count = self.rng.usize(2..25);
                Change::Burst((0..count).map(|_| self.written()).collect())
            }
            _ => Change::DeleteNamespace(self.rng.usize(..NAMESPACES.len())),
        }
    }

    fn act(&mut self) -> Act {
        match self.rng.u8(..40) {
            0..10 => Act::Join(self.handler(false)),
            10..15 => Act::Leave(self.rng.usize(..8)),
            15..19 => Act::AddIndex,
            19..21 => Act::RemoveIndex,
            21..24 => Act::Restart {
                kill: self.rng.bool(),
            },
            24..34 => Act::WriteAndRead(self.written()),
            _ => Act::DeleteAndRead(key(&mut self.rng)),
        }
    }

    /// Selects random settings of an event handler. If `everything` is true, the handler has no filter.
    fn handler(&mut self, everything: bool) -> Handler {
        let rng = &mut self.rng;
        let resyncs = rng.bool();
        Handler {
            resync: if resyncs { rng.u64(1..60) } else { 0 },
            slow: if rng.bool() { rng.u64(..200) } else { 0 },
            panics: if rng.u8(..5) == 0 { rng.u32(2..10) } else { 0 },
            buffer: match rng.u8(..4) {
                0 => ListenerBuffer::Block(
                    NonZeroUsize::new(rng.usize(1..8)).unwrap_or(NonZeroUsize::MIN),
                ),
                1 => ListenerBuffer::Coalesce,
                _ => ListenerBuffer::Grow,
            },
            filtered: !everything && rng.u8(..4) == 0,
        }
    }

    fn written(&mut self) -> Written {
        self.value += 1;
        Written {
            key: key(&mut self.rng),
            value: self.value,
            web: self.rng.u8(..3) > 0,
        }
    }

    /// Selects the virtual time between two steps: usually at most 10 s, and rarely from 60 s to 400 s.
    fn pause(&mut self) -> Duration {
        if self.rng.u8(..30) == 0 {
            return Duration::from_secs(self.rng.u64(60..400));
        }
        let most = 10_u64.pow(self.rng.u32(0..5));
        Duration::from_millis(self.rng.u64(..=most))
    }
}

fn key(rng: &mut Rng) -> Key {
    Key {
        namespace: rng.usize(..NAMESPACES.len()),
        name: rng.usize(..NAMES),
    }
}
