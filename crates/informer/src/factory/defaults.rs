//! What a factory's informers get when their options say nothing: by type, or for all types.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
    time::Duration,
};

use kube_core::{ObjectMeta, Resource};

use crate::{
    decode::Transform,
    reflector::{BackoffConfig, Error},
    shared_informer,
};

/// Called with an informer's name and what went wrong in it.
pub(super) type FactoryErrorHandler = Arc<dyn Fn(&str, &Error) + Send + Sync>;

type MetadataTransform = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;

#[derive(Default)]
pub(super) struct Defaults {
    resync: Duration,
    resync_by_type: BTreeMap<TypeId, Duration>,
    metadata: Option<MetadataTransform>,
    /// Each is a `Transform<K>`, where `K` is the type of its key.
    transform_by_type: BTreeMap<TypeId, Box<dyn Any + Send + Sync>>,
    pub(super) error_handler: Option<FactoryErrorHandler>,
    pub(super) watch_timeout_min: Duration,
    pub(super) internal_error_retry: Duration,
    pub(super) backoff: BackoffConfig,
}

impl Defaults {
    pub(super) fn set_resync(&mut self, period: Duration) {
        self.resync = period;
    }

    pub(super) fn set_resync_for<K: 'static>(&mut self, period: Duration) {
        self.resync_by_type.insert(TypeId::of::<K>(), period);
    }

    pub(super) fn set_metadata_transform(&mut self, transform: MetadataTransform) {
        self.metadata = Some(transform);
    }

    pub(super) fn set_transform_for<K: 'static>(
        &mut self,
        transform: impl Fn(&mut K) + Send + Sync + 'static,
    ) {
        let transform: Transform<K> = Arc::new(move |object| {
            transform(object);
            Ok(())
        });
        self.transform_by_type
            .insert(TypeId::of::<K>(), Box::new(transform));
    }

    /// The period of a type.
    pub(super) fn resync<K: 'static>(&self) -> Duration {
        let of_type = self.resync_by_type.get(&TypeId::of::<K>());
        of_type.copied().unwrap_or(self.resync)
    }

    /// What is said of all reflectors, told to the builder of one informer.
    pub(super) fn reflectors<K>(
        &self,
        name: &str,
        builder: shared_informer::Builder<K>,
    ) -> shared_informer::Builder<K>
    where
        K: Resource + Send + Sync + 'static,
    {
        let builder = builder
            .watch_timeout_min(self.watch_timeout_min)
            .internal_error_retry(self.internal_error_retry)
            .backoff(self.backoff);
        match self.error_handler.clone() {
            Some(handler) => {
                let name = name.to_owned();
                builder.on_error(move |error| handler(&name, error))
            }
            None => builder,
        }
    }

    /// What an informer does to its objects: the metadata's transform, then its own or else its
    /// type's.
    pub(super) fn transform<K: Resource + 'static>(
        &self,
        own: Option<Transform<K>>,
    ) -> Option<Transform<K>> {
        let of_type = || {
            let transform = self.transform_by_type.get(&TypeId::of::<K>())?;
            transform.downcast_ref::<Transform<K>>().cloned()
        };
        let second = own.or_else(of_type);
        let Some(first) = self.metadata.clone() else {
            return second;
        };
        Some(Arc::new(move |object: &mut K| {
            first(object.meta_mut());
            second.as_ref().map_or(Ok(()), |second| second(object))
        }))
    }
}
