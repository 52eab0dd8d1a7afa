//! Work that takes long leaves the task that needs it: to the runtime's pool for blocking work.

use std::panic::resume_unwind;

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::JoinSet,
};

/// So many workers of the runtime are reckoned with beside the one of a task: more would only take turns with what
/// brings the work.
pub(crate) const WIDTH_MAX: usize = 8;

/// Objects from which on work on each of them is offloaded. It takes some microseconds an object, so that
/// fewer keep a thread for a millisecond or two; handing it over takes a twentieth of that.
pub(crate) const OFFLOADED_MIN: usize = 500;

/// Computes something on the runtime's pool for blocking work: for what keeps a thread for longer than the
/// other tasks of that thread can wait. Panics as the computation did, and waits for ever if the runtime
/// shuts down before it has begun.
///
/// # Cancel safety
/// Dropping the future does not end a computation that has begun: it runs to its end, and what it owns is
/// dropped there.
pub(crate) async fn offload<T: Send + 'static>(compute: impl FnOnce() -> T + Send + 'static) -> T {
    let mut tasks = JoinSet::new();
    tasks.spawn_blocking(compute);
    match tasks.join_next().await {
        Some(Ok(computed)) => computed,
        Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
        Some(Err(_)) | None => std::future::pending().await,
    }
}

/// Runs a test in paused time on one thread, with a pool of one thread for blocking work. The argument of
/// the test occupies that pool until its result is dropped.
#[cfg(test)]
pub(crate) fn with_held_pool(test: impl AsyncFnOnce(fn() -> Held)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .max_blocking_threads(1)
        .build();
    runtime.unwrap().block_on(async { test(Held::new).await });
}

/// Occupies the pool: offloaded work starts when this is dropped.
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

/// Drops something on the runtime's pool for blocking work, because it takes long; at once, where there is
/// no runtime.
pub(crate) fn drop_offloaded(garbage: impl Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(garbage))),
        Err(_) => drop(garbage),
    }
}

/// How much may go on beside a task of the runtime that this is called in, so that each of its threads has
/// something to do; nothing, if it has one.
pub(crate) fn width_here() -> usize {
    let width = Handle::try_current().map_or(0, |handle| match handle.runtime_flavor() {
        RuntimeFlavor::CurrentThread => 0,
        _ => handle.metrics().num_workers() - 1,
    });
    width.min(WIDTH_MAX)
}
