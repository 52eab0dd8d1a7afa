//! A queue of keys for controllers, with delays and rate limits.
//!
//! The queue guarantees:
//!
//! - **Fairness**: workers receive items in the order in which the items were added, unless an [`Order`] is
//!   set.
//! - **Deduplication**: an item that is added several times before a worker receives it is processed once. An
//!   item that is added while a worker processes it is processed once more afterwards. No two workers process
//!   the same item at the same time.
//! - **Many producers and consumers**: a clone of a [`RateLimitingQueue`] is another handle to the same
//!   queue. Any number of tasks may add items and wait in [`get`](RateLimitingQueue::get). No wake-up is lost
//!   when a waiting task is cancelled.
//! - **Shut-down**: after [`shut_down`](RateLimitingQueue::shut_down) the queue accepts no items. Workers
//!   receive the remaining items, and then `None`.
//!   [`shut_down_with_drain`](RateLimitingQueue::shut_down_with_drain) also waits until all items are done.
//! - **No background work**: the queue has no task and no thread. An idle queue uses no CPU time and does not
//!   have to be stopped.
//! - **No loss on a crash**: a worker that panics or is cancelled drops its [`Item`]. The queue then adds the
//!   item again after the delay of the rate limiter.
//!
//! The queue does not start workers. The program spawns the tasks that call `get`.
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
//! client-go has three layers: `Interface`, `DelayingInterface` and `RateLimitingInterface`. In this library,
//! one handle, [`RateLimitingQueue`], has the methods of all three layers. A program that needs a plain queue
//! does not call the methods with delays.
//!
//! # Differences from client-go
//!
//! - `Done` is a method of the [`Item`] that the worker holds. A worker therefore can't call it for an item
//!   that it does not process.
//! - A drain ends when no item is queued and no worker processes an item. client-go's drain may end while
//!   items are still queued.
//! - During a drain, workers also receive the items that were added again while a worker processed them. Only
//!   then do workers receive `None`.
//! - An addition with a delay never blocks. A program can list and cancel delayed items.
//! - `shut_down` and `shut_down_with_drain` drop the delayed items at once.

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
