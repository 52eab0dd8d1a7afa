//! The life of an informer: what begins and ends when, and in which order.

use std::{
    future::Future,
    pin::{Pin, pin},
};

use kube_core::Resource;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::{
    Controller, Phase, WarmUp, consistency,
    served::{Turn, next_turn},
    warm_up,
};
use crate::{clock, metrics::RelistReason, processor::Closing};

impl<K> Controller<K>
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    /// Lists and watches until `shutdown` resolves, and returns when every task of the informer has
    /// ended: first the reflectors, then the loop, then the handlers. A callback in progress ends
    /// first. With a [saved store](crate::warm_start), it is loaded before and saved at the end.
    ///
    /// An informer runs once, which the compiler sees to:
    ///
    /// ```
    /// # async fn example(controller: kube_informer::Controller<k8s_openapi::api::core::v1::Pod>) {
    /// controller.run(std::future::pending()).await;
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0382
    /// # async fn example(controller: kube_informer::Controller<k8s_openapi::api::core::v1::Pod>) {
    /// controller.run(std::future::pending()).await;
    /// controller.run(std::future::pending()).await; // it was moved
    /// # }
    /// ```
    ///
    /// # Cancel safety
    /// Dropping the future aborts all tasks at once; handlers are cut off at an await, and nothing is
    /// saved. Nothing is left running, except a callback that blocks a thread of its own.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        self.phase.send_replace(Phase::Running);
        let warm_up = self.warm_up.take();
        let mut reflecting = JoinSet::new();
        tokio::select! {
            biased;
            () = &mut shutdown => {}
            () = warm_up::begin(warm_up.as_ref(), &mut self.reflectors) => {
                reflecting = self.reflect_until(shutdown, warm_up.as_ref()).await;
            }
        }
        reflecting.shutdown().await;
        // Asked for while the loop still answers, and written while the handlers end.
        let last = match &warm_up {
            Some(warm_up) => Some((warm_up, warm_up.moment().await)),
            None => None,
        };
        let closing = self.drain.map_or(Closing::Discard, |drain| {
            Closing::Drain(clock::from_now(drain))
        });
        self.phase.send_replace(Phase::Stopping(closing));
        let saving = async {
            if let Some((warm_up, moment)) = last {
                warm_up.save_moment(moment).await;
            }
        };
        let ending = async { while self.serving.join_next().await.is_some() {} };
        tokio::join!(saving, ending);
    }

    /// Lets the reflectors run in turns; what runs at the end.
    async fn reflect_until(
        &mut self,
        mut shutdown: Pin<&mut impl Future<Output = ()>>,
        warm_up: Option<&WarmUp<K>>,
    ) -> JoinSet<()> {
        let mut following = self.following.take();
        let mut reflecting = self.reflect(Turn::Reflect, None);
        let mut saving = pin!(warm_up::save_every_so_often(warm_up));
        let check = self.consistency_check.take();
        let mut checking = pin!(consistency::check_every_so_often(check));
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                _ = self.serving.join_next() => {
                    tracing::error!(informer = %self.report.name, "the informer's loop ended by itself");
                    break;
                }
                _ = reflecting.join_next() => {
                    tracing::error!(informer = %self.report.name, "a reflector ended by itself");
                    break;
                }
                turn = next_turn(following.as_mut()) => {
                    tracing::info!(informer = %self.report.name, ?turn, "the definition of the kind changed");
                    reflecting.shutdown().await;
                    reflecting = self.reflect(turn, Some(RelistReason::ServedAgain));
                }
                () = &mut saving => {}
                () = &mut checking => {}
            }
        }
        reflecting
    }

    fn reflect(&mut self, turn: Turn, relists: Option<RelistReason>) -> JoinSet<()> {
        let mut reflecting = JoinSet::new();
        for template in &mut self.reflectors {
            let mut reflector = template.again(relists);
            // What was saved is where the first turn goes on from, and no other.
            reflector.from = template.from.take();
            let span = self.report.span.clone();
            match turn {
                Turn::Reflect => reflecting.spawn(reflector.run_inside().instrument(span)),
                Turn::Rest => reflecting.spawn(reflector.rest().instrument(span)),
            };
        }
        reflecting
    }
}
