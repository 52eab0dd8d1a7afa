//! [`WatchProbe`]: a probe while a watch is open, as a value that the watch keeps.

use std::pin::Pin;

use futures_core::future::BoxFuture;
use tokio::time::Sleep;

use crate::{object::ResourceVersion, transport};

pub(super) type Answer = Result<ResourceVersion, transport::Error>;

/// A probe that is required while a watch is open.
pub(super) enum WatchProbe {
    /// It is not due yet.
    Waits(Pin<Box<Sleep>>),
    /// It has been sent, for this revision.
    Sent(ResourceVersion, BoxFuture<'static, Answer>),
}

impl WatchProbe {
    /// The answer, or `None` when the probe is due; waits for ever without one.
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
