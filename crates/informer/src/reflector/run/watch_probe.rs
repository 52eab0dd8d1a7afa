//! Waits until a probe is due while a watch is open, or until the response to a sent probe arrives.
//!
//! A probe is a LIST request for one object, in parallel to the watch. The response shows whether the server
//! has gone back to an earlier state. This module does not create probes or decide when they are due.

use std::pin::Pin;

use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{object::ResourceVersion, transport};

pub(super) type Answer = Result<ResourceVersion, transport::Error>;

/// A scheduled or sent probe, in parallel to an open watch.
pub(super) enum WatchProbe {
    /// The timer completes when the probe is due.
    Waits(Pin<Box<Sleep>>),
    /// The probe's `resourceVersion` parameter, with match `NotOlderThan`, and the pending response.
    Sent(ResourceVersion, BoxFuture<'static, Answer>),
}

impl WatchProbe {
    /// If the probe was sent, waits for the response and returns it.
    ///
    /// If the probe is only scheduled, waits until it is due and returns `None`. If `probe` is `None`, the
    /// future never completes.
    ///
    /// # Cancel safety
    /// Dropping the future loses no response.
    pub(super) async fn answer(probe: Option<&mut Self>) -> Option<(ResourceVersion, Answer)> {
        match probe {
            None => std::future::pending().await,
            Some(Self::Waits(due)) => {
                due.as_mut().await;
                None
            }
            Some(Self::Sent(asked, answer)) => {
                let answer = answer.await;
                Some((asked.clone(), answer))
            }
        }
    }
}
