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
//! A [`Queue`](crate::queue::Queue) stores the changes that the reflectors received until the informer
//! applies them to the store. The informer takes one batch of changes from the queue, applies the batch to
//! the store, and then delivers the changes to the handlers. [`InOrder`](crate::queue::InOrder), the default,
//! keeps every change in the order of arrival. [`DeltaFifo`](crate::queue::DeltaFifo) groups the changes of
//! each object, as client-go's queue of that name does.
//!
#![doc = include_str!("../guide-queue.svg")]
//!
//! ## The buffers of the handlers
//!
//! Each handler has its own task and its own buffer.
//! [`ListenerBuffer`](crate::shared_informer::ListenerBuffer) selects what the buffer does when changes
//! arrive faster than the handler processes them: it grows, merges changes per object, or blocks the
//! informer. A list or a resync counts as one event in a buffer. The current objects that a handler receives
//! after its registration also count as one event. A `Coalesce` buffer expands such an event into one event
//! per object if other events wait in the buffer.
#![doc = include_str!("../guide-processor.svg")]
