//! Tests the removal of a handler while the handler is processing an event.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::shared_informer::{ListenerBuffer, Registration};
use kube_informer_apiserver::Server;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

use super::{cached, stuck};
use crate::setting::{LONG, Trace, builder, pod, run};

// Not in paused time, because it would advance while the handler's own thread runs.
#[tokio::test]
async fn a_handler_that_awaits_its_own_removal_ends_after_the_current_callback() {
    for own_thread in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let informer = run(builder(&server));
        let own: Arc<Mutex<Option<Registration<Pod>>>> = Arc::default();
        let (heard, mine) = (Trace::default(), Arc::clone(&own));
        let notes = heard.clone();
        let handler = informer.pods.on_add(move |pod, _| {
            let (notes, own) = (notes.clone(), mine.lock().take());
            async move {
                if let Some(own) = own {
                    own.remove().await;
                }
                notes.note(pod.name());
            }
        });
        let registered = if own_thread {
            handler.dedicated_thread().register()
        } else {
            handler.register()
        };
        *own.lock() = Some(registered.unwrap());
        informer.caught_up(&server).await;
        assert_eq!(
            heard.take(),
            "a\n",
            "its callback ends, and no other callback follows"
        );
        // The thread of the handler has no more events a moment before it ends.
        let gone = async {
            while !informer.pods.handlers().is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LONG, gone).await.expect("the handler ends");
        timeout(LONG, informer.stop()).await.expect("the stop ends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dropped_removal_continues_and_one_never_polled_leaves_the_handler_registered() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let (gate, heard, removed) = stuck(&informer, ListenerBuffer::Grow, 0);
    let (stays, detached) = (Trace::default(), Trace::default());
    let never_polled = detached.listen(&informer.pods).remove();
    stays.listen(&informer.pods);
    cached(&informer, &server).await;
    drop(never_polled);
    assert!(removed.remove().now_or_never().is_none());
    gate.add_permits(10);
    informer.caught_up(&server).await;
    assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    assert_eq!(informer.pods.handlers().len(), 2);
    assert_eq!((stays.len(), detached.len()), (2, 2));
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_removal_and_stop_both_end_with_the_callback() {
    for removal_first in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let informer = run(builder(&server));
        let (gate, heard, handler) = stuck(&informer, ListenerBuffer::Grow, 0);
        cached(&informer, &server).await;
        let mut removed = std::pin::pin!(handler.remove());
        let mut stopped = std::pin::pin!(informer.stop());
        if removal_first {
            assert!(removed.as_mut().now_or_never().is_none());
        }
        assert!(stopped.as_mut().now_or_never().is_none());
        sleep(Duration::from_secs(1)).await;
        assert!(removed.as_mut().now_or_never().is_none());
        gate.add_permits(10);
        let both = async { tokio::join!(removed, stopped) };
        timeout(LONG, both)
            .await
            .expect("the removal and the stop end");
        assert_eq!(heard.take(), "add default/a@1 (initial)\n");
    }
}
