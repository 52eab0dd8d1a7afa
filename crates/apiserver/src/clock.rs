//! Wall time, as the server writes it into objects.
//!
//! Guarantees: the one place where the system's clock is read, and a builder can put another in its stead; waiting is never done by this clock.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;

/// Tells the wall time.
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

    /// The present, to the second, as `metav1.Time` is.
    pub(crate) fn now(&self) -> Timestamp {
        let now = Timestamp::try_from((self.0)()).unwrap_or(Timestamp::UNIX_EPOCH);
        Timestamp::from_second(now.as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}
