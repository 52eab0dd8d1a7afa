//! Decodes the events and list items of a response body, and returns them in the order in which they arrived.
//!
//! The task that reads the response decodes small amounts of data itself. Larger amounts are decoded in
//! parallel tasks.

use std::{collections::VecDeque, sync::Arc};

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::{
    codec::{Frame, FrameKind},
    decode::{Decoded, Decoder, KnownStates},
    ordered_tasks::OrderedTasks,
};

/// Minimum number of undecoded bytes for which a parallel task is started.
///
/// Starting a task wakes a thread. This takes as long as decoding one or two pods, so a task for fewer bytes
/// would save little time.
const ORDERED_TASK_BYTES_MIN: usize = 32 * 1024;

/// A decoding task receives no more events or list items after this number of bytes.
///
/// While a decoding task runs, another one starts only when this number of undecoded bytes is waiting.
const BATCH_BYTES: usize = 128 * 1024;

/// Number of bytes that the task that reads the response decodes before it yields to other tasks.
///
/// Decoding and compressing small pods takes 50 µs per KiB, so the task yields after about 800 µs.
const TURN_BYTES: usize = 16 * 1024;

/// A received event or list item, and its decoded object, if any.
pub(super) struct Piece<K> {
    pub(super) frame: Frame,
    pub(super) decoded: Option<Decoded<K>>,
    /// Time at which the bytes were received; `None` if metrics are disabled.
    pub(super) received: Option<Instant>,
}

struct Undecoded {
    frame: Frame,
    received: Option<Instant>,
}

/// A decoder that reuses stored objects whose revision is unchanged.
#[derive_where(Clone)]
struct Decoding<K> {
    decoder: Arc<Decoder<K>>,
    known: Option<KnownStates<K>>,
}

/// A queue that decodes events and list items, and returns them in the order of arrival.
pub(super) struct Pieces<K> {
    decoding: Decoding<K>,
    /// Decoder for watch events after the initial list, if no parallel task decodes them.
    ///
    /// For low latency, this decoder does not compress objects. If the cache is packed, the reflector
    /// compresses them later.
    at_once: Decoding<K>,
    /// Received events and list items that are not in a decoding task yet.
    waiting: VecDeque<Undecoded>,
    waiting_bytes: usize,
    /// Whether the waiting events and list items must be decoded now, even if they are too few for a parallel
    /// task.
    is_due: bool,
    /// Number of bytes that the reading task has decoded since it last yielded.
    decoded_here: usize,
    tasks: OrderedTasks<Piece<K>>,
    ready: VecDeque<Piece<K>>,
}

impl<K> Decoding<K>
where
    K: Resource + DeserializeOwned + 'static,
    K::DynamicType: 'static,
{
    fn decode(&self, Undecoded { frame, received }: Undecoded) -> Piece<K> {
        let known = self.known.as_ref();
        let decoded = match frame.kind {
            FrameKind::Item => Some(self.decoder.item(frame.object(), known)),
            FrameKind::Added | FrameKind::Modified | FrameKind::Deleted => {
                Some(self.decoder.object(frame.object(), known))
            }
            FrameKind::Bookmark | FrameKind::Error | FrameKind::Unknown(_) => None,
        };
        Piece {
            frame,
            decoded,
            received,
        }
    }
}

