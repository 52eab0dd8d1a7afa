//! Tests that a read fails at its own deadline instead of the deadline of an earlier read, and that a
//! received chunk is returned even if the deadline has passed.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::*;

/// Returns a body, and the channel sender that supplies the chunks of the body.
fn body() -> (mpsc::Sender<Bytes>, Body) {
    let (sender, mut receiver) = mpsc::channel(1);
    let chunks = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    (sender, Body::new(chunks.map(Ok).boxed().into()).unwrap())
}

fn after(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn only_the_latest_deadline_applies() {
    let (sender, mut body) = body();
    let begun = Instant::now();
    assert!(body.next(Some(after(10))).now_or_never().is_none());
    // This deadline is later than the deadline of the timer.
    body.next(Some(after(30))).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
    // This deadline is earlier than the deadline of the timer.
    assert!(body.next(Some(after(30))).now_or_never().is_none());
    body.next(Some(after(5))).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(35));
    // No deadline applies, although the timer fires.
    assert!(body.next(Some(after(5))).now_or_never().is_none());
    tokio::select! {
        biased;
        _ = body.next(None) => panic!("no chunk was sent"),
        () = sleep(Duration::from_secs(60)) => {}
    }
    body.next(Some(after(1))).await.unwrap_err();
    drop(sender);
    assert!(body.next(None).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn received_bytes_are_returned_before_a_passed_deadline() {
    let (sender, mut body) = body();
    let deadline = after(1);
    sleep(Duration::from_secs(2)).await;
    sender.try_send(Bytes::from_static(b"a")).unwrap();
    let chunk = body.next(Some(deadline)).await.unwrap().unwrap().unwrap();
    assert_eq!(chunk, "a");
    body.next(Some(deadline)).await.unwrap_err();
}
