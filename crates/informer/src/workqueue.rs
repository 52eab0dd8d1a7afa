//! A queue of keys for controllers, with delays and rate limits.
//!
//! It guarantees:
//!
//! - **Fairness**: items are processed in the order in which they were added, unless you set an [`Order`].
//! - **Deduplication**: an item that is added several times before it is processed is processed once. An item that
//!   is added while it is being processed is processed once more afterwards. No two workers process the same item at
//!   the same time.
//! - **Many producers and consumers**: every handle is a clone of the same queue. Any number of tasks may add
//!   items and wait in [`get`](RateLimitingQueue::get). No wake-up is lost when a waiting task is cancelled.
//! - **Shut-down**: after [`shut_down`](RateLimitingQueue::shut_down) the queue accepts no items. Workers
//!   receive the remaining items, and then `None`.
//!   [`shut_down_with_drain`](RateLimitingQueue::shut_down_with_drain) also waits until the last item is
//!   done.
//! - **No background work**: the queue has no task and no thread. Tasks that wait in `get` sleep until the earliest
//!   delayed item is due, so an idle queue costs nothing and needs no stop.
//! - **No loss on a crash**: a worker that panics or is cancelled drops its [`Item`]. The queue then adds the
//!   item again after the limiter's delay, and counts it.
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
//! # client-go's three queues
//!
//! client-go's `Interface`, `DelayingInterface` and `RateLimitingInterface` are layers of one handle here,
//! [`RateLimitingQueue`]; a plain queue is one whose delays are not used. The layers are plain structs under one
//! lock, each in its own file, and none of them waits: `queue` (queued items and items in work), `delaying_queue`
//! (delayed items and their times) and `rate_limiting_queue` (the handle, its limiter and all async code).
//!
//! # Differences from client-go
//!
//! - `Done` is a method of the [`Item`] that ends the work on it, so it can't be forgotten, and can't be
//!   called for an item that is not in work.
//! - A drain ends when no item is queued and none is in work; client-go's may end while items are still
//!   queued. Its end wakes all waiting callers. Workers receive `None` only when no item can be queued again,
//!   so no item is left without a worker.
//! - Adding with a delay never blocks, and delayed items can be inspected and cancelled.
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
