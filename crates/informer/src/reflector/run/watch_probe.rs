//! Waits until the probe of an open watch is due, and then until the response to the probe arrives.
//!
//! A probe is a request for one object. The response shows whether the server has gone back to an earlier
//! state. The module neither sends the probe nor decides when the probe is due.

use std::pin::Pin;

use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{object::ResourceVersion, transport};

pub(super) type Answer = Result<ResourceVersion, transport::Error>;

/// A scheduled or sent probe of an open watch.
pub(super) enum WatchProbe {
    /// The timer completes when the probe is due.
    Waits(Pin<Box<Sleep>>),
    /// The minimum revision that the probe requested, and the pending response.
    Sent(ResourceVersion, BoxFuture<'static, Answer>),
}

impl WatchProbe {
    /// Waits for the response to a sent probe. Returns `None` when a scheduled probe is due.
    ///
    /// If `probe` is `None`, the future never completes.
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
