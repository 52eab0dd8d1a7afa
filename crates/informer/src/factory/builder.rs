//! Settles what all informers of a factory have in common.

use std::{fmt, sync::Arc, time::Duration};

use kube_core::{ObjectMeta, Resource};
use tokio::sync::watch;

use super::{Inner, SharedInformerFactory, defaults::Defaults, places::Places};
use crate::{
    reflector::{BackoffConfig, Error},
    transport::{
        ListOptions,
        client::{ClientSource, TweakListOptions},
    },
};

/// Settles what all informers of a factory have in common.
///
/// What is nearer to an informer wins: its own [`InformerOptions`](super::InformerOptions), then what
/// is said here of its type, then what is said here of all. Of two calls that say the same thing the
/// later one holds. Only [`FactoryBuilder::tweak_list_options`] and
/// [`FactoryBuilder::transform_metadata`] hold for every informer the factory makes, whatever else is
/// said.
#[must_use]
pub struct FactoryBuilder {
    client: Arc<dyn ClientSource>,
    defaults: Defaults,
    namespaces: Vec<String>,
    tweak: Option<TweakListOptions>,
    seed: Option<u64>,
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("namespaces", &self.namespaces)
            .finish_non_exhaustive()
    }
}

impl FactoryBuilder {
    pub(super) fn new(client: Arc<dyn ClientSource>) -> Self {
        Self {
            client,
            defaults: Defaults::default(),
            namespaces: Vec::new(),
            tweak: None,
            seed: None,
        }
    }

    /// The resync period of informers of which nothing else is said; zero, the default, means none.
    pub fn default_resync(mut self, period: Duration) -> Self {
        self.defaults.set_resync(period);
        self
    }

    /// The resync period of the informers of one type; zero means none. `DynamicObject` is one type,
    /// whatever its kinds.
    #[doc(alias = "WithCustomResyncConfig")]
    pub fn resync_for<K: 'static>(mut self, period: Duration) -> Self {
        self.defaults.set_resync_for::<K>(period);
        self
    }

    /// Changes the metadata of every object of every kind once, before cache and handlers see it; for
    /// example to drop `managedFields`. It comes before any other transform, and is left out by none.
    ///
    /// An object's name and revision are what the server said, whatever becomes of its metadata.
    #[doc(alias = "WithTransform")]
    pub fn transform_metadata(
        mut self,
        transform: impl Fn(&mut ObjectMeta) + Send + Sync + 'static,
    ) -> Self {
        self.defaults.set_metadata_transform(Arc::new(transform));
        self
    }

    /// Changes every object of one type once, before cache and handlers see it, in informers whose
    /// options have no transform of their own. `DynamicObject` is one type, whatever its kinds.
    #[doc(alias = "WithTransform")]
    pub fn transform_for<K: Resource + 'static>(
        mut self,
        transform: impl Fn(&mut K) + Send + Sync + 'static,
    ) -> Self {
        self.defaults.set_transform_for::<K>(transform);
        self
    }

    /// Only these namespaces, for namespaced kinds; each kind has one informer over all of them.
    #[doc(alias = "WithNamespace")]
    pub fn namespaces<S: Into<String>>(mut self, namespaces: impl IntoIterator<Item = S>) -> Self {
        self.namespaces = namespaces.into_iter().map(Into::into).collect();
        self
    }

    /// Changes the options of every list and watch just before it is sent.
    #[doc(alias = "WithTweakListOptions")]
    pub fn tweak_list_options(
        mut self,
        tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static,
    ) -> Self {
        self.tweak = Some(Arc::new(tweak));
        self
    }

    /// Called with an informer's name and every failure of its lists and watches, and every object
    /// that can't be kept. It must not block.
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn on_error(mut self, handler: impl Fn(&str, &Error) + Send + Sync + 'static) -> Self {
        self.defaults.error_handler = Some(Arc::new(handler));
        self
    }

    /// Watches are asked to end after one to two times this, in whole seconds; never less than 5
    /// minutes.
    #[doc(alias = "MinWatchTimeout")]
    pub fn watch_timeout_min(mut self, timeout: Duration) -> Self {
        self.defaults.watch_timeout_min = timeout;
        self
    }

    /// For so long, watches that the server ends with internal errors are opened again instead of
    /// being listed after; see
    /// [`ReflectorBuilder::internal_error_retry`](crate::reflector::ReflectorBuilder::internal_error_retry).
    #[doc(alias = "MaxInternalErrorRetryDuration")]
    pub fn internal_error_retry(mut self, budget: Duration) -> Self {
        self.defaults.internal_error_retry = budget;
        self
    }

    /// The pauses after failures.
    pub fn backoff(mut self, backoff: BackoffConfig) -> Self {
        self.defaults.backoff = backoff;
        self
    }

    /// Makes the random parts of all informers the same in every run, for tests.
    pub fn rng_seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        let Self {
            client,
            defaults,
            namespaces,
            tweak,
            seed,
        } = self;
        SharedInformerFactory {
            inner: Arc::new(Inner {
                client,
                defaults,
                namespaces,
                tweak,
                seed,
                stop: watch::Sender::new(false),
                places: Places::default(),
            }),
        }
    }
}
