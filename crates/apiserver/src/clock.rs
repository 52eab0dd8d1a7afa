//! Provides the wall-clock time that the server writes into objects.
//!
//! Guarantees: no other module reads the system clock, and a test can replace the system clock with
//! [`Builder::clock`](crate::builder::Builder::clock).

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;

/// Wall clock for the timestamps and the ages of objects.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn system() -> Clock {
        #[expect(
            clippy::disallowed_methods,
            reason = "this is the clock that the builder replaces"
        )]
        Clock(Arc::new(SystemTime::now))
    }

    pub(crate) fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Clock {
        Clock(Arc::new(now))
    }

    /// Returns the current time without fractions of a second, as in `metav1.Time`.
    pub(crate) fn now(&self) -> Timestamp {
        let now = Timestamp::try_from((self.0)()).unwrap_or(Timestamp::UNIX_EPOCH);
        Timestamp::from_second(now.as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
