//! What a factory's informers get when their options say nothing: by type, by namespace, or for all.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    sync::Arc,
    time::Duration,
};

use kube_core::{ObjectMeta, Resource};

use super::{
    options::InformerOptions,
    scope::{Level, Scope},
    type_options::{NamespaceOptions, TypeOptions, TypeTransforms, split},
};
use crate::{
    decode::Transform,
    limits::Limits,
    metrics::Metrics,
    reflector::{BackoffConfig, Error, InitialList, RollbackDetection, TimeoutConfig},
    shared_informer,
};

/// Called with an informer's name and what went wrong in it.
pub(super) type FactoryErrorHandler = Arc<dyn Fn(&str, &Error) + Send + Sync>;

type MetadataTransform = Arc<dyn Fn(&mut ObjectMeta) + Send + Sync>;

#[derive(Default)]
pub(super) struct Defaults {
    resync: Duration,
    consistency_check: Duration,
    pub(super) of_all: Level,
    metadata: Option<MetadataTransform>,
    metadata_by_namespace: BTreeMap<String, Transform<ObjectMeta>>,
    by_type: BTreeMap<TypeId, OfType>,
    pub(super) error_handler: Option<FactoryErrorHandler>,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
    pub(super) watch_timeout_min: Duration,
    pub(super) internal_error_retry: Duration,
    pub(super) backoff: BackoffConfig,
    pub(super) timeouts: TimeoutConfig,
    pub(super) limits: Limits,
    pub(super) initial_list: InitialList,
    pub(super) rollback_detection: RollbackDetection,
}

/// What is said of one type.
struct OfType {
    level: Level,
    resync: Option<Duration>,
    consistency_check: Option<Duration>,
    /// A `TypeTransforms<K>`, where `K` is the type.
    transforms: Box<dyn Any + Send + Sync>,
}

impl Defaults {
    pub(super) fn set_resync(&mut self, period: Duration) {
        self.resync = period;
    }

    pub(super) fn set_consistency_check(&mut self, period: Duration) {
        self.consistency_check = period;
    }

    pub(super) fn set_metadata_transform(&mut self, transform: MetadataTransform) {
        self.metadata = Some(transform);
    }

    pub(super) fn set_namespaces(
        &mut self,
        namespaces: BTreeMap<String, NamespaceOptions<ObjectMeta>>,
    ) {
        let (selections, transforms) = split(namespaces);
        self.of_all.namespaces = Some(selections);
        self.metadata_by_namespace = transforms;
    }

    pub(super) fn set_type<K: 'static>(&mut self, options: TypeOptions<K>) {
        let of_type = self.by_type.entry(TypeId::of::<K>());
        let of_type = of_type.or_insert_with(|| OfType {
            level: Level::default(),
            resync: None,
            consistency_check: None,
            transforms: Box::new(TypeTransforms::<K> {
                everywhere: None,
                by_namespace: BTreeMap::new(),
            }),
        });
        of_type.resync = options.resync.or(of_type.resync);
        of_type.consistency_check = options.consistency_check.or(of_type.consistency_check);
        let transforms = of_type.transforms.downcast_mut();
        let transforms = transforms.expect("what is kept of a type has its transforms");
        options.tell(&mut of_type.level, transforms);
    }

    /// The period of a type.
    pub(super) fn resync<K: 'static>(&self) -> Duration {
        let of_type = self.by_type.get(&TypeId::of::<K>());
        let period = of_type.and_then(|of_type| of_type.resync);
        period.unwrap_or(self.resync)
    }

    /// How often the cache of a type is compared with the server.
    pub(super) fn consistency_check<K: 'static>(&self) -> Duration {
        let of_type = self.by_type.get(&TypeId::of::<K>());
        let period = of_type.and_then(|of_type| of_type.consistency_check);
        period.unwrap_or(self.consistency_check)
    }

    /// Which objects an informer with these options is over.
    pub(super) fn scope<K: 'static>(
        &self,
        options: &InformerOptions<K>,
        is_namespaced: bool,
    ) -> Scope {
        let nothing = Level::default();
        let of_type = self.by_type.get(&TypeId::of::<K>());
        let of_type = of_type.map_or(&nothing, |of_type| &of_type.level);
        let own = (&options.selection, options.namespaces.as_deref());
        Scope::resolve(own, of_type, &self.of_all, is_namespaced)
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
        let builder = match self.metrics.clone() {
            Some(metrics) => builder.metrics(metrics),
            None => builder,
        };
        let builder = builder
            .watch_timeout_min(self.watch_timeout_min)
            .internal_error_retry(self.internal_error_retry)
            .backoff(self.backoff)
            .timeouts(self.timeouts)
            .limits(self.limits)
            .initial_list(self.initial_list)
            .rollback_detection(self.rollback_detection);
        match self.error_handler.clone() {
            Some(handler) => {
                let name = name.to_owned();
                builder.on_error(move |error| handler(&name, error))
            }
            None => builder,
        }
    }

    /// What an informer does to its objects: the metadata's transform, and then what is said nearest
    /// to it of the namespace that the object came from.
    pub(super) fn transform<K: Resource + 'static>(
        &self,
        own: Option<&Transform<K>>,
        scope: &Scope,
    ) -> Option<Transform<K>> {
        let of_type = self.by_type.get(&TypeId::of::<K>());
        let of_type =
            of_type.and_then(|of_type| of_type.transforms.downcast_ref::<TypeTransforms<K>>());
        let nearest = |namespace: &str| {
            let in_namespace = of_type.and_then(|of_type| of_type.by_namespace.get(namespace));
            let everywhere = of_type.and_then(|of_type| of_type.everywhere.as_ref());
            let said = own.or(in_namespace).or(everywhere).cloned();
            said.or_else(|| {
                self.metadata_by_namespace
                    .get(namespace)
                    .map(of_metadata::<K>)
            })
        };
        let sections = scope.sections.iter();
        let by_namespace: BTreeMap<_, _> = sections
            .map(|section| (section.namespace.clone(), nearest(&section.namespace)))
            .collect();
        let first = self.metadata.clone();
        if first.is_none() && by_namespace.values().all(Option::is_none) {
            return None;
        }
        Some(Arc::new(move |object: &mut K| {
            // Looked up before anything changes the metadata.
            let namespace = object.meta().namespace.as_deref().unwrap_or_default();
            let second = by_namespace.get(namespace).or_else(|| by_namespace.get(""));
            if let Some(first) = &first {
                first(object.meta_mut());
            }
            second
                .and_then(Option::as_ref)
                .map_or(Ok(()), |second| second(object))
        }))
    }
}

fn of_metadata<K: Resource + 'static>(transform: &Transform<ObjectMeta>) -> Transform<K> {
    let transform = Arc::clone(transform);
    Arc::new(move |object: &mut K| transform(object.meta_mut()))
}
