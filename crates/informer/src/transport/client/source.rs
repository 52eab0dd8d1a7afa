//! [`ClientSource`] provides the client for each request. [`RotatingClient`] replaces a client before the
//! certificate of the client expires.
//!
//! The client of kube-rs refreshes tokens itself: tokens in files every minute, and tokens of credential
//! plugins before the tokens expire. A client certificate, from a file or from a plugin, is a fixed part of a
//! client. A new certificate therefore needs a new client.
//!
//! This module does not send requests and does not close open connections of a replaced client.

use std::{
    fmt,
    future::Future,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, SystemTime},
};

use derive_where::derive_where;
use futures_core::future::BoxFuture;
use futures_util::{FutureExt, future::Shared};
use kube_client::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::classify::without_credentials_of;
use crate::{
    clock,
    transport::{Class, Error},
};

/// Time before a certificate's expiry at which the client is replaced.
///
/// Kube refreshes the tokens of credential plugins equally long before they expire.
const BEFORE_EXPIRY: Duration = Duration::from_secs(60);

/// Minimum time between two attempts to create a client. Each attempt may start a credential plugin.
///
/// The minimum does not apply if the user sets a shorter [`max_age`](RotatingClientBuilder::max_age).
const REFUSED_MIN: Duration = Duration::from_secs(10);

/// Minimum age at which a client that can't connect is replaced. Its certificate may have expired.
const UNCONNECTED_MIN: Duration = Duration::from_secs(60);

/// Time after which an unfinished attempt to create a client counts as hung. The next request then starts a
/// new attempt.
///
/// Without this limit, a credential plugin that hangs would block all informers.
const MAKING_MAX: Duration = Duration::from_secs(60);

/// Provides the client for each list request and each watch request.
///
/// A [`Client`] implements this trait and always returns itself. A [`RotatingClient`] replaces its client
/// before the certificate of the client expires. Implement the trait to select clients by other rules.
pub trait ClientSource: Send + Sync + 'static {
    /// Returns the client for one request, such as a watch or one page of a list. An open watch keeps the
    /// client that opened it.
    ///
    /// # Errors
    /// Returns an error if no client is available now. The request then fails, and the reflector retries the
    /// request with backoff.
    ///
    /// # Cancel safety
    /// Implementations must allow the caller to drop the future at any point, because an informer that stops
    /// drops the future.
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>>;

    /// Called when a request with a client of this source has failed with `error`. For example, the server
    /// rejected the credentials, or the client could not connect.
    ///
    /// The implementation must not block. The default implementation does nothing.
    fn failed(&self, error: &Error) {
        let _ = error;
    }
}

impl ClientSource for Client {
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>> {
        std::future::ready(Ok(self.clone())).boxed()
    }
}

impl<S: ClientSource + ?Sized> ClientSource for Arc<S> {
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>> {
        (**self).client()
    }

    fn failed(&self, error: &Error) {
        (**self).failed(error);
    }
}

type Cause = Arc<dyn std::error::Error + Send + Sync>;
type Making = Shared<BoxFuture<'static, Result<Client, Cause>>>;
type Make = Arc<dyn Fn() -> Making + Send + Sync>;
type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A source of clients that replaces its client before the client's certificate expires. All clones share one
/// client.
///
/// A request creates a new client in five cases:
/// - There is no client yet.
/// - The certificate of the client expires in less than a minute.
/// - The server has rejected the credentials of the client.
/// - The client can't connect, and is at least a minute old.
/// - The client has reached [`max_age`](RotatingClientBuilder::max_age), if a maximum age is set.
///
/// Other requests wait until the new client has been created. If the creation takes longer than a minute, the
/// next request starts another creation.
///
/// An open watch keeps the connection of the replaced client until the watch ends. By default, a watch ends
/// within ten minutes (see [`watch_timeout_min`](crate::shared_informer::Builder::watch_timeout_min)).
///
/// ```no_run
/// # use kube_client::Config;
/// # use k8s_openapi::api::core::v1::Pod;
/// use kube_informer::{SharedInformer, client::{self, ListWatch, RotatingClient}};
/// # fn example() {
/// let client = RotatingClient::new(|| async {
///     let config = Config::infer().await?; // reads the certificates as they are now
///     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(client::connect(config)?)
/// });
/// let (pods, controller) = SharedInformer::<Pod>::builder(ListWatch::<Pod>::new(client)).build();
/// # }
/// ```
#[doc(alias = "certRotatingDialer")]
#[derive(Clone)]
pub struct RotatingClient {
    rotation: Arc<Rotation>,
}

struct Rotation {
    make: Make,
    max_age: Duration,
    now: WallClock,
    current: Mutex<Option<Current>>,
}

#[derive(Clone)]
struct Current {
    client: Making,
    since: Instant,
    /// Time after which the next request replaces the client; `None` if no replacement is scheduled.
    until: Option<Instant>,
}

impl Current {
    fn is_good(&self, now: Instant) -> bool {
        let is_due = self.until.is_some_and(|until| now >= until);
        let hangs = self.client.peek().is_none() && now >= self.since + MAKING_MAX;
        !is_due && !hangs
    }
}

impl fmt::Debug for RotatingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.rotation.current.lock();
        let age = current.as_ref().map(|current| current.since.elapsed());
        f.debug_struct("RotatingClient")
            .field("age", &age)
            .finish_non_exhaustive()
    }
}

