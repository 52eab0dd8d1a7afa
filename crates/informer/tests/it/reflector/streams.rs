//! Watches whose bytes come otherwise than from a healthy server at its ease.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::reflector::{Delta, Reflector, ReflectorStore, StoreError};
use tokio::time::sleep;

use super::MINUTE;
use crate::{
    script::{Answer, Script, Then, body, event, list, pod},
    setting::Trace,
};

/// Takes so long for the first object.
struct Slow(Option<Duration>);

impl ReflectorStore<Pod> for Slow {
    async fn accept(&mut self, delta: Delta<Pod>) -> Result<(), StoreError> {
        if delta.object().is_some()
            && let Some(pause) = self.0.take()
        {
            sleep(pause).await;
        }
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_slower_than_the_watch_may_last_is_no_dead_connection() {
    let second = Duration::from_secs(1);
    let events = event("ADDED", &pod("a", 6)) + &event("ADDED", &pod("b", 7));
    for (ends_after, failure) in [
        (11 * MINUTE + 29 * second, ""),
        (
            11 * MINUTE + 31 * second,
            "the watch outlived its time-out; its connection is taken for dead\n",
        ),
    ] {
        let script = Script::new([
            body(list(5, "", &[])),
            Answer::Body(events.clone(), Then::EndsAfter(ends_after)),
        ]);
        let errors = Trace::default();
        let heard = errors.clone();
        let reflector = Reflector::builder(script.clone())
            .on_error(move |error| heard.note(error.to_string()))
            .into_store(Slow(Some(11 * MINUTE)));
        reflector.run(sleep(12 * MINUTE)).await;
        assert_eq!(errors.take(), failure);
        assert_eq!(script.requests.take(), "list 0\nwatch 5\nwatch 7\n");
    }
}
