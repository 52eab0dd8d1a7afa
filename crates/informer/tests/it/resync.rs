//! Tests of resyncs. The cached objects pass through the queue again, and each handler receives them at its
//! own resync period. A resync sends no request to the server.

use std::time::Duration;

use expect_test::expect;
use kube_informer::queue::DeltaFifo;
use kube_informer_apiserver::Server;
use tokio::time::sleep;

use crate::{
    logs::Logs,
    setting::{Trace, builder, labelled, listing, pod, requests, run},
};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn each_handler_is_resynced_at_its_own_period_and_no_request_is_sent() {
    for delta_fifo in [false, true] {
        let server = Server::builder().seed([pod("a")]).build();
        let mut informer = listing(&server).resync(SECOND);
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let traces = [0, 2, 3].map(|period| {
            let trace = Trace::default();
            let period = Duration::from_secs(period);
            informer
                .pods
                .handler(trace.clone())
                .resync(period)
                .register()
                .unwrap();
            trace
        });
        informer.caught_up(&server).await;
        let initial = traces.each_ref().map(|trace| trace.take().lines().count());
        assert_eq!(initial, [2, 2, 2]);

        let resync = "update default/a@1 → 1 (resync)\n";
        let mut heard = Vec::new();
        sleep(Duration::from_millis(500)).await;
        for _ in 1..=6 {
            sleep(SECOND).await;
            heard.push(traces.each_ref().map(|trace| trace.take() == resync));
        }
        let expected = [
            [false, false, false],
            [false, true, false],
            [false, false, true],
            [false, true, false],
            [false, false, false],
            [false, true, true],
        ];
        assert_eq!(heard, expected, "DeltaFifo: {delta_fifo}");
        assert_eq!(requests(&server).lines().count(), 2, "one list, one watch");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn unchanged_objects_of_a_relist_are_delivered_only_to_handlers_with_resync() {
    for delta_fifo in [false, true] {
        let server = Server::builder().seed([pod("a"), pod("b")]).build();
        let mut informer = builder(&server).resync(SECOND);
        if delta_fifo {
            informer = informer.queue(DeltaFifo::new());
        }
        let informer = run(informer);
        let (without, with) = (Trace::default(), Trace::default());
        informer
            .pods
            .handler(without.clone())
            .resync(Duration::ZERO)
            .register()
            .unwrap();
        informer
            .pods
            .handler(with.clone())
            .resync(SECOND)
            .register()
            .unwrap();
        informer.caught_up(&server).await;
        sleep(Duration::from_millis(1500)).await;
        without.take();
        with.take();

        server.faults().cut_watches();
        server.update(labelled("b", "x")).unwrap();
        server.faults().expire_history();
        informer.caught_up(&server).await;
        assert_eq!(without.take(), "update default/b@2 → 3 (relist)\n");
        expect![[r#"
            update default/a@1 → 1 (relist)
            update default/b@2 → 3 (relist)
        "#]]
        .assert_eq(&with.take());
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_without_resync_resyncs_no_handler() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server));
    let trace = Trace::default();
    informer
        .pods
        .handler(trace.clone())
        .resync(SECOND)
        .register()
        .unwrap();
    informer.caught_up(&server).await;
    trace.take();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(trace.take(), "");
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_resync_is_logged_only_if_a_handler_is_due() {
    let server = Server::builder().seed([pod("a")]).build();
    let informer = run(builder(&server).resync(SECOND));
    let logs = Logs::capture();
    let log = || {
        let text = logs.take();
        let forced = text.lines().filter(|line| line.contains("forcing"));
        forced
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    sleep(3 * SECOND).await;
    assert_eq!(log(), [""; 0], "no handler is due");
    Trace::default().listen(&informer.pods);
    sleep(2 * SECOND + SECOND / 2).await;
    let lines = log();
    let expected = "DEBUG forcing a resync informer=pods expects=v1 Pod";
    assert!(
        !lines.is_empty() && lines.iter().all(|line| line == expected),
        "{lines:?}"
    );
    informer.stop().await;
}
