//! A queue of keys to be worked on, as controllers need it.
//!
//! What it guarantees:
//!
//! - **Fair**: items are handed out in the order in which they were added, unless an [`Order`] of
//!   your own says otherwise.
//! - **Stingy**: an item that is added several times before it is handed out is handed out once,
//!   and one that is added while it is being worked on is handed out once more afterwards.
//!   No item is ever in the hands of two workers at the same time.
//! - **Many producers and consumers**: every handle is a clone of the same queue, any number of
//!   tasks may add and any number may wait in [`get`](RateLimitingQueue::get), and no wake-up is
//!   lost, also when a waiting task is cancelled.
//! - **Shut-down**: after [`shut_down`](RateLimitingQueue::shut_down) nothing is accepted any
//!   more, what is left is handed out, then every worker is told the end;
//!   [`shut_down_with_drain`](RateLimitingQueue::shut_down_with_drain) moreover waits until the
//!   last item is done.
//! - **Nothing runs behind your back**: there is no task and no thread.
//!   The tasks waiting in `get` sleep until the earliest delayed item is due, so a queue that
//!   nobody waits on costs nothing and has nothing to be stopped.
//! - **Nothing is lost by a crash**: a worker that panics or is cancelled drops its [`Item`], which
//!   is then added again after the limiter's delay, and counted.
//!
//! # A worker
//!
//! ```
//! use kube_informer::workqueue::{RateLimitingQueue, rate_limiter};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! # async fn reconcile(key: &str) -> Result<(), &'static str> {
//! #     if key == "shop/broken" { Err("no such volume") } else { Ok(()) }
//! # }
//! let queue = RateLimitingQueue::<String>::new(rate_limiter::controller_default());
//! queue.add("shop/web".to_owned());
//! queue.add("shop/broken".to_owned());
//! queue.add("shop/web".to_owned()); // already waiting: still one item
//! assert_eq!(queue.len(), 2);
//!
//! # let mut verdicts = 0;
//! while let Some(item) = queue.get().await {
//!     match reconcile(item.key()).await {
//!         Ok(()) => item.forget(),
//!         Err(_) if item.requeues() < 5 => item.retry(),
//!         Err(_) => item.give_up(),
//!     }
//! #   verdicts += 1;
//! #   if verdicts == 7 { queue.shut_down() }
//! }
//! assert_eq!(queue.given_up_items(), 1);
//! # assert_eq!(verdicts, 7, "web once, broken at first and after each of five retries");
//! # }
//! ```
//!
//! # Where client-go's three queues are
//!
//! client-go's `Interface`, `DelayingInterface` and `RateLimitingInterface` are layers of one
//! handle here, [`RateLimitingQueue`]: a plain queue is one whose delays are not used.
//! The layers exist as plain structs under its lock, one per file, which know no waiting:
//! `queue` (what is queued, what is in work), `delaying_queue` (what will be queued, and when) and
//! `rate_limiting_queue` (the handle, its limiter and everything asynchronous).
//!
//! # What differs from client-go on purpose
//!
//! - `Done` is a verdict on the [`Item`], so it can't be forgotten, and can't be said of an item
//!   that was never handed out.
//! - A drain ends when nothing is queued and nothing is in work, not when nothing happens to be in
//!   work; it wakes all who wait for it; and workers are told the end only when no item can come
//!   back any more, so none is stranded.
//! - Adding with a delay never blocks, and delayed items can be looked at and cancelled.
//! - Both kinds of shut-down drop the delayed items at once.

pub use self::builder::Builder;
pub use self::item::Item;
pub use self::order::{Fifo, Order};
pub use self::rate_limiting_queue::RateLimitingQueue;

mod builder;
mod lookup;

mod hashed;
mod order;
pub mod rate_limiter;

mod queue;

mod delaying_queue;

mod item;
mod rate_limiting_queue;
mod shared;
mod timing;

#[cfg(test)]
mod tests;
