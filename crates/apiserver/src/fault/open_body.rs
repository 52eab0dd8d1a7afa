//! Tracks the response bodies that are being sent, and applies faults to them.
//!
//! The actions of a fault plan send orders to open bodies. An order ends, freezes or resumes a body, or
//! removes the faults of the body.
//!
//! Guarantees:
//! - An order reaches every matching open body, and the body executes the order before it sends further data.
//!   No data is delivered after an order to end.
//! - The module no longer tracks a body after the connection has dropped it.
//! - The module runs a timer only while a fault delays a body.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_core::Stream;
use parking_lot::Mutex;
use tokio::time::Sleep;

use super::disturbance::{Disturbance, Laid, Step};
use super::edit::Framing;
use super::matching::Match;
use super::rule::Ending;
use crate::body::{Body, BoxError};
use crate::request_log::{LoggedRequest, Recorder};

/// The response bodies that a server is sending.
#[derive(Default)]
pub(crate) struct OpenBodies(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    /// One match per `freeze` action in effect. The action also freezes matching bodies that open later.
    frozen: Vec<Match>,
    /// The open bodies, by sequence number of their request.
    bodies: BTreeMap<u64, OpenBody>,
}

struct OpenBody {
    request: Arc<LoggedRequest>,
    inbox: Arc<Mutex<Inbox>>,
}

/// Orders to one open body, and the waker of its task.
#[derive(Default)]
struct Inbox {
    orders: Orders,
    /// Waker of the task that last polled the body.
    reader: Option<Waker>,
}

/// Orders that one open body must follow: to end, to freeze, to resume, or to remove its faults.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    end: Option<Ending>,
    frozen: bool,
    /// Number of resume orders that the body has received so far.
    thaws: u64,
    /// Whether the body has received the order to remove its faults.
    released: bool,
}

/// Registration of an open body, removed on drop.
pub(crate) struct OpenBodyGuard {
    open: Arc<Mutex<Open>>,
    requests: Arc<Recorder>,
    request: Arc<LoggedRequest>,
    inbox: Arc<Mutex<Inbox>>,
}

/// A response body that sends the data of `inner` and applies faults to it.
///
/// A test can also end, freeze or resume the body, or remove its faults: see [`Orders`].
struct Disturbed {
    inner: Body,
    held: OpenBodyGuard,
    disturbance: Disturbance,
    steps: VecDeque<Step>,
    pause: Option<Pin<Box<Sleep>>>,
    /// Value of [`Orders::thaws`] when a fault froze the body; `None` if no fault has frozen the body.
    ///
    /// The body resumes when `thaws` increases, or when its faults are removed.
    frozen_at: Option<u64>,
    /// Whether hyper has been made to flush the sent data before an [`Ending::Break`].
    ///
    /// hyper flushes the data when the body returns `Pending`. Without the flush, hyper would drop the data
    /// when the body returns the error.
    breaks: bool,
    /// Whether the wrapped body `inner` has ended.
    drained: bool,
    over: bool,
}

// === impl OpenBodies ===

impl OpenBodies {
    /// Registers the response body of `request` before it is sent.
    ///
    /// For a watch, the caller must hold the lock of the server's state during two steps: this call, and
    /// adding the watch to the watch cache. Otherwise a fault action could affect only the body or only the
    /// watch.
    pub(crate) fn enter(
        &self,
        requests: &Arc<Recorder>,
        request: &Arc<LoggedRequest>,
    ) -> OpenBodyGuard {
        let mut open = self.0.lock();
        let frozen = open.frozen.iter().any(|matches| matches.matches(request));
        if frozen {
            requests.hit(request.sequence, "freeze");
        }
        let inbox = Arc::new(Mutex::new(Inbox::default()));
        inbox.lock().orders.frozen = frozen;
        let body = OpenBody {
            request: Arc::clone(request),
            inbox: Arc::clone(&inbox),
        };
        open.bodies.insert(request.sequence, body);
        OpenBodyGuard {
            open: Arc::clone(&self.0),
            requests: Arc::clone(requests),
            request: Arc::clone(request),
            inbox,
        }
    }

    /// Ends or freezes all matching open bodies, and returns the sequence numbers of their requests.
    ///
    /// [`Ending::Freeze`] also freezes matching bodies that open later.
    pub(crate) fn end(&self, matches: &Match, ending: Ending) -> Vec<u64> {
        let mut open = self.0.lock();
        if ending == Ending::Freeze {
            open.frozen.push(matches.clone());
        }
        open.tell(matches, |orders| match ending {
            Ending::Freeze => orders.frozen = true,
            Ending::Cut | Ending::Break => orders.end = Some(ending),
        })
    }

    /// Resumes all matching open bodies.
    ///
    /// Also ends each `freeze` action if `matches` selects every request that the action selects. The action
    /// then no longer freezes bodies that open later.
    pub(crate) fn thaw(&self, matches: &Match) {
        let mut open = self.0.lock();
        open.frozen.retain(|frozen| !matches.covers(frozen));
        open.tell(matches, |orders| {
            orders.frozen = false;
            orders.thaws += 1;
        });
    }

    /// Resumes all open bodies, and removes their faults. Also ends all `freeze` actions, so that they do not
    /// freeze bodies that open later.
    pub(crate) fn release(&self) {
        let mut open = self.0.lock();
        open.frozen.clear();
        open.tell(&Match::any(), |orders| {
            orders.frozen = false;
            orders.released = true;
        });
    }

