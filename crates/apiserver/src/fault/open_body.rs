//! The bodies that are being read: what they are told at once, and how their faults take their time.
//!
//! Guarantees:
//! - an order reaches every open body that it is for, and is noticed before anything else: nothing that was pending is delivered after a cut;
//! - a body is forgotten when its reader drops it;
//! - all timers live in the body, so a server without readers has nothing running.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::disturbance::{Disturbance, Laid, Step};
use super::matching::Match;
use super::rule::Ending;
use crate::body::{Body, BoxError};
use crate::request_log::LoggedRequest;
use crate::shared::Shared;

/// The bodies that can be given orders.
#[derive(Default)]
pub(super) struct OpenBodies(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// Which bodies are silent, also those that are opened later.
    frozen: Vec<Match>,
    /// By their request's sequence number.
    bodies: BTreeMap<u64, OpenBody>,
}

struct OpenBody {
    request: Arc<LoggedRequest>,
    orders: watch::Sender<Orders>,
}

/// What one body is told.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    end: Option<Ending>,
    frozen: bool,
    /// How often a thaw has been for it.
    thaws: u64,
    /// Whether its faults have been taken back.
    released: bool,
}

/// A body's place among the open ones, given up on drop.
pub(crate) struct Held {
    shared: Arc<Shared>,
    request: Arc<LoggedRequest>,
    orders: watch::Receiver<Orders>,
}

/// A body with its faults.
struct Disturbed {
    inner: Body,
    held: Held,
    disturbance: Disturbance,
    steps: VecDeque<Step>,
    pause: Option<Instant>,
    /// How many thaws there had been when a fault froze it.
    frozen_at: Option<u64>,
    /// Whether the inner body has ended.
    drained: bool,
    over: bool,
}

// === impl OpenBodies ===

impl OpenBodies {
    /// Enters a body that is about to be read; for a watch, in the step that registers it.
    pub(super) fn enter(&self, shared: &Arc<Shared>, request: &Arc<LoggedRequest>) -> Held {
        let mut open = self.0.lock();
        let frozen = open.frozen.iter().any(|matches| matches.matches(request));
        if frozen {
            shared.requests.hit(request.sequence, "freeze");
        }
        let (sender, orders) = watch::channel(Orders {
            frozen,
            ..Orders::default()
        });
        let body = OpenBody {
            request: Arc::clone(request),
            orders: sender,
        };
        open.bodies.insert(request.sequence, body);
        Held {
            shared: Arc::clone(shared),
            request: Arc::clone(request),
            orders,
        }
    }

    /// Ends or freezes the matching bodies; returns the numbers of their requests.
    pub(super) fn end(&self, matches: &Match, ending: Ending) -> Vec<u64> {
        let mut open = self.0.lock();
        if ending == Ending::Freeze {
            open.frozen.push(matches.clone());
        }
        open.tell(matches, |orders| match ending {
            Ending::Freeze => orders.frozen = true,
            Ending::Cut | Ending::Break => orders.end = Some(ending),
        })
    }

    /// Lets the matching bodies go on, and takes back what froze them.
    pub(super) fn thaw(&self, matches: &Match) {
        let mut open = self.0.lock();
        open.frozen.retain(|frozen| !matches.covers(frozen));
        open.tell(matches, |orders| {
            orders.frozen = false;
            orders.thaws += 1;
        });
    }

    /// Lets every body go on, without its faults.
    pub(super) fn release(&self) {
        let mut open = self.0.lock();
        open.frozen.clear();
        open.tell(&Match::any(), |orders| {
            orders.frozen = false;
            orders.released = true;
        });
    }

    pub(super) fn frozen(&self) -> Vec<Match> {
        self.0.lock().frozen.clone()
    }
}

impl Open {
    fn tell(&self, matches: &Match, order: impl Fn(&mut Orders)) -> Vec<u64> {
        let told = self.bodies.iter();
        let told = told.filter(|(_, body)| matches.matches(&body.request));
        told.map(|(sequence, body)| {
            body.orders.send_modify(&order);
            *sequence
        })
        .collect()
    }
}