impl<K> Pieces<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    /// Creates an empty queue. Its decoding tasks will run on the worker threads of the current runtime.
    pub(super) fn new(decoder: Decoder<K>) -> Self {
        let decoding = |decoder| Decoding {
            decoder: Arc::new(decoder),
            known: None,
        };
        Self {
            decoding: decoding(decoder.clone()),
            at_once: decoding(decoder.urgent()),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_due: false,
            decoded_here: 0,
            tasks: OrderedTasks::here(),
            ready: VecDeque::new(),
        }
    }

    /// Clears the queue for another response body.
    ///
    /// Objects that are in `known` at the same revision are not decoded again.
    pub(super) fn begin(&mut self, known: Option<KnownStates<K>>) {
        self.clear();
        self.decoding.known = known;
    }

    /// Stops the reuse of stored objects. Decoding tasks that have already started are not affected.
    pub(super) fn forget_known(&mut self) {
        self.decoding.known = None;
    }

    /// Drops all events and list items, and the objects passed to [`begin`](Self::begin).
    pub(super) fn clear(&mut self) {
        self.forget_known();
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.is_due = false;
        self.tasks.clear();
        self.ready.clear();
    }

    /// Adds events and list items, whose bytes were received at `received`.
    pub(super) fn push(
        &mut self,
        frames: impl IntoIterator<Item = Frame>,
        received: Option<Instant>,
    ) {
        for frame in frames {
            self.is_due |= !frame.kind.is_of_object();
            self.waiting_bytes += frame.bytes.len();
            self.waiting.push_back(Undecoded { frame, received });
        }
        self.fill();
    }

    /// Returns whether the caller should receive more bytes before the call of [`next`](Self::next).
    ///
    /// If so, the waiting events and list items are too few for a parallel task.
    pub(super) fn gathers(&self) -> bool {
        let waits = !self.waiting.is_empty() && self.ready.is_empty() && self.tasks.is_empty();
        waits && !self.is_due && !self.tasks.is_without()
    }

    /// Requests that the waiting events and list items are decoded now, even if they are too few for a
    /// parallel task.
    ///
    /// [`gathers`](Self::gathers) then returns `false` until no event or list item is waiting.
    pub(super) fn decode_now(&mut self) {
        self.is_due = true;
    }

    /// Returns whether [`next`](Self::next) has returned all events and list items.
    pub(super) fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.tasks.is_empty() && self.waiting.is_empty()
    }

    /// Returns whether the caller may read more of the body. If not, the caller must first call
    /// [`next`](Self::next).
    pub(super) fn takes_more(&self) -> bool {
        let fills_next_batch = !self.tasks.is_empty() && self.waiting_bytes < BATCH_BYTES;
        self.ready.is_empty() && (self.waiting.is_empty() || fills_next_batch)
    }

    /// Returns `true` if the queue is empty, or if the next event or list item is in a decoding task.
    pub(super) fn is_at_border(&self) -> bool {
        self.ready.is_empty() && (self.waiting.is_empty() || !self.tasks.is_empty())
    }

    /// Returns the next event or list item once decoded, or `None` if the queue is empty.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event or list item.
    pub(super) async fn next(&mut self) -> Option<Piece<K>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                return Some(piece);
            }
            if self.tasks.is_empty() {
                let next = self.waiting.pop_front()?;
                self.waiting_bytes -= next.frame.bytes.len();
                self.decoded_here += next.frame.bytes.len();
                self.is_due &= !self.waiting.is_empty();
                let is_live = next.frame.kind != FrameKind::Item && self.decoding.known.is_none();
                let decoding = if is_live {
                    &self.at_once
                } else {
                    &self.decoding
                };
                return Some(decoding.decode(next));
            }
            self.ready = self.tasks.next().await.into();
            self.fill();
        }
    }

    /// Yields to other tasks if the calling task has decoded at least [`TURN_BYTES`] since its last yield.
    /// Bytes that parallel tasks decode do not count.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event or list item.
    pub(super) async fn give_way(&mut self) {
        if self.decoded_here >= TURN_BYTES {
            self.decoded_here = 0;
            tokio::task::yield_now().await;
        }
    }

    fn fill(&mut self) {
        // While a task runs, the next batch can collect more bytes.
        let enough = |tasks: &OrderedTasks<_>| {
            if tasks.is_empty() {
                ORDERED_TASK_BYTES_MIN
            } else {
                BATCH_BYTES
            }
        };
        while self.tasks.has_room() && self.waiting_bytes >= enough(&self.tasks) {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while bytes < BATCH_BYTES
                && let Some(next) = self.waiting.pop_front()
            {
                bytes += next.frame.bytes.len();
                batch.push(next);
            }
            self.waiting_bytes -= bytes;
            self.is_due &= !self.waiting.is_empty();
            let decoding = self.decoding.clone();
            self.tasks.begin(batch, move |next| decoding.decode(next));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;
    use crate::codec::Codec;

    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn pieces_are_returned_in_order_with_their_time_of_arrival() {
        let mut pieces = Pieces::new(Decoder::<ConfigMap>::new(&(), None));
        let frame = |number: usize| Frame {
            kind: FrameKind::Modified,
            codec: Codec::Json,
            bytes: format!(
                r#"{{"metadata":{{"name":"m{number}"}},"data":{{"a":"{}"}}}}"#,
                "x".repeat(2000)
            )
            .into(),
        };
        let first = Instant::now();
        let second = first + Duration::from_secs(1);
        pieces.push((0..300).map(frame), Some(first));
        assert!(!pieces.tasks.is_empty(), "there is work for two tasks");
        pieces.push((300..600).map(frame), Some(second));
        for number in 0..600 {
            let piece = pieces.next().await.unwrap();
            let Some(Decoded::Object(object)) = piece.decoded else {
                panic!("{number} is not an object");
            };
            assert_eq!(object.name(), format!("m{number}"));
            let expected = if number < 300 { first } else { second };
            assert_eq!(piece.received, Some(expected), "{number}");
        }
        assert!(pieces.is_empty() && pieces.waiting_bytes == 0);
    }

    #[tokio::test]
    async fn decoding_in_place_yields_to_other_tasks() {
        use futures_util::FutureExt as _;

        let mut pieces = Pieces::new(Decoder::<ConfigMap>::new(&(), None));
        let (bytes, frames) = (TURN_BYTES / 4, 10);
        let frame = |_| Frame {
            kind: FrameKind::Item,
            codec: Codec::Json,
            bytes: format!(
                r#"{{"metadata":{{"name":"m"}},"data":{{"a":"{}"}}}}"#,
                "x".repeat(bytes)
            )
            .into(),
        };
        pieces.push((0..frames).map(frame), None);
        let mut turns = 0;
        while pieces.next().await.is_some() {
            turns += usize::from(pieces.give_way().now_or_never().is_none());
        }
        assert_eq!(turns, frames / 4);
    }
}
