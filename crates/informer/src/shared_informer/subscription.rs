//! Delivers an informer's events as a stream that the program polls.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use derive_where::derive_where;
use futures_core::Stream;
use futures_util::{StreamExt, stream};

use super::{ListenerBuffer, SharedInformer, Stopped};
use crate::{
    controller::Command,
    event_handler::Event,
    processor::{Buffer, Delivery, Expansion, HandlerStatus, Listener, ListenerId, Listening},
};

/// Stream of the current objects, then of all later changes. The stream ends after the informer has ended.
///
/// Events that are not polled wait in a buffer without a limit, or in the buffer set with
/// [`SharedInformer::subscribe_with`]. An event counts as handled when the next event is polled. Dropping the
/// stream ends the subscription.
///
/// The object of an event is the object in the cache, and the program can't modify it:
///
/// ```compile_fail,E0594
/// # use k8s_openapi::api::core::v1::Pod;
/// # use kube_informer::{event_handler::Event, shared_informer::Subscription};
/// async fn change(mut events: Subscription<Pod>) {
///     while let Some(Event::Added { object, .. }) = events.next().await {
///         object.get().unwrap().spec = None;
///     }
/// }
/// ```
///
/// # Cancel safety
/// Dropping a future that waits for the next event loses no event.
#[derive_where(Debug)]
pub struct Subscription<K> {
    #[derive_where(skip)]
    events: Pin<Box<dyn Stream<Item = Event<K>> + Send>>,
    #[derive_where(skip)]
    buffer: Arc<Buffer<K>>,
    informer: SharedInformer<K>,
    id: ListenerId,
}

impl<K: Send + Sync + 'static> Subscription<K> {
    pub(super) fn new(
        informer: &SharedInformer<K>,
        buffer: ListenerBuffer,
    ) -> Result<Self, Stopped> {
        let name = Arc::from(format!("subscription of {}", informer.name()));
        let (id, buffer) = informer.new_buffer(buffer, name);
        informer.shared.roster.enlist(&buffer, false);
        let listener = Listener {
            id,
            buffer: Arc::clone(&buffer),
            resync: None,
            delivery: Delivery::Changes,
            has_task: false,
        };
        informer.command(Command::AddListener(listener, None))?;
        let listening = Listening::new(&buffer, Expansion::default());
        let events = stream::unfold(listening, async move |mut listening| {
            let event = listening.next().await?;
            Some((event, listening))
        });
        Ok(Self {
            events: Box::pin(events.fuse()),
            buffer,
            informer: informer.clone(),
            id,
        })
    }
}

impl<K> Subscription<K> {
    /// Returns a snapshot of the subscription's event counters and lag.
    pub fn status(&self) -> HandlerStatus {
        self.buffer.status()
    }

    /// Waits for the next event, and returns it. Returns `None` on each call after the stream has ended.
    ///
    /// The method does the same as `StreamExt::next`, without an import of the `StreamExt` trait.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Event<K>> {
        std::future::poll_fn(|context| self.events.as_mut().poll_next(context)).await
    }
}

impl<K> Stream for Subscription<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl<K> Drop for Subscription<K> {
    fn drop(&mut self) {
        // An error means that the informer has stopped, and the subscription with it.
        let _ = self.informer.command(Command::RemoveListener(self.id));
    }
}
