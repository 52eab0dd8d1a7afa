//! [`ClientSource`]: provides the client of each request; and [`RotatingClient`], for credentials that expire.
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

/// Time before a client's expiry at which it is replaced, so that requests in progress can complete. kube uses the
/// same for tokens.
const BEFORE_EXPIRY: Duration = Duration::from_secs(60);

/// Minimum interval between clients after credentials were rejected or a client could not be created, for all
/// informers together, because a credential plugin is a process.
const REFUSED_MIN: Duration = Duration::from_secs(10);

/// Minimum age of a client that is replaced because it can't connect. A handshake with an expired certificate
/// fails like any other connection.
const UNCONNECTED_MIN: Duration = Duration::from_secs(60);

/// Maximum time to create a client before later requests stop waiting for it, so that a hung plugin does not block
/// all informers. A list waits as long for a response.
const MAKING_MAX: Duration = Duration::from_secs(60);

/// Provides the client for each list or watch request.
///
/// A [`Client`] implements it and always returns itself. [`RotatingClient`] renews itself. Implement it to provide
/// clients in another way.
pub trait ClientSource: Send + Sync + 'static {
    /// Returns the client for one request: a list, one of its pages, or a watch. An open watch keeps the client with
    /// which it was opened.
    ///
    /// # Errors
    /// No client is available now. The request fails, and is retried with backoff.
    ///
    /// # Cancel safety
    /// Dropping the future must lose nothing; a stopped informer drops it.
    fn client(&self) -> BoxFuture<'_, Result<Client, Error>>;

    /// Called when a request with the last client failed: credentials were rejected, or it could not connect. Must
    /// not block.
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

/// A client that is made anew when it is time: a minute before it expires, when the server does not
/// accept its credentials, when it finds no connection and is older than a minute, and, if asked for,
/// at an age. Clones are the same.
///
/// It is made by the first request that needs it, once, however many informers wait for it; if that
/// takes longer than a minute, the next request has it made anew. Watches
/// that are open stay on the connection that they have, until they end (within ten minutes, unless
/// [`watch_timeout_min`](crate::shared_informer::Builder::watch_timeout_min) says otherwise).
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
    /// When it is to be replaced.
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

/// Settles when a [`RotatingClient`] is replaced.
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
    /// A client that is made by `make`, from what the configuration is at that time. What `make` says
    /// on failure is shown as the cause of an [`Error`], so it must hold no secret; what kube says of a
    /// plugin or a token, which may, is left out.
    ///
    /// `make` runs in the task of whoever needs the client first. If that one is stopped, the next one
    /// goes on with it.
    pub fn new<F, E>(make: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Client, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        Self::builder(make).build()
    }

    /// The same with more to be settled.
    pub fn builder<F, E>(make: impl Fn() -> F + Send + Sync + 'static) -> RotatingClientBuilder
    where
        F: Future<Output = Result<Client, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let make = Arc::new(make);
        let make: Make = Arc::new(move || {
            let make = Arc::clone(&make);
            // The user's code begins with the first poll, when nothing is locked.
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
    /// At this age it is replaced in any case: for certificates in files that somebody else renews
    /// (client-go looks every 5 minutes). Zero, the default, means never.
    pub fn max_age(mut self, max_age: Duration) -> Self {
        self.max_age = max_age;
        self
    }

    /// The clock by which certificates expire; by default the system's.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.now = Arc::new(now);
        self
    }

    /// Makes it. The client itself is made by the first request.
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
    /// The client as it is now, or one that is about to be made.
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
        // What the user's code holds is let go of when nothing is locked.
        drop(current);
        drop(old);
        new
    }

    /// Replaces the client of this time at the given moment, unless it is replaced before.
    fn replace(&self, since: Instant, at: Instant) {
        if let Some(current) = &mut *self.current.lock()
            && current.since == since
        {
            current.until = Some(current.until.map_or(at, |until| until.min(at)));
        }
    }

    /// Sees to it that it is replaced before it expires.
    fn given_out(&self, since: Instant, client: &Client) {
        let Some(valid_until) = client.valid_until() else {
            return;
        };
        let left = SystemTime::from(*valid_until)
            .duration_since((self.now)())
            .unwrap_or_default();
        // What is given out expired, or nearly, is not asked for again and again.
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
                    // Each time, for the clock that it expires by goes on while the machine sleeps.
                    self.rotation.given_out(current.since, &client);
                    Ok(client)
                }
                Err(cause) => {
                    let next = current.since + REFUSED_MIN;
                    self.rotation.replace(current.since, next);
                    Err(without_credentials_of(&*cause).unwrap_or_else(|| {
                        let what = "no client could be made";
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
