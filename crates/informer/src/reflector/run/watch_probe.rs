//! [`WatchProbe`]: a probe in parallel to an open watch.

use std::pin::Pin;

use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{object::ResourceVersion, transport};

pub(super) type Answer = Result<ResourceVersion, transport::Error>;

/// The probe of an open watch, either scheduled or sent.
pub(super) enum WatchProbe {
    /// The probe is not due yet.
    Waits(Pin<Box<Sleep>>),
    /// The probe was sent with this minimum revision. The future returns the response.
    Sent(ResourceVersion, BoxFuture<'static, Answer>),
}

impl WatchProbe {
    /// Waits until a sent probe has a response, and returns it with the requested revision. For a scheduled
    /// probe, waits until it is due, and returns `None`. Never completes without a probe.
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
