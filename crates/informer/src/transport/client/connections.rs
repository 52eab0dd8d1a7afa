//! [`Connections`] distributes the requests of a client to several connections, so that no connection has
//! more open responses than kube-apiserver accepts by default.
//!
//! An HTTP/2 server limits the concurrent requests on a connection. hyper queues a request above the limit
//! until an earlier request ends. If all earlier requests are watches, the queued request waits for minutes.
//! client-go's transport opens another connection instead. A server or a proxy with a lower limit still
//! delays the requests above this limit.
//!
//! Guarantees:
//! - A request uses the first connection with fewer than [`OPEN_MAX`] open responses. If no connection has
//!   fewer, the request uses a new connection.
//! - A response counts as open until its body is dropped.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_core::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tower::{Service, ServiceExt};

/// Maximum number of open responses of a connection: the limit of kube-apiserver (`MaxConcurrentStreams` in
/// `k8s.io/apiserver/pkg/server/secure_serving.go`), and the lowest limit that RFC 9113 recommends.
const OPEN_MAX: usize = 100;

/// Tower service that sends each request with one of several services.
#[derive(Clone)]
pub(super) struct Connections<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    /// Creates a service that has its own connection. The service opens the connection at its first request.
    make: Box<dyn Fn() -> S + Send + Sync>,
    slots: Mutex<Vec<Slot<S>>>,
}

/// A service with its own connection, and the number of open responses on this connection.
struct Slot<S> {
    service: S,
    open: Arc<AtomicUsize>,
}

/// Counts one open response, until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body that counts as open.
pub(super) struct Counted<B> {
    inner: B,
    _open: Open,
}

impl<S: Clone> Connections<S> {
    pub(super) fn new(make: impl Fn() -> S + Send + Sync + 'static) -> Self {
        Self {
            shared: Arc::new(Shared {
                make: Box::new(make),
                slots: Mutex::default(),
            }),
        }
    }

    /// Returns the service that sends the next request, and a guard. The response to this request counts as
    /// open until the guard is dropped.
    fn next(&self) -> (S, Open) {
        let mut slots = self.shared.slots.lock();
        let free = |slot: &Slot<S>| slot.open.load(Ordering::Relaxed) < OPEN_MAX;
        let index = slots.iter().position(free).unwrap_or_else(|| {
            slots.push(Slot {
                service: (self.shared.make)(),
                open: Arc::default(),
            });
            slots.len() - 1
        });
        let slot = &slots[index];
        slot.open.fetch_add(1, Ordering::Relaxed);
        (slot.service.clone(), Open(Arc::clone(&slot.open)))
    }
}

impl<S, A, B> Service<Request<A>> for Connections<S>
where
    S: Service<Request<A>, Response = Response<B>, Future: Send> + Clone + Send + 'static,
    A: Send + 'static,
{
    type Response = Response<Counted<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (service, open) = self.next();
        Box::pin(async move {
            let response = service.oneshot(request).await?;
            Ok(response.map(|inner| Counted { inner, _open: open }))
        })
    }
}

impl<B: http_body::Body + Unpin> http_body::Body for Counted<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
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
    use std::{
        convert::Infallible,
        future::{Ready, pending, ready},
    };

    use tower::service_fn;

    use super::*;

    /// A service that responds with its number.
    #[derive(Clone)]
    struct Numbered(usize);

    impl Service<Request<()>> for Numbered {
        type Response = Response<usize>;
        type Error = Infallible;
        type Future = Ready<Result<Response<usize>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<()>) -> Self::Future {
            ready(Ok(Response::new(self.0)))
        }
    }

    #[tokio::test]
    async fn a_full_connection_is_followed_by_another_and_used_again_when_it_has_room() {
        let made = AtomicUsize::new(0);
        let connections = Connections::new(move || Numbered(made.fetch_add(1, Ordering::Relaxed)));
        let send = || connections.clone().oneshot(Request::new(()));
        let mut open = Vec::new();
        for _ in 0..=OPEN_MAX {
            open.push(send().await.unwrap().into_body());
        }
        let used: Vec<_> = open.iter().map(|body| body.inner).collect();
        assert_eq!(used[..OPEN_MAX], [0; OPEN_MAX]);
        assert_eq!(used[OPEN_MAX], 1);
        open.remove(0);
        assert_eq!(send().await.unwrap().into_body().inner, 0);
    }

    #[tokio::test]
    async fn a_request_without_a_response_counts_until_it_is_dropped() {
        let silent = || service_fn(|_: Request<()>| pending::<Result<Response<()>, Infallible>>());
        let connections = Connections::new(silent);
        let sent = connections.clone().oneshot(Request::new(()));
        let mut sent = tokio_test::task::spawn(sent);
        assert!(sent.poll().is_pending());
        let count = || {
            connections.shared.slots.lock()[0]
                .open
                .load(Ordering::Relaxed)
        };
        assert_eq!(count(), 1);
        drop(sent);
        assert_eq!(count(), 0);
    }
}
