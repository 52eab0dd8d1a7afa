//! Guide to informers: the mental model, the guarantees, the behavior on failure, and the cost.
//!
#![doc = include_str!("../guide.svg")]
//!
#![doc = include_str!("../guide.md")]
//!
//! # How changes reach handlers
//!
//! ## The queue
//!
//! The reflectors receive changes from the server. A [`Queue`](crate::queue::Queue) stores these changes
//! until the informer applies them to the store. The informer takes one batch of changes from the queue,
//! applies the batch to the store, and then delivers the changes to the handlers.
//! [`InOrder`](crate::queue::InOrder), the default, keeps every change in the order of arrival.
//! [`DeltaFifo`](crate::queue::DeltaFifo) groups the changes of each object, as client-go's queue of that
//! name does.
//!
#![doc = include_str!("../guide-queue.svg")]
//!
//! ## The buffers of the handlers
//!
//! Each handler has its own task and its own buffer.
//! [`ListenerBuffer`](crate::shared_informer::ListenerBuffer) selects what the buffer does when changes
//! arrive faster than the handler processes them: it grows (`Grow`), merges the changes of each object
//! (`Coalesce`), or blocks the informer (`Block`).
//!
//! A list or a resync counts as one event in a buffer. The current objects that a handler receives after its
//! registration also count as one event. If other events wait in a `Coalesce` buffer, the buffer expands such
//! an event into one event per object.
#![doc = include_str!("../guide-processor.svg")]
