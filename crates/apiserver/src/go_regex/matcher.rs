//! Matches texts with an automaton, in time linear in the text.

use std::fmt;
use std::ops::Range;
use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::Input;
use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::NFA;
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::util::pool::Pool;
use regex_automata::util::primitives::NonMaxUsize;

/// Memory in bytes above which a thread forgets the states that it has determined.
const CACHE_BYTES_MAX: usize = 2 << 20;

type Caches<T> = Pool<T, Box<dyn Fn() -> T + Send + Sync + UnwindSafe + RefUnwindSafe>>;

/// Determines states while it matches. Simulates the automaton if this takes too many states.
pub(super) struct Matcher {
    dfa: Option<(DFA, Caches<dfa::Cache>)>,
    vm: PikeVM,
    vm_caches: Caches<pikevm::Cache>,
}

impl fmt::Debug for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let states = self.vm.get_nfa().states().len();
        f.debug_struct("Matcher")
            .field("states", &states)
            .finish_non_exhaustive()
    }
}

impl Matcher {
    pub(super) fn new(nfa: NFA) -> Option<Matcher> {
        let config = DFA::config()
            .cache_capacity(CACHE_BYTES_MAX)
            .skip_cache_capacity_check(true)
            // The values of `regex`: give up when states are forgotten for the fourth time, unless each of
            // them was used for 10 bytes.
            .minimum_cache_clear_count(Some(3))
            .minimum_bytes_per_state(Some(10));
        let dfa = DFA::builder()
            .configure(config)
            .build_from_nfa(nfa.clone())
            .ok();
        let vm = PikeVM::new_from_nfa(nfa).ok()?;
        let dfa = dfa.map(|dfa| {
            let for_caches = dfa.clone();
            (
                dfa,
                Pool::new(Box::new(move || for_caches.create_cache()) as Box<_>),
            )
        });
        let for_caches = vm.clone();
        let vm_caches: Caches<_> = Pool::new(Box::new(move || for_caches.create_cache()));
        Some(Matcher { dfa, vm, vm_caches })
    }

    pub(super) fn automaton_bytes(&self) -> usize {
        self.vm.get_nfa().memory_usage()
    }

    /// Returns the range of the first match that starts at or after `from`.
    pub(super) fn find_at(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let mut slots = [None; 2];
        let input = Input::new(text).range(from..);
        let vm = &self.vm;
        vm.search_slots(&mut self.vm_caches.get(), &input, &mut slots)?;
        let [start, end] = slots.map(|slot| slot.map(NonMaxUsize::get));
        Some(start?..end?)
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        if let Some((dfa, caches)) = &self.dfa
            && let Ok(found) = dfa.try_search_fwd(&mut caches.get(), &input)
        {
            return found.is_some();
        }
        self.vm.is_match(&mut self.vm_caches.get(), input)
    }
}
