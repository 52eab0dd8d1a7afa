//! Moves long computations from an async task to the runtime's pool for blocking work, where they do not
//! delay other tasks.
//!
//! The module starts no threads outside this pool.

use std::panic::resume_unwind;

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::JoinSet,
};

/// Maximum result of [`width_here`], from which callers derive the number of parallel computations.
pub(crate) const WIDTH_MAX: usize = 8;

/// Minimum number of objects for which a computation is moved to the pool for blocking work.
///
/// A computation for fewer objects takes at most one or two milliseconds.
pub(crate) const OFFLOADED_MIN: usize = 500;

/// Runs a long computation on the runtime's pool for blocking work, and returns its result.
///
/// The future never completes if the runtime shuts down before the computation starts.
///
/// # Panics
/// Panics if the computation panics, with the same panic payload.
///
/// # Cancel safety
/// Dropping the future does not stop a computation that has started.
pub(crate) async fn offload<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(compute);
    match tasks.join_next().await {
        Some(Ok(computed)) => computed,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => std::future::pending().await,
    }
}

/// Runs `test` on a runtime with a paused clock, one worker thread and one thread for blocking work.
///
/// `test` receives a function that occupies the thread for blocking work until the [`Held`] is dropped.
#[cfg(test)]
pub(crate) fn with_held_pool(test: impl AsyncFnOnce(fn() -> Held)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(async { test(Held::new).await });
}

#[cfg(test)]
pub(crate) struct Held(
    #[expect(dead_code, reason = "dropping it ends the wait")] std::sync::mpsc::Sender<()>,
);

#[cfg(test)]
impl Held {
    fn new() -> Self {
        let (held, let_go) = std::sync::mpsc::channel();
        Handle::current().spawn_blocking(move || let_go.recv());
        Self(held)
    }
}

/// Drops a large value on the runtime's pool for blocking work.
///
/// Outside a runtime, drops the value on the calling thread.
pub(crate) fn drop_offloaded(garbage: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(garbage))),
        Err(_) => drop(garbage),
    }
}

/// Returns the number of other tasks that can run in parallel with the calling task, at most [`WIDTH_MAX`].
///
/// Returns 0 on a runtime with one thread, and outside a runtime.
pub(crate) fn width_here() -> usize {
    let width = Handle::try_current().map_or(0, |handle| match handle.runtime_flavor() {
        RuntimeFlavor::CurrentThread => 0,
        _ => handle.metrics().num_workers() - 1,
    });
    width.min(WIDTH_MAX)
}
