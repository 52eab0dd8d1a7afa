//! Calls a function for each of several items in parallel, on one thread per available processor.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use parking_lot::Mutex;

/// Calls `run` for the items in parallel, on one thread per available processor.
///
/// The calls start in the order of the items. `take` receives one result at a time, in any order. After
/// `take` returns [`ControlFlow::Break`], each thread stops after its current item, and `take` still receives
/// the results of these items.
pub fn run_each<T: Sync, R>(
    items: &[T],
    run: impl Fn(&T) -> R + Sync,
    take: impl FnMut(&T, R) -> ControlFlow<()> + Send,
) {
    let next = AtomicUsize::new(0);
    let ended = AtomicBool::new(false);
    let take = Mutex::new(take);
    let work = || {
        while !ended.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let result = run(item);
            if (take.lock())(item, result).is_break() {
                ended.store(true, Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_runs_once() {
        let items: Vec<_> = (0..100).collect();
        let mut results = Vec::new();
        run_each(
            &items,
            |item| item * 2,
            |item, result| {
                results.push((*item, result));
                ControlFlow::Continue(())
            },
        );
        results.sort_unstable();
        let expected: Vec<_> = items.iter().map(|item| (*item, item * 2)).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn no_run_begins_after_the_first_break() {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let mut taken = 0;
        run_each(
            &[(); 1000],
            |()| (),
            |(), ()| {
                taken += 1;
                ControlFlow::Break(())
            },
        );
        assert!(taken <= threads, "{taken} runs on {threads} threads");
    }
}
