//! [`WatchProbe`]: a probe in parallel to an open watch.

use std::pin::Pin;

use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{object::ResourceVersion, transport};

pub(super) type Answer = Result<ResourceVersion, transport::Error>;

/// A required probe, due later or sent.
pub(super) enum WatchProbe {
    /// The probe is not due yet.
    Waits(Pin<Box<Sleep>>),
    /// The probe was sent, for this revision.
    Sent(ResourceVersion, BoxFuture<'static, Answer>),
}

impl WatchProbe {
    /// Returns the response, or `None` when the probe is due. Never completes without a probe.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
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
