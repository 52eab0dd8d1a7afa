//! Defines the settings that standalone reflectors and informers share, and the builder methods that set
//! them.
//!
//! The module also creates the name, the decoder and the [`Meter`] of an informer or reflector.

use std::sync::{Arc, atomic::AtomicUsize};

use derive_where::derive_where;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{NotServed, RequestOptions, WatchErrorHandler, report::Reporter};
use crate::{
    decode::{Decoder, Transform},
    logs,
    metrics::{InformerIdentity, Meter, Metrics, Sampled},
    status::StatusWriter,
    transport::{ListerWatcher, UNDESCRIBED},
};

/// Settings common to standalone reflectors and informers.
#[derive_where(Default)]
pub(crate) struct Settings<K> {
    /// Name in logs, errors and metrics; by default the kind and the scope.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) type_description: Option<Arc<str>>,
    pub(crate) transform: Option<Transform<K>>,
    pub(crate) error_handler: Option<WatchErrorHandler>,
    pub(crate) metrics: Option<Arc<dyn Metrics>>,
    pub(crate) requests: RequestOptions,
    pub(crate) seed: Option<u64>,
}

/// Defines builder methods that set the fields of [`Settings`].
///
/// `$path` is the path from `self` to the settings, such as `shared.reflectors`.
macro_rules! settings_methods {
    ($($path:ident).+) => {
        /// Sets the name of the reflector or informer in logs, errors and metrics. The name need not be
        /// unique.
        ///
        /// By default, the name consists of the kind and the scope, such as
        /// `pods in shop with labels app=web`.
        #[doc(alias = "InformerName")]
        #[doc(alias = "NewNamedReflector")]
        pub fn name(mut self, name: impl Into<::std::sync::Arc<str>>) -> Self {
            self.$($path).+.name = Some(name.into());
            self
        }

        /// Sets the description of the expected objects in logs and errors.
        ///
        /// By default, the description consists of the API version and the kind, such as `v1 Pod`.
        #[doc(alias = "ObjectDescription")]
        #[doc(alias = "TypeDescription")]
        pub fn type_description(mut self, description: impl Into<::std::sync::Arc<str>>) -> Self {
            self.$($path).+.type_description = Some(description.into());
            self
        }

        /// Sets a function that modifies every object once, before the object reaches the cache and the
        /// handlers.
        ///
        /// For example, the function can drop fields that the program does not read.
        #[doc(alias = "SetTransform")]
        #[doc(alias = "TransformFunc")]
        pub fn transform(self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
            self.try_transform(move |object| {
                transform(object);
                Ok(())
            })
        }

        /// Sets a function that modifies every object, as with `transform`, and that can return an error.
        ///
        /// If the function returns an error or panics, the cache keeps the name of the object and the error,
        /// but not the content of the object. Other objects are not affected.
        pub fn try_transform(
            mut self,
            transform: impl Fn(&mut K) -> Result<(), String> + Send + Sync + 'static,
        ) -> Self {
            self.$($path).+.transform = Some(::std::sync::Arc::new(transform));
            self
        }

        /// Sets the error handler, a function that receives every [`Error`](crate::reflector::Error) when it
        /// occurs.
        ///
        /// Examples are a failed list or watch, and an object that fails to decode. The function must not
        /// block.
        #[doc(alias = "SetWatchErrorHandler")]
        #[doc(alias = "WatchErrorHandler")]
        pub fn on_error(
            mut self,
            handler: impl Fn(&crate::reflector::Error) + Send + Sync + 'static,
        ) -> Self {
            self.$($path).+.error_handler = Some(::std::sync::Arc::new(handler));
            self
        }

        /// Sets the collector that receives the metrics. Without a collector, nothing is measured.
        #[doc(alias = "InformerMetricsProvider")]
        pub fn metrics(mut self, metrics: ::std::sync::Arc<dyn crate::metrics::Metrics>) -> Self {
            self.$($path).+.metrics = Some(metrics);
            self
        }

        /// Sets the seed of the random number generator for pauses and timeouts. A fixed seed makes tests
        /// reproducible.
        pub fn rng_seed(mut self, seed: u64) -> Self {
            self.$($path).+.seed = Some(seed);
            self
        }

        crate::reflector::request_methods!($($path).+.requests);
    };
}
pub(crate) use settings_methods;