// === impl Held ===

impl Held {
    /// The body of a watch, with the faults that are for it.
    pub(crate) fn disturbed(self, body: Body) -> Body {
        let laid = self.shared.faults.lay(&self.request);
        self.disturb(body, laid)
    }

    /// The body as its reader gets it.
    pub(super) fn disturb(self, inner: Body, laid: Vec<Laid>) -> Body {
        let mut steps = VecDeque::new();
        let disturbance = Disturbance::new(laid, &mut steps);
        let disturbed = Disturbed {
            inner,
            held: self,
            disturbance,
            steps,
            pause: None,
            frozen_at: None,
            drained: false,
            over: false,
        };
        Body::stream(stream::unfold(disturbed, |mut disturbed| async move {
            let chunk = disturbed.next().await?;
            Some((chunk, disturbed))
        }))
    }

    fn read(&mut self) -> Orders {
        *self.orders.borrow_and_update()
    }

    /// Waits for orders.
    async fn changed(&mut self) {
        // The sender lives among the open bodies until this is dropped.
        let _ = self.orders.changed().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut open = self.shared.faults.open().0.lock();
        open.bodies.remove(&self.request.sequence);
    }
}

// === impl Disturbed ===

impl Disturbed {
    /// The next chunk; `None` at a clean end.
    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if self.over {
                return None;
            }
            let orders = self.held.read();
            if let Some(ending) = orders.end {
                return self.end(ending);
            }
            if orders.released && !self.disturbance.is_idle() {
                self.disturbance.release(&mut self.steps);
                (self.pause, self.frozen_at) = (None, None);
            }
            if orders.frozen || self.frozen_at == Some(orders.thaws) {
                self.held.changed().await;
            } else if let Some(until) = self.pause {
                tokio::select! {
                    biased;
                    () = self.held.changed() => {}
                    () = tokio::time::sleep_until(until) => self.pause = None,
                }
            } else if let Some(step) = self.steps.pop_front() {
                match step {
                    Step::Bytes(bytes) => return Some(Ok(bytes)),
                    Step::Pause(period) => self.pause = Some(Instant::now() + period),
                    Step::Flush => tokio::task::yield_now().await,
                    Step::Hit(name) => self.hit(&name),
                    Step::End(Ending::Freeze) => self.frozen_at = Some(orders.thaws),
                    Step::End(ending) => return self.end(ending),
                }
            } else if self.drained {
                return None;
            } else if let Some(chunk) = self.advance().await {
                return Some(chunk);
            }
        }
    }

    /// Reads on, until there is a chunk to pass at once, a step to take, or an order.
    async fn advance(&mut self) -> Option<Result<Bytes, BoxError>> {
        let frame = tokio::select! {
            biased;
            () = self.held.changed() => return None,
            frame = self.inner.frame() => frame,
        };
        match frame {
            Some(Ok(frame)) => {
                let chunk = frame.into_data().ok()?;
                if self.disturbance.is_idle() {
                    return Some(Ok(chunk));
                }
                self.disturbance.feed(chunk, &mut self.steps);
            }
            Some(Err(error)) => {
                self.over = true;
                return Some(Err(error));
            }
            None => {
                self.disturbance.finish(&mut self.steps);
                self.drained = true;
            }
        }
        None
    }

    fn end(&mut self, ending: Ending) -> Option<Result<Bytes, BoxError>> {
        self.over = true;
        if ending != Ending::Break {
            return None;
        }
        let reset = io::Error::new(
            io::ErrorKind::ConnectionReset,
            "the answer was broken by a fault",
        );
        Some(Err(reset.into()))
    }

    fn hit(&self, name: &str) {
        let Held {
            shared, request, ..
        } = &self.held;
        shared.requests.hit(request.sequence, name);
    }
}