/// Configures a [`RotatingClient`]: the maximum age of its client, and the clock whose time is compared with
/// the expiry of the client's certificate.
#[must_use]
#[derive_where(Debug)]
pub struct RotatingClientBuilder {
    #[derive_where(skip)]
    make: Make,
    max_age: Duration,
    #[derive_where(skip)]
    now: WallClock,
}

impl RotatingClient {
    /// Creates a `RotatingClient` that calls `make` to create each new [`Client`]. `make` must read the
    /// current configuration each time.
    ///
    /// If `make` fails, the requests that wait for the client fail with an [`Error`] whose source is the
    /// error of `make`. The error of `make` must not contain secrets. If `make` returns kube's error about a
    /// credential plugin or a token, the [`Error`] has no source, because kube's error may contain secrets.
    ///
    /// `make` runs in the task of the first request that needs a new client. If that task is cancelled, the
    /// next request continues to poll the future that `make` returned.
    pub fn new<F, E>(make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::builder(make).build()
    }

    /// Returns a builder of a `RotatingClient` that calls `make` to create each new [`Client`]; see
    /// [`RotatingClient::new`].
    pub fn builder<F, E>(make: impl Fn() -> F + Send + Sync + 'static) -> RotatingClientBuilder
    where
        F: Future<Output = Result<Client, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let make = Arc::new(make);
        let make: Make = Arc::new(move || {
            let make = Arc::clone(&make);
            // The user's code runs at the first poll, when no lock is held.
            let attempt = async move { make().await.map_err(Into::into) };
            let attempt = AssertUnwindSafe(attempt).catch_unwind().map(|client| {
                let client = client.unwrap_or_else(|_| Err("it panicked".into()));
                client.map_err(Cause::from)
            });
            attempt.boxed().shared()
        });
        #[expect(
            clippy::disallowed_methods,
            reason = "the default of what can be set; a certificate expires by this clock"
        )]
        let now: WallClock = Arc::new(SystemTime::now);
        RotatingClientBuilder {
            make,
            max_age: Duration::ZERO,
            now,
        }
    }
}

impl RotatingClientBuilder {
    /// Sets the age at which a client is replaced. With zero, the default, clients are not replaced because
    /// of their age.
    ///
    /// Set the age if another program renews the certificate files. client-go checks such files every five
    /// minutes.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Sets the clock whose time is compared with the expiry of the client's certificate. The default is the
    /// system clock.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Creates the [`RotatingClient`]. The first request that uses it creates the first [`Client`].
    pub fn build(self) -> RotatingClient {
        let Self { make, max_age, now } = self;
        RotatingClient {
            rotation: Arc::new(Rotation {
                make,
                max_age,
                now,
                current: Mutex::new(None),
            }),
        }
    }
}

impl Rotation {
    /// Returns the current client, whose creation may be unfinished.
    ///
    /// If there is no client, or the client must be replaced, first starts the creation of a new client.
    fn current(&self) -> Current {
        let now = Instant::now();
        let mut current = self.current.lock();
        if let Some(current) = current.as_ref().filter(|current| current.is_good(now)) {
            return current.clone();
        }
        let new = Current {
            client: (self.make)(),
            since: now,
            until: (!self.max_age.is_zero()).then(|| clock::from_now(self.max_age)),
        };
        let old = current.replace(new.clone());
        // The user's values are dropped after the lock is released.
        drop(current);
        drop(old);
        new
    }

    /// Schedules the replacement of the client that was created at `since`.
    ///
    /// The replacement is due at `at`, or at an earlier time that is already scheduled. Does nothing if the
    /// current client is a newer one.
    fn replace(&self, since: Instant, at: Instant) {
        if let Some(current) = &mut *self.current.lock()
            && current.since == since
        {
            current.until = Some(current.until.map_or(at, |until| until.min(at)));
        }
    }

    /// Schedules the replacement of `client`, because the certificate of `client` expires.
    ///
    /// The scheduled time is [`BEFORE_EXPIRY`] before the expiry, but at least [`REFUSED_MIN`] from now. The
    /// minimum avoids a tight loop if the certificates of new clients have nearly expired. `since` is the
    /// creation time of `client`.
    fn given_out(&self, since: Instant, client: &Client) {
        let Some(valid_until) = client.valid_until() else {
            return;
        };
        let left = SystemTime::from(*valid_until)
            .duration_since((self.now)())
            .unwrap_or_default();
        // A new client that has nearly expired is not replaced at once, to avoid a tight loop.
        let left = left.saturating_sub(BEFORE_EXPIRY).max(REFUSED_MIN);
        self.replace(since, clock::from_now(left));
    }
}

impl ClientSource for RotatingClient {
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>> {
        let making = async {
            let current = self.rotation.current();
            match current.client.await {
                Ok(client) => {
                    // Repeated for each request, because the wall clock advances while the machine sleeps.
                    self.rotation.given_out(current.since, &client);
                    Ok(client)
                }
                Err(cause) => {
                    let next = current.since + REFUSED_MIN;
                    self.rotation.replace(current.since, next);
                    Err(without_credentials_of(&*cause).unwrap_or_else(|| {
                        let what = "the program's function that creates a client failed";
                        Error::new(Class::Unauthorized, what).with_source(cause)
                    }))
                }
            }
        };
        making.boxed()
    }

    fn failed(&self, error: &Error) {
        let min = match error.class() {
            Class::Unauthorized => REFUSED_MIN,
            Class::Connection => UNCONNECTED_MIN,
            _ => return,
        };
        let since = self.rotation.current.lock().as_ref().map(|at| at.since);
        if let Some(since) = since {
            self.rotation.replace(since, since + min);
        }
    }
}

#[cfg(test)]
mod tests;