    pub(crate) fn frozen(&self) -> Vec<Match> {
        self.0.lock().frozen.clone()
    }
}

impl Open {
    fn tell(&self, matches: &Match, order: impl Fn(&mut Orders)) -> Vec<u64> {
        let told = self.bodies.iter();
        let told = told.filter(|(_, body)| matches.matches(&body.request));
        told.map(|(sequence, body)| {
            body.inbox.lock().tell(&order);
            *sequence
        })
        .collect()
    }
}

// === impl Inbox ===

impl Inbox {
    fn tell(&mut self, order: impl Fn(&mut Orders)) {
        order(&mut self.orders);
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Returns the orders that currently apply to the body, such as to end or to freeze.
    ///
    /// Also stores the waker of the task that polls the body. The next order wakes this task.
    fn read(&mut self, cx: &Context<'_>) -> Orders {
        match &mut self.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        self.orders
    }
}

// === impl OpenBodyGuard ===

impl OpenBodyGuard {
    pub(super) fn request(&self) -> &LoggedRequest {
        &self.request
    }

    /// Wraps `inner` in a body to which the faults in `laid` apply.
    pub(crate) fn disturb(self, inner: Body, laid: Vec<Laid>, framing: Framing) -> Body {
        let mut steps = VecDeque::new();
        let disturbance = Disturbance::new(laid, framing, &mut steps);
        Body::stream(Disturbed {
            inner,
            held: self,
            disturbance,
            steps,
            pause: None,
            frozen_at: None,
            breaks: false,
            drained: false,
            over: false,
        })
    }
}

impl Drop for OpenBodyGuard {
    fn drop(&mut self) {
        self.open.lock().bodies.remove(&self.request.sequence);
    }
}

// === impl Disturbed ===

impl Stream for Disturbed {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let disturbed = self.get_mut();
        loop {
            if disturbed.over {
                return Poll::Ready(None);
            }
            let orders = disturbed.held.inbox.lock().read(cx);
            if let Some(ending) = orders.end {
                return Poll::Ready(disturbed.end(ending));
            }
            if orders.released && !disturbed.disturbance.is_idle() {
                disturbed.disturbance.release(&mut disturbed.steps);
                (disturbed.pause, disturbed.frozen_at) = (None, None);
            }
            if orders.frozen || disturbed.frozen_at == Some(orders.thaws) {
                return Poll::Pending;
            }
            if let Some(pause) = &mut disturbed.pause {
                ready!(pause.as_mut().poll(cx));
                disturbed.pause = None;
            }
            if let Some(step) = disturbed.steps.pop_front() {
                if let Some(turn) = disturbed.take(step, orders, cx) {
                    return turn;
                }
            } else if disturbed.drained {
                return Poll::Ready(None);
            } else if let Some(chunk) = ready!(disturbed.poll_inner(cx)) {
                return Poll::Ready(Some(chunk));
            }
        }
    }
}

impl Disturbed {
    /// Executes `step`. Returns the result of the current poll of the body, or `None` if the caller must
    /// continue with the next step.
    fn take(
        &mut self,
        step: Step,
        orders: Orders,
        cx: &Context<'_>,
    ) -> Option<Poll<Option<Result<Bytes, BoxError>>>> {
        match step {
            Step::Bytes(bytes) => return Some(Poll::Ready(Some(Ok(bytes)))),
            Step::Pause(period) => self.pause = Some(Box::pin(tokio::time::sleep(period))),
            Step::Flush => {
                // The connection flushes the sent bytes when the body is pending.
                cx.waker().wake_by_ref();
                return Some(Poll::Pending);
            }
            Step::Hit(name) => self.hit(&name),
            Step::End(Ending::Freeze) => self.frozen_at = Some(orders.thaws),
            Step::End(Ending::Break) if !self.breaks => {
                // hyper drops unwritten data when a body fails, so the data is flushed first.
                self.breaks = true;
                self.steps.push_front(step);
                cx.waker().wake_by_ref();
                return Some(Poll::Pending);
            }
            Step::End(ending) => return Some(Poll::Ready(self.end(ending))),
        }
        None
    }

    /// Polls `inner` for the next chunk. Returns the chunk unchanged if no fault applies to the body.
    ///
    /// If faults apply, adds the steps for the chunk to `self.steps`, and returns `Ready(None)`. Also returns
    /// `Ready(None)` at the end of `inner`.
    fn poll_inner(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        Poll::Ready(match ready!(self.inner.poll_chunk(cx)) {
            Some(Ok(chunk)) => {
                if self.disturbance.is_idle() {
                    return Poll::Ready(Some(Ok(chunk)));
                }
                self.disturbance.feed(chunk, &mut self.steps);
                None
            }
            Some(Err(error)) => {
                self.over = true;
                Some(Err(error))
            }
            None => {
                self.disturbance.finish(&mut self.steps);
                self.drained = true;
                None
            }
        })
    }

    fn end(&mut self, ending: Ending) -> Option<Result<Bytes, BoxError>> {
        self.over = true;
        if ending != Ending::Break {
            return None;
        }
        let reset = io::Error::new(
            io::ErrorKind::ConnectionReset,
            "the response was broken by a fault",
        );
        Some(Err(reset.into()))
    }

    fn hit(&self, name: &str) {
        self.held.requests.hit(self.held.request.sequence, name);
    }
}
