//! Tests sequences of several consistency checks of one informer.
//!
//! In some tests, the objects change during a check. In other tests, a relist does not repair the difference
//! between cache and server, or the informer is stopped during a check.

use std::{num::NonZeroUsize, pin::pin};

use expect_test::expect;
use futures_util::FutureExt;
use kube_informer::{queue::InOrder, shared_informer::ListenerBuffer};
use proptest::{prelude::*, test_runner::Config};
use tokio::{sync::Semaphore, task::yield_now, time::advance};

use super::*;
use crate::{
    script::{Answer, Script, body, hangs, list, pod as item},
    stops::{alive, until_gone},
};

const SECOND: Duration = Duration::from_secs(1);

/// Period of the consistency checks in tests with scripted responses.
const MINUTE: Duration = Duration::from_secs(60);

/// One random step: a write, a pause in milliseconds, or a fault of the server.
#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Update(u8),
    Delete(u8),
    Pass(u16),
    CutWatches,
    ExpireHistory,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_u8).prop_map(Step::Create),
        6 => (0..6_u8).prop_map(Step::Update),
        3 => (0..6_u8).prop_map(Step::Delete),
        6 => (0..1000_u16).prop_map(Step::Pass),
        1 => Just(Step::CutWatches),
        1 => Just(Step::ExpireHistory),
    ]
}

impl Step {
    /// Executes the step. Ignores the server's errors about existing or missing pods.
    async fn take(self, server: &Server) {
        let name = |n: u8| format!("p{n}");
        let taken = match self {
            Self::Create(n) => server.create(pod(&name(n))),
            Self::Update(n) => server.update(labelled(&name(n), &server.revision().to_string())),
            Self::Delete(n) => server.delete("v1", "pods", &format!("default/{}", name(n))),
            Self::Pass(millis) => return sleep(Duration::from_millis(millis.into())).await,
            Self::CutWatches => return server.faults().cut_watches(),
            Self::ExpireHistory => return server.faults().expire_history(),
        };
        drop(taken);
    }
}

/// Executes the steps during consistency checks. Asserts that the cache finally equals the server's state.
///
/// Returns three numbers: checks without a difference, checks with a difference, and failed checks.
async fn churn(steps: Vec<Step>, by_key: bool) -> [u64; 3] {
    let server = Server::builder().seed([pod("p0"), pod("p1")]).build();
    let source = |namespace| ListWatch::<Pod>::new(server.client()).namespace(namespace);
    let building = SharedInformer::builder(source("default"))
        .source(source("empty"))
        .rng_seed(steps.len() as u64)
        .consistency_check(SECOND);
    let informer = run(if by_key {
        building.queue(DeltaFifo::new())
    } else {
        building.queue(InOrder::new().batch_size(2))
    });
    informer.pods.wait_for_sync().deadline(LONG).await.unwrap();
    for step in steps {
        step.take(&server).await;
    }
    sleep(100 * SECOND).await;
    assert_eq!(in_cache(&informer.pods), on_server(&server));
    let counts = counts(&informer.pods);
    informer.stop().await;
    counts
}

proptest! {
    #![proptest_config(Config::with_cases(48))]
    #[test]
    fn what_changes_while_it_is_compared_is_no_difference(
        steps in proptest::collection::vec(step(), 1..200),
        by_key in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let [same, different, _] = runtime.block_on(churn(steps, by_key));
        prop_assert_eq!(different, 0);
        prop_assert!(same > 100);
    }
}