/// Texts that identify an informer or a reflector in logs, errors and metrics.
pub(crate) struct Title {
    pub(crate) name: Arc<str>,
    /// Names of the listed namespaces, such as `a, b, c and 2 more`; empty for all namespaces.
    pub(crate) namespace: String,
    /// API version and kind of the expected objects, or the configured type description.
    pub(crate) expects: Arc<str>,
}

/// Adds the prefix `metadata of` to `listed` if `K` contains only metadata.
pub(crate) fn named<K: Resource>(listed: &str) -> String {
    if K::metadata_api() {
        format!("metadata of {listed}")
    } else {
        listed.to_owned()
    }
}

impl<K> Settings<K> {
    pub(crate) fn rng(&self) -> fastrand::Rng {
        self.seed
            .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed)
    }
}

impl<K: Resource> Settings<K> {
    pub(crate) fn title(
        &self,
        dyntype: &K::DynamicType,
        sources: &[Arc<dyn ListerWatcher>],
    ) -> Title {
        let namespaces: Option<Vec<_>> = sources.iter().map(|source| source.namespace()).collect();
        let namespace = namespaces.map_or_else(String::new, |namespaces| {
            logs::first_few(namespaces.iter().map(String::as_str))
        });
        let name = self.name.clone().unwrap_or_else(|| {
            let described = match sources {
                [source] => Some(source.description()).filter(|text| text != UNDESCRIBED),
                _ => None,
            };
            let kind = || match &*namespace {
                "" => K::plural(dyntype).into_owned(),
                namespace => format!("{} in {namespace}", K::plural(dyntype)),
            };
            Arc::from(named::<K>(&described.unwrap_or_else(kind)))
        });
        Title {
            name,
            namespace,
            expects: self.expects(dyntype),
        }
    }

    pub(crate) fn reporter(&self, title: &Title, status: StatusWriter) -> Reporter {
        Reporter {
            name: Arc::clone(&title.name),
            not_served: NotServed::default(),
            expects: Arc::clone(&title.expects),
            status,
            error_handler: self.error_handler.clone(),
            meter: Meter::default(),
            span: tracing::Span::none(),
        }
    }

    /// Returns the meter, which records nothing without a metrics collector.
    pub(crate) fn meter(
        &self,
        title: &Title,
        dyntype: &K::DynamicType,
        sampled: impl FnOnce(Arc<AtomicUsize>) -> Arc<dyn Sampled>,
    ) -> Meter {
        let identity = InformerIdentity::of::<K>(&title.name, &title.namespace, dyntype);
        Meter::new(self.metrics.as_ref(), &identity, sampled)
    }

    /// Returns the configured type description, or a default such as `v1 Pod`.
    fn expects(&self, dyntype: &K::DynamicType) -> Arc<str> {
        if let Some(description) = &self.type_description {
            return Arc::clone(description);
        }
        let (api_version, kind) = (K::api_version(dyntype), K::kind(dyntype));
        Arc::from(named::<K>(&format!("{api_version} {kind}")))
    }
}

impl<K> Settings<K>
where
    K: Resource + DeserializeOwned + 'static,
{
    pub(crate) fn decoder(&self, dyntype: &K::DynamicType) -> Decoder<K> {
        Decoder::new(dyntype, self.transform.clone())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    use kube_core::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};

    use super::*;

    #[test]
    fn the_expected_type_has_a_readable_name() {
        fn expects<K: Resource>(dyntype: &K::DynamicType) -> Arc<str> {
            Settings::<K>::default().expects(dyntype)
        }
        let widget = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        let names = [
            expects::<Pod>(&()),
            expects::<Deployment>(&()),
            expects::<PartialObjectMeta<Pod>>(&()),
            expects::<DynamicObject>(&widget),
        ];
        let expected = [
            "v1 Pod",
            "apps/v1 Deployment",
            "metadata of v1 Pod",
            "example.com/v1 Widget",
        ];
        assert_eq!(names.each_ref().map(AsRef::as_ref), expected);
        let called = Settings::<Pod> {
            type_description: Some("our pods".into()),
            ..Settings::default()
        };
        assert_eq!(&*called.expects(&()), "our pods");
    }
}
