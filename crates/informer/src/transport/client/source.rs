//! [`ClientSource`] provides the client of each request, and [`RotatingClient`] replaces clients whose
//! credentials expire.
//!
//! kube refreshes tokens by itself, from files each minute and from plugins before they expire. A client certificate
//! is a fixed part of a client, from a file or from a plugin, so a new certificate needs a new client.

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

/// Time before its expiry at which a client is replaced, so that requests in progress can complete. kube uses
/// the same time for tokens.
const BEFORE_EXPIRY: Duration = Duration::from_secs(60);

/// Minimum interval between the creation of two clients after credentials were rejected or a client could not
/// be created. It applies to all informers together, because a credential plugin is a process.
const REFUSED_MIN: Duration = Duration::from_secs(10);

/// Minimum age at which a client that can't connect is replaced. A handshake with an expired certificate
/// fails like any other connection.
const UNCONNECTED_MIN: Duration = Duration::from_secs(60);

/// Maximum time for which later requests wait for the creation of a client, so that a hung plugin does not
/// block all informers. A list waits as long for a response.
const MAKING_MAX: Duration = Duration::from_secs(60);

/// Provides the client for each list or watch request.
///
/// A [`Client`] implements this trait and always returns itself. [`RotatingClient`] replaces its client
/// before the client expires. Implement the trait to provide clients in another way.
pub trait ClientSource: Send + Sync + 'static {
    /// Returns the client for one request: a list, one of its pages, or a watch. An open watch keeps the client with
    /// which it was opened.
    ///
    /// # Errors
    /// No client is available now. The request fails, and the reflector retries it with backoff.
    ///
    /// # Cancel safety
    /// Dropping the future must lose nothing, because a stopped informer drops it.
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>>;

    /// Called when a request with the last returned client failed, for example because its credentials were
    /// rejected or it could not connect. The implementation must not block.
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

/// A client that is replaced before it expires. All clones share one client.
///
/// The client is replaced a minute before its certificate expires; when the server rejects its credentials;
/// when it can't connect and is older than a minute; and at [`max_age`](RotatingClientBuilder::max_age), if
/// that is set.
///
/// The first request that needs a new client creates it, and all informers that wait use it. If the creation
/// takes longer than a minute, the next request creates another one. An open watch keeps its connection until
/// it ends: within ten minutes by default, see
/// [`watch_timeout_min`](crate::shared_informer::Builder::watch_timeout_min).
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
    /// Time at which the client is to be replaced; `None` if no replacement is scheduled.
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

/// Builds a [`RotatingClient`] with options.
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
    /// Returns a client that calls `make` whenever a new client is needed. `make` creates a client from the
    /// current configuration.
    ///
    /// Errors of `make` become the cause of an [`Error`] and must not contain secrets. kube's errors about
    /// plugins and tokens, which may contain secrets, are removed.
    ///
    /// `make` runs in the task of the first request that needs the client. If that task is cancelled, the next
    /// request continues the same future.
    pub fn new<F, E>(make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::builder(make).build()
    }

    /// Returns a builder that creates clients with `make`, to set further options.
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
    /// Sets the age at which a client is replaced, for certificates in files that another program renews
    /// (client-go checks them every 5 minutes). Zero, the default, means that age alone does not cause a
    /// replacement.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// Sets the clock by which the expiry of certificates is determined; the default is the system clock.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Builds the [`RotatingClient`]. Its first request creates the client.
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
    /// Returns the current client, or the attempt to create one. Starts a new attempt if the client is due
    /// for replacement or its creation hangs.
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

    /// Schedules the replacement of the client created at `since` for the time `at`, unless its replacement
    /// is already scheduled for an earlier time.
    fn replace(&self, since: Instant, at: Instant) {
        if let Some(current) = &mut *self.current.lock()
            && current.since == since
        {
            current.until = Some(current.until.map_or(at, |until| until.min(at)));
        }
    }

    /// Schedules the replacement of `client` before it expires, each time that it is returned for a request.
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
                    // For each request, because the wall clock advances while the machine sleeps.
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