/// The server's list in each check except check 8 contains pod `b`, which no relist contains.
///
/// While the difference stays the same, the number of checks between two relists grows: the informer relists
/// after checks 1, 2 and 4. A new difference causes a relist at once. Check 7 finds a new difference, because
/// `b` has another revision. Check 9 finds a new difference, because check 8 found none.
#[tokio::test(start_paused = true)]
async fn a_difference_that_relists_do_not_resolve_is_relisted_with_growing_pauses() {
    let kept = || body(list(5, "", &[item("a", 1)]));
    let more = |revision| body(list(5, "", &[item("a", 1), item("b", revision)]));
    let watch = || hangs(String::new());
    let script = Script::new([
        kept(),
        watch(),
        more(2),
        kept(),
        watch(),
        more(2),
        kept(),
        watch(),
        more(2),
        more(2),
        kept(),
        watch(),
        more(2),
        more(2),
        more(3),
        kept(),
        watch(),
        kept(),
        more(3),
        kept(),
        watch(),
    ]);
    let errors = Trace::default();
    let noted = errors.clone();
    let informer = run(SharedInformer::<Pod>::builder(script.clone())
        .rng_seed(1)
        .consistency_check(MINUTE)
        .on_error(move |error| noted.note(error.to_string())));
    sleep(8 * MINUTE).await;
    let requests = script.log.take();
    let requests: String = requests
        .lines()
        .filter_map(|line| line.split_once(": "))
        .flat_map(|(_, request)| [request, "\n"])
        .collect();
    expect![[r#"
        list resourceVersion=0 limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
        list limit=500
        watch resourceVersion=5
        list resourceVersion=5 resourceVersionMatch=Exact limit=500
    "#]]
    .assert_eq(&requests);
    assert_eq!(errors.take().lines().count(), 3, "each is reported once");
    assert_eq!(script.unasked(), 0);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_response_at_another_revision_is_not_compared() {
    let script = Script::new([
        body(list(5, "", &[item("a", 1)])),
        hangs(String::new()),
        body(list(6, "", &[item("b", 6)])),
    ]);
    let informer = run(SharedInformer::<Pod>::builder(script.clone())
        .rng_seed(1)
        .consistency_check(MINUTE));
    sleep(MINUTE).await;
    let outcome = outcome(&informer.pods);
    assert_eq!((outcome.different, outcome.failed), (0, 1));
    assert_eq!(
        outcome.last_failure.unwrap().to_string(),
        "the list was requested at revision 5, and the server responded at 6"
    );
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn unordered_revisions_are_not_compared() {
    let opaque = list(5, "", &[]).replace(r#""resourceVersion":"5""#, r#""resourceVersion":"v5""#);
    let script = Script::new([body(opaque), hangs(String::new())]);
    let informer = run(SharedInformer::<Pod>::builder(script.clone())
        .rng_seed(1)
        .consistency_check(MINUTE));
    sleep(3 * MINUTE).await;
    assert_eq!(script.requests.len(), 2);
    assert_eq!(counts(&informer.pods), [0; 3]);
    informer.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_continue_token_fails_the_check() {
    let page = || body(list(5, "again", &[item("a", 1)]));
    let script = Script::new([
        body(list(5, "", &[item("a", 1)])),
        hangs(String::new()),
        page(),
        page(),
        Answer::Never,
    ]);
    let informer = run(SharedInformer::<Pod>::builder(script.clone())
        .rng_seed(1)
        .consistency_check(MINUTE));
    sleep(MINUTE).await;
    let outcome = outcome(&informer.pods);
    assert_eq!((outcome.same, outcome.failed), (0, 1));
    assert_eq!(outcome.last_failure.unwrap().class(), Class::Protocol);
    informer.stop().await;
}

/// A `DeltaFifo` does not keep the order of changes to different objects. Until the `DeltaFifo` is empty, the
/// cache can be in a state that the server never had.
#[tokio::test(start_paused = true)]
async fn a_check_waits_until_a_delta_fifo_is_empty() {
    for seed in 0..8 {
        let server = Server::builder().build();
        let informer = run(builder(&server)
            .rng_seed(seed)
            .queue(DeltaFifo::new())
            .consistency_check(4 * SECOND));
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        informer
            .pods
            .on_add(move |_, _| {
                let held = Arc::clone(&held);
                async move { held.acquire().await.unwrap().forget() }
            })
            .buffer(ListenerBuffer::Block(NonZeroUsize::MIN))
            .register()
            .unwrap();
        informer.pods.wait_for_sync().await.unwrap();
        sleep(SECOND).await;
        for name in ["heard", "buffered", "queued"] {
            server.create(pod(name)).unwrap();
        }
        sleep(SECOND * 5 / 2).await;
        assert_eq!(
            informer.pods.indexer().len(),
            2,
            "the last change is queued"
        );
        assert_eq!(counts(&informer.pods), [0; 3], "seed {seed}");
        // The check is due now or in half a second, and the queue is empty.
        gate.add_permits(3);
        sleep(SECOND).await;
        assert_eq!(counts(&informer.pods), [1, 0, 0], "seed {seed}");
        informer.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_at_any_await_of_a_check_leaves_no_task() {
    let server = Server::builder()
        .seed((0..1200).map(|n| pod(&format!("p{n}"))))
        .faults("list pods: split every 20000 bytes")
        .unwrap()
        .build();
    let client = server.client();
    sleep(SECOND).await;
    let baseline = alive();
    let mut complete = false;
    for at in 0.. {
        server.requests().clear();
        let source = ListWatch::<Pod>::new(client.clone());
        let (pods, controller) = SharedInformer::<Pod>::builder(source)
            .rng_seed(1)
            .initial_list(kube_informer::InitialList::List)
            .consistency_check(PERIOD)
            .build();
        {
            let mut running = pin!(controller.run(std::future::pending()));
            while !pods.has_synced() {
                assert!(running.as_mut().now_or_never().is_none());
                yield_now().await;
            }
            for _ in 0..20 {
                assert!(running.as_mut().now_or_never().is_none());
                yield_now().await; // until it watches
            }
            assert!(checks(&server).is_empty());
            advance(PERIOD).await;
            for _ in 0..at {
                assert!(running.as_mut().now_or_never().is_none());
                yield_now().await;
            }
            complete = complete || counts(&pods) == [1, 0, 0];
        }
        assert!(
            until_gone(baseline).await,
            "{} tasks are left, dropped at {at}",
            alive() - baseline
        );
        if complete {
            assert!(at > 5, "the check has more steps than {at}");
            assert_eq!(checks(&server).len(), 3);
            return;
        }
    }
}
