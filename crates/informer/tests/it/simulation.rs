//! Whole lives of an informer, drawn from a seed: changes and faults in any order, handlers that are
//! slow or late, either queue; then the faults end, and everything must come right.
//!
//! A seed fixes the server, the informer, the clock and the order of everything, so that a failing
//! one replays exactly: `cargo xtask simulate --seeds 17..18`.

mod history;
mod world;

use std::{collections::BTreeMap, panic::catch_unwind};

use self::world::World;

/// What happened in one life.
pub(crate) struct Outcome {
    /// Every request and every event that a handler heard, with the virtual time.
    trace: Vec<String>,
    /// How often each kind of step was taken.
    steps: BTreeMap<&'static str, usize>,
}

fn live(seed: u64) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async { World::new(seed).live().await })
}

/// `A..B` from the environment, which is how `cargo xtask simulate` says which seeds it wants.
fn seeds() -> std::ops::Range<u64> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only way to tell a test which seeds to run"
    )]
    let Ok(wanted) = std::env::var("SIMULATE_SEEDS") else {
        return 1..41;
    };
    let (from, to) = wanted.split_once("..").expect("SIMULATE_SEEDS is A..B");
    from.parse().unwrap()..to.parse().unwrap()
}

#[test]
fn after_any_faults_cache_and_histories_are_the_servers_state() {
    let seeds = seeds();
    let mut steps: BTreeMap<&str, usize> = BTreeMap::new();
    let mut failed = Vec::new();
    let count = seeds.end.saturating_sub(seeds.start);
    for seed in seeds {
        if let Ok(outcome) = catch_unwind(|| live(seed)) {
            for (step, times) in outcome.steps {
                *steps.entry(step).or_default() += times;
            }
        } else {
            let next = seed + 1;
            println!("seed {seed} failed; replay: cargo xtask simulate --seeds {seed}..{next}");
            failed.push(seed);
        }
    }
    for (step, times) in &steps {
        println!("{times:7} × {step}");
    }
    println!(
        "{} passed, {} failed",
        count - failed.len() as u64,
        failed.len()
    );
    assert_eq!(failed, [0; 0]);
}

#[test]
fn a_seed_lives_the_same_life_twice() {
    let is_long = |seed: &u64| live(*seed).trace.len() > 50;
    for seed in (1..).filter(is_long).take(2) {
        let (first, second) = (live(seed).trace, live(seed).trace);
        for (line, (a, b)) in first.iter().zip(&second).enumerate() {
            assert_eq!(a, b, "seed {seed}, line {line}");
        }
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
