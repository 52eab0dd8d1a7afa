//! Starts and stops the parts of an informer in order ([`Controller::run`]).
//!
//! The parts are the reflectors, the loop that applies their changes to the cache, and the handlers.
//!
//! Guarantees: reflectors stop before the loop, and the loop before the handlers. Every task has ended when
//! `Controller::run` returns. If several parts fail, the first cause is reported.

use std::{future::Future, panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures_util::{FutureExt, future};
use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::task::{JoinError, JoinSet};
use tracing::Instrument;

use super::{
    Controller, Ended, Guest, InnerReflector, LOOP, Phase,
    availability::{self, Availability},
    end::end_of,
};
use crate::{
    clock,
    metrics::RelistReason,
    processor::Closing,
    status::{FailureCause, InformerError},
};

/// Text that stands for the consistency check and the warm start in error messages about their panics.
const RUN: &str = "a check, a save or a load";

impl<K> Controller<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    /// Lists and watches until `shutdown` resolves, then stops all tasks of the informer.
    ///
    /// The lists and watches stop first, then the task that updates the cache, then the handlers. The future
    /// completes when every task has ended. A handler callback that is running is not interrupted. If a
    /// [warm start](crate::warm_start) is configured, the saved store is loaded at the start and the cache is
    /// saved at the end.
    ///
    /// The method consumes the controller, so an informer runs at most once:
    ///
    /// ```
    /// # async fn example(
    /// #     controller: kube_informer::Controller<k8s_openapi::api::core::v1::Pod>,
    /// # ) -> Result<(), kube_informer::status::InformerError> {
    /// let ended = controller.run(std::future::pending()).await?;
    /// println!("{} events were discarded", ended.discarded);
    /// # Ok(()) }
    /// ```
    ///
    /// ```compile_fail,E0382
    /// # async fn example(controller: kube_informer::Controller<k8s_openapi::api::core::v1::Pod>) {
    /// let _ = controller.run(std::future::pending()).await;
    /// let _ = controller.run(std::future::pending()).await; // it was moved
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns an error if the informer fails before `shutdown` resolves or while it stops. [`FailureCause`]
    /// lists the possible causes. Errors of a server, and panics in code that is called for a single object
    /// or event, do not fail the informer. The first cause is returned after every task has ended. After a
    /// failure, [`has_synced`](crate::SharedInformer::has_synced) returns false, pending waits for the sync
    /// return an error, and nothing is saved.
    ///
    /// # Cancel safety
    /// Dropping the future aborts all tasks at once. Handlers are dropped at an await point, and nothing is
    /// saved. Only a callback that blocks a
    /// [dedicated thread](crate::shared_informer::HandlerBuilder::dedicated_thread) continues to run.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> Result<Ended, InformerError> {
        self.phase.send_replace(Phase::Running);
        let mut guests = std::mem::take(&mut self.guests);
        let mut reflecting = JoinSet::new();
        let ran = self.reflect_until(shutdown, &mut guests, &mut reflecting);
        let ran = ran.await;
        let mut failure = ran.err().map(|cause| self.report.fail(cause));
        reflecting.shutdown().await;
        let mut last = Vec::new();
        if failure.is_none() {
            for guest in &mut guests {
                last.extend(guest.end().await);
            }
        }
        let closing = self.drain.map_or(Closing::Discard, |drain| {
            Closing::Drain(clock::from_now(drain))
        });
        self.phase.send_replace(Phase::Stopping(closing));
        let (serving, report) = (&mut self.serving, &self.report);
        let ending = async {
            while let Some(ended) = serving.join_next().await {
                if let Some(cause) = loop_end(ended) {
                    failure = Some(report.fail(cause));
                }
            }
        };
        tokio::join!(future::join_all(last), ending);
        match failure {
            Some(failure) => Err(InformerError::clone(&failure)),
            None => Ok(Ended {
                discarded: self.report.status.reader().get().discarded,
            }),
        }
    }

    /// Runs the reflectors and the guests (consistency check and warm start) until `shutdown` resolves.
    ///
    /// Restarts the reflectors when the server starts or stops serving the informer's kind. The caller must
    /// stop the tasks that are left in `reflecting`.
    async fn reflect_until(
        &mut self,
        shutdown: impl Future<Output = ()>,
        guests: &mut [Box<dyn Guest<K>>],
        reflecting: &mut JoinSet<FailureCause>,
    ) -> Result<(), FailureCause> {
        let mut shutdown = pin!(shutdown);
        tokio::select! {
            biased;
            () = &mut shutdown => return Ok(()),
            begun = caught(begin(guests, &mut self.reflectors)) => begun?,
        }
        let mut following = self.following.take();
        *reflecting = self.reflect(Availability::Active, None);
        let mut guests = pin!(run(guests));
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                Some(ended) = self.serving.join_next() => return Err(ended_early(ended)),
                Some(ended) = reflecting.join_next() => {
                    return Err(self.reflector_end(ended).await);
                }
                availability = availability::next(following.as_mut()) => {
                    tracing::info!(informer = %self.report.name, ?availability, "the definition of the kind changed");
                    reflecting.shutdown().await;
                    *reflecting = self.reflect(availability, Some(RelistReason::ServedAgain));
                }
                failed = &mut guests => return Err(failed),
            }
        }
    }

    fn reflect(
        &mut self,
        availability: Availability,
        relists: Option<RelistReason>,
    ) -> JoinSet<FailureCause> {
        let mut reflecting = JoinSet::new();
        for template in &mut self.reflectors {
            let mut reflector = template.again(relists);
            // Only the first start resumes from the saved revision.
            reflector.from = template.from.take();
            let part = format!(
                "the reflector of {}",
                reflector.lister_watcher.description()
            );
            let running = async move {
                match availability {
                    Availability::Active => reflector.run_inside().await,
                    Availability::Dormant => reflector.lie_dormant().await,
                }
            };
            let running = running.instrument(self.report.span.clone());
            reflecting.spawn(async move { end_of(&part, running).await });
        }
        reflecting
    }

    /// Returns the cause of the informer's failure after the task of a reflector has ended unexpectedly.
    async fn reflector_end(&mut self, ended: Result<FailureCause, JoinError>) -> FailureCause {
        let cause = ended.unwrap_or_else(|error| cancelled("a reflector", &error));
        // A reflector returns when the loop has ended; the cause of the loop's end is more specific.
        if matches!(cause, FailureCause::Returned { .. })
            && let Some(ended) = self.serving.join_next().await
        {
            return ended_early(ended);
        }
        cause
    }
}

