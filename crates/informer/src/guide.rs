//! The mental model, the guarantees, the behavior on failure, and the cost.
//!
#![doc = include_str!("../guide.svg")]
//!
#![doc = include_str!("../guide.md")]
//!
//! # How changes reach handlers
//!
//! ## The queue
//!
//! A [`Queue`](crate::queue::Queue) holds the changes between the reflectors and the store.
//! The informer takes one batch from it, applies the batch to the store, and then delivers it to the handlers.
//! [`InOrder`](crate::queue::InOrder), the default, keeps every change in the order of arrival.
//! [`DeltaFifo`](crate::queue::DeltaFifo) keeps the changes of each object together, as client-go's queue of that
//! name does.
//!
#![doc = include_str!("../guide-queue.svg")]
//!
//! ## The buffers of the handlers
//!
//! Each handler has a task and a buffer of its own.
//! [`ListenerBuffer`](crate::shared_informer::ListenerBuffer) selects what happens while a handler is slower than
//! the changes.
//! A list, a resync, or the current objects for a late handler count as one event in a buffer.
//! A `Coalesce` buffer unfolds them if other events wait.
//!
#![doc = include_str!("../guide-processor.svg")]
