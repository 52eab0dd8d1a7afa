//! Tests the times at which a `RotatingClient` replaces its client, and the number of clients it creates.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use futures_util::future::join_all;
use k8s_openapi::jiff::Timestamp;
use kube_informer_apiserver::Server;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

/// Counter of created clients. All clones of the counter share one number.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn one_more(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn made_by(server: &Server, count: &Count) -> RotatingClientBuilder {
    let (server, count) = (server.clone(), count.clone());
    RotatingClient::builder(move || {
        count.one_more();
        let client = server.client();
        async move { Ok::<_, Error>(client) }
    })
}

#[tokio::test(start_paused = true)]
async fn concurrent_requests_create_one_client() {
    let (server, count) = (Server::builder().build(), Count::default());
    let (made, client) = (count.clone(), server.client());
    let rotating = RotatingClient::new(move || {
        let (made, client) = (made.clone(), client.clone());
        async move {
            tokio::time::sleep(MINUTE).await;
            made.one_more();
            Ok::<_, Error>(client)
        }
    });
    let got = join_all((0..100).map(|_| rotating.client())).await;
    assert!(got.iter().all(Result::is_ok));
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_leaves_the_creation_to_the_next() {
    let (server, count) = (Server::builder().build(), Count::default());
    let (made, client) = (count.clone(), server.client());
    let rotating = RotatingClient::new(move || {
        made.one_more();
        let client = client.clone();
        async move {
            tokio::time::sleep(MINUTE).await;
            Ok::<_, Error>(client)
        }
    });
    let stopped = tokio::time::timeout(Duration::from_secs(1), rotating.client()).await;
    assert!(stopped.is_err());
    assert!(rotating.client().await.is_ok());
    assert_eq!(count.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_replaced_a_minute_before_it_expires() {
    let (server, count) = (Server::builder().build(), Count::default());
    let (made, begun) = (count.clone(), Instant::now());
    let rotating = RotatingClient::builder(move || {
        made.one_more();
        let expires = SystemTime::UNIX_EPOCH + begun.elapsed() + 10 * MINUTE;
        let expires = Timestamp::try_from(expires).unwrap();
        let client = server.client().with_valid_until(Some(expires));
        async move { Ok::<_, Error>(client) }
    })
    .wall_clock(move || SystemTime::UNIX_EPOCH + begun.elapsed())
    .build();
    rotating.client().await.unwrap();
    tokio::time::advance(8 * MINUTE + Duration::from_secs(59)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_created_expired_is_replaced_after_ten_seconds() {
    let (server, count) = (Server::builder().build(), Count::default());
    let made = count.clone();
    let rotating = RotatingClient::new(move || {
        made.one_more();
        let client = server
            .client()
            .with_valid_until(Some(Timestamp::UNIX_EPOCH));
        async move { Ok::<_, Error>(client) }
    });
    for _ in 0..10 {
        rotating.client().await.unwrap();
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(count.get(), 1);
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_replaced_at_its_maximum_age() {
    let (server, count) = (Server::builder().build(), Count::default());
    let rotating = made_by(&server, &count).max_age(5 * MINUTE).build();
    let clone = rotating.clone();
    rotating.client().await.unwrap();
    tokio::time::advance(4 * MINUTE + Duration::from_secs(59)).await;
    clone.client().await.unwrap();
    assert_eq!(count.get(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    clone.client().await.unwrap();
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_replace_the_client_at_most_every_ten_seconds() {
    let (server, count) = (Server::builder().build(), Count::default());
    let rotating = made_by(&server, &count).build();
    let refused = Error::new(Class::Unauthorized, "");
    rotating.client().await.unwrap();
    for _ in 0..9 {
        tokio::time::advance(Duration::from_secs(1)).await;
        rotating.failed(&refused);
        rotating.client().await.unwrap();
    }
    assert_eq!(count.get(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_connection_replaces_a_client_that_is_a_minute_old() {
    let (server, count) = (Server::builder().build(), Count::default());
    let rotating = made_by(&server, &count).build();
    let unconnected = Error::new(Class::Connection, "");
    rotating.client().await.unwrap();
    tokio::time::advance(Duration::from_secs(59)).await;
    rotating.failed(&unconnected);
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2);
    let forbidden = Error::new(Class::Forbidden, "");
    tokio::time::advance(10 * MINUTE).await;
    rotating.failed(&forbidden);
    rotating.client().await.unwrap();
    assert_eq!(
        count.get(),
        2,
        "an unrelated error does not replace the client"
    );
}

/// Returns a builder that counts the created clients. Each client expires 30 minutes after its creation.
///
/// `begun` is the time at which the wall clock of the test shows the Unix epoch.
fn expiring(begun: Instant, server: &Server, count: &Count) -> RotatingClientBuilder {
    let (server, count) = (server.clone(), count.clone());
    RotatingClient::builder(move || {
        count.one_more();
        let expires = SystemTime::UNIX_EPOCH + begun.elapsed() + 30 * MINUTE;
        let expires = Timestamp::try_from(expires).unwrap();
        let client = server.client().with_valid_until(Some(expires));
        async move { Ok::<_, Error>(client) }
    })
}

#[tokio::test(start_paused = true)]
async fn of_age_expiry_and_rejection_the_earliest_applies() {
    let (server, count, begun) = (Server::builder().build(), Count::default(), Instant::now());
    let rotating = expiring(begun, &server, &count)
        .max_age(5 * MINUTE)
        .wall_clock(move || SystemTime::UNIX_EPOCH + begun.elapsed())
        .build();
    rotating.client().await.unwrap();
    tokio::time::advance(4 * MINUTE + Duration::from_secs(59)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 1);
    tokio::time::advance(Duration::from_secs(1)).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2, "replaced for its age, before its expiry");
    tokio::time::advance(MINUTE).await;
    rotating.failed(&Error::new(Class::Unauthorized, ""));
    rotating.client().await.unwrap();
    assert_eq!(
        count.get(),
        3,
        "replaced for a rejection, before its maximum age"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_that_expires_while_the_machine_sleeps_is_replaced() {
    let (server, count, begun) = (Server::builder().build(), Count::default(), Instant::now());
    let asleep = Arc::new(AtomicU64::new(0));
    let slept = Arc::clone(&asleep);
    let rotating = expiring(begun, &server, &count)
        .wall_clock(move || {
            let slept = Duration::from_secs(slept.load(Ordering::Relaxed));
            SystemTime::UNIX_EPOCH + begun.elapsed() + slept
        })
        .build();
    rotating.client().await.unwrap();
    // No other clock advances meanwhile.
    asleep.store(3600, Ordering::Relaxed);
    rotating.client().await.unwrap();
    tokio::time::advance(REFUSED_MIN).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_replaced_client_does_not_affect_the_new_one() {
    let (server, count) = (Server::builder().build(), Count::default());
    let made = count.clone();
    let rotating = RotatingClient::new(move || {
        let (nth, client) = (made.one_more(), server.client());
        async move {
            if nth > 1 {
                return Ok::<_, Error>(client);
            }
            tokio::time::sleep(MINUTE + Duration::from_secs(10)).await;
            Ok(client.with_valid_until(Some(Timestamp::UNIX_EPOCH)))
        }
    });
    let late = rotating.client();
    let others = async {
        tokio::time::sleep(MINUTE).await;
        rotating.client().await.unwrap();
    };
    tokio::join!(late, others).0.unwrap();
    assert_eq!(count.get(), 2);
    tokio::time::advance(10 * MINUTE).await;
    rotating.client().await.unwrap();
    assert_eq!(count.get(), 2, "only the first client has expired");
}

#[tokio::test(start_paused = true)]
async fn the_pause_after_a_failed_creation_counts_from_its_start() {
    let count = Count::default();
    let made = count.clone();
    let rotating = RotatingClient::new(move || {
        made.one_more();
        async {
            tokio::time::sleep(REFUSED_MIN).await;
            Err("no")
        }
    });
    for nth in 1..=3 {
        assert!(rotating.client().await.is_err());
        assert_eq!(count.get(), nth);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_creation_is_an_error_and_is_retried_after_ten_seconds() {
    let (server, count) = (Server::builder().build(), Count::default());
    let (made, client) = (count.clone(), server.client());
    let rotating = RotatingClient::new(move || {
        let (nth, client) = (made.one_more(), client.clone());
        async move {
            match nth {
                1 => Err("no such file"),
                2 => panic!("a bug in the user's code"),
                _ => Ok(client),
            }
        }
    });
    for _ in 0..2 {
        let error = rotating.client().await.err().unwrap();
        assert_eq!(error.class(), Class::Unauthorized);
        assert_eq!(count.get(), 1);
    }
    tokio::time::advance(REFUSED_MIN).await;
    let error = rotating.client().await.err().unwrap();
    let cause = std::error::Error::source(&error).unwrap();
    assert_eq!(cause.to_string(), "it panicked");
    tokio::time::advance(REFUSED_MIN).await;
    assert!(rotating.client().await.is_ok());
    assert_eq!(count.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_hung_creation_is_replaced_after_a_minute() {
    let (server, count) = (Server::builder().build(), Count::default());
    let (made, client) = (count.clone(), server.client());
    let rotating = RotatingClient::new(move || {
        let (nth, client) = (made.one_more(), client.clone());
        async move {
            if nth == 1 {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(client)
        }
    });
    let within = |seconds| tokio::time::timeout(Duration::from_secs(seconds), rotating.client());
    assert!(within(59).await.is_err());
    assert!(within(1).await.is_err(), "the creation may still complete");
    assert_eq!(count.get(), 1);
    assert!(within(1).await.is_ok());
    assert_eq!(count.get(), 2);
}