async fn begin<K>(guests: &mut [Box<dyn Guest<K>>], reflectors: &mut [InnerReflector<K>]) {
    for guest in guests {
        guest.begin(reflectors).await;
    }
}

/// Runs all guests until one panics, and returns the panic.
async fn run<K>(guests: &mut [Box<dyn Guest<K>>]) -> FailureCause {
    let running = guests.iter_mut().map(|guest| caught(guest.run()));
    match future::try_join_all(running).await {
        Err(cause) => cause,
        Ok(_) => future::pending().await,
    }
}

/// Runs `work`, and returns a panic of `work` as an error.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, FailureCause> {
    let worked = AssertUnwindSafe(work).catch_unwind().await;
    worked.map_err(|panic| FailureCause::panicked(RUN, &*panic))
}

/// Returns the cause if the task of the informer's loop failed, or `None` after a regular end.
fn loop_end(ended: Result<Option<FailureCause>, JoinError>) -> Option<FailureCause> {
    ended.unwrap_or_else(|error| Some(cancelled(LOOP, &error)))
}

/// Returns the reason why the informer's loop ended without a shutdown signal. Such an end is a failure.
fn ended_early(ended: Result<Option<FailureCause>, JoinError>) -> FailureCause {
    loop_end(ended).unwrap_or_else(|| FailureCause::Returned {
        part: Arc::from(LOOP),
    })
}

/// Returns the failure for a cancelled task that ran `part`.
///
/// Tasks catch their panics, so a [`JoinError`] always means a cancelled task.
fn cancelled(part: &str, _: &JoinError) -> FailureCause {
    FailureCause::Cancelled {
        part: Arc::from(part),
    }
}
