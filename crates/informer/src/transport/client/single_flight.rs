//! [`SingleFlight`] sends the first request of a client alone. Other requests wait until the response to the
//! first request arrives, but for at most 5 s ([`WAIT_MAX`]).
//!
//! Without `SingleFlight`, hyper's connection pool opens a connection for each concurrent request, because
//! the pool does not know yet that one HTTP/2 connection serves all requests.
//!
//! Guarantees:
//! - Until the response headers of the first request arrive, only this request is in flight. The exception is
//!   a request that has waited for 5 s.
//! - After a failed request, or after an error in a response body, the next request is sent alone again.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_core::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::Mutex;
use tower::{BoxError, Service};

/// Maximum time that a request waits while another request of the client is sent alone.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Tower service that sends the first request alone. Other requests wait for the response, but at most for
/// [`WAIT_MAX`].
///
/// After a request or a response body has failed, the next request counts as the first one.
#[derive(Clone)]
pub(super) struct SingleFlight<S> {
    inner: S,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    /// Whether requests are sent at once. If `false`, one request is sent alone, and other requests wait.
    ///
    /// Response headers set the value to `true`. A failed request or response body sets the value to `false`.
    open: AtomicBool,
    /// Lock of the request that is sent alone. The request holds the lock until its response headers arrive
    /// or the request fails. While `open` is `false`, other requests wait for the lock.
    first: Mutex<()>,
}

/// A response body. If reading the body fails, [`SingleFlight`] sends the next request alone: other requests
/// wait for the response headers of this request.
pub(super) struct Guarded<B> {
    inner: B,
    gate: Arc<Gate>,
}

impl<S> SingleFlight<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            gate: Arc::default(),
        }
    }
}

impl<S, A, B> Service<Request<A>> for SingleFlight<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    A: Send + 'static,
{
    type Response = Response<Guarded<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let clone = self.inner.clone();
        // Calls the clone that was polled ready.
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let gate = Arc::clone(&self.gate);
        Box::pin(async move {
            let alone = if gate.is_open() {
                None
            } else {
                let first = tokio::time::timeout(WAIT_MAX, gate.first.lock());
                first.await.ok()
            };
            // The first request may have opened the gate during the wait.
            let alone = alone.filter(|_| !gate.is_open());
            let answer = inner.call(request).await;
            gate.open.store(answer.is_ok(), Ordering::Relaxed);
            drop(alone);
            let answer = answer.map_err(Into::into)?;
            Ok(answer.map(|inner| Guarded {
                inner,
                gate: Arc::clone(&gate),
            }))
        })
    }
}

impl Gate {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

impl<B: http_body::Body + Unpin> http_body::Body for Guarded<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if matches!(frame, Some(Err(_))) {
            self.gate.open.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use tokio::time::{Instant, timeout};
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// Returns a service that never responds, and a counter of its requests.
    fn silent() -> (
        impl Service<Request<()>, Response = Response<String>, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static,
        Arc<AtomicUsize>,
    ) {
        let reached = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&reached);
        let service = service_fn(move |_: Request<()>| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::pending()
        });
        (service, reached)
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_first_request_delays_others_up_to_a_limit() {
        let (service, reached) = silent();
        let shared = SingleFlight::new(service);
        let moment = Duration::from_millis(1);
        let mut first = Box::pin(shared.clone().oneshot(Request::new(())));
        assert!(timeout(moment, &mut first).await.is_err());
        let mut second = Box::pin(shared.oneshot(Request::new(())));
        assert!(timeout(WAIT_MAX.mul_f64(0.9), &mut second).await.is_err());
        assert_eq!(reached.load(Ordering::Relaxed), 1);
        assert!(timeout(WAIT_MAX.mul_f64(0.2), &mut second).await.is_err());
        assert_eq!(reached.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_first_request_releases_the_next_at_once() {
        let (service, reached) = silent();
        let shared = SingleFlight::new(service);
        let moment = Duration::from_millis(1);
        let first = timeout(moment, shared.clone().oneshot(Request::new(())));
        assert!(first.await.is_err());
        let began = Instant::now();
        assert!(
            timeout(moment, shared.oneshot(Request::new(())))
                .await
                .is_err()
        );
        assert_eq!(reached.load(Ordering::Relaxed), 2);
        assert_eq!(began.elapsed(), moment);
    }
}
