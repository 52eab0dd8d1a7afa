//! From what somebody asks a factory for to the informer that is in the place.

use std::{any::TypeId, borrow::Cow, convert::Infallible, sync::Arc};

use k8s_openapi::ClusterResourceScope;
use kube_core::Resource;
use serde::de::DeserializeOwned;

use super::{
    SharedInformerFactory,
    definitions::Followed,
    options::{Comparable, InformerOptions, OptionsConflict, QueueKind},
    places::{Found, Key, Made, Run, Want},
    scope::{Scope, Section},
    term::Term,
};
use crate::{
    controller::Controller, queue::DeltaFifo, reflector, shared_informer::SharedInformer,
    transport::client::ListWatch,
};

/// What somebody asks for.
pub(super) struct Request<K: Resource> {
    dyntype: K::DynamicType,
    options: InformerOptions<K>,
    is_namespaced: bool,
}

impl<K: Resource + 'static> Request<K> {
    pub(super) fn of_type(options: InformerOptions<K>) -> Self
    where
        K::DynamicType: Default,
    {
        Self::of_kind(K::DynamicType::default(), options, None)
    }

    /// Of a kind of which it may be known whether it is in namespaces; else the type says it, or it is
    /// taken for one that is.
    pub(super) fn of_kind(
        dyntype: K::DynamicType,
        options: InformerOptions<K>,
        is_namespaced: Option<bool>,
    ) -> Self {
        let is_cluster_scoped = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        Self {
            dyntype,
            options,
            is_namespaced: is_namespaced.unwrap_or(!is_cluster_scoped),
        }
    }
}

impl SharedInformerFactory {
    /// The place that is asked for.
    pub(super) fn key<K: Resource + 'static>(&self, request: &Request<K>) -> Key {
        let Request {
            dyntype,
            options,
            is_namespaced,
        } = request;
        Key {
            kind: TypeId::of::<K>(),
            names: [
                K::api_version(dyntype),
                K::kind(dyntype),
                K::plural(dyntype),
            ]
            .map(Cow::into_owned),
            scope: self.inner.defaults.scope(options, *is_namespaced),
        }
    }

    /// What is in the place that is asked for, if its options are those that are asked for.
    pub(super) fn asked_for<K>(
        &self,
        request: Request<K>,
        want: Want,
    ) -> Result<Found<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let wanted = request.options.comparable();
        let kind = K::kind(&request.dyntype).into_owned();
        self.get_if_or_make(request, want, |has| wanted.must_equal(has, &kind))
    }

    pub(super) fn get_or_make<K>(&self, request: Request<K>, want: Want) -> Found<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let Ok(found) = self.get_if_or_make(request, want, |_| Ok::<_, Infallible>(()));
        found
    }

    fn get_if_or_make<K, E>(
        &self,
        request: Request<K>,
        want: Want,
        accept: impl Fn(&Comparable) -> Result<(), E>,
    ) -> Result<Found<K>, E>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let key = self.key(&request);
        let fill = || {
            let options = request.options.comparable();
            let (informer, controller) = self.make(request, &key.scope);
            Made {
                informer,
                options,
                run: Some(run(controller, self.will_follow(&key))),
            }
        };
        let places = &self.inner.places;
        places.get_if_or_make(&key, want, accept, fill)
    }

    fn make<K>(&self, request: Request<K>, scope: &Scope) -> (SharedInformer<K>, Controller<K>)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
        K::DynamicType: 'static,
    {
        let Request {
            dyntype, options, ..
        } = request;
        let inner = &self.inner;
        let source = |section: &Section| {
            let source = ListWatch::<K>::with_type(Arc::clone(&inner.client), &dyntype)
                .namespace(&*section.namespace)
                .labels(&section.labels)
                .fields(&*section.fields);
            match inner.tweak.clone() {
                Some(tweak) => source.tweak_list_options(move |options| tweak(options)),
                None => source,
            }
        };
        let mut sources = scope.sections.iter().map(source);
        let first = sources.next().expect("a scope has at least one section");
        let others: Vec<_> = sources.collect();
        let resync = options.resync.unwrap_or(inner.defaults.resync::<K>());
        let name = options
            .name
            .unwrap_or_else(|| Arc::from(reflector::named::<K>(&scope.name(&K::plural(&dyntype)))));
        let builder = SharedInformer::<K>::builder_with_type(first, dyntype);
        let mut builder = inner
            .defaults
            .reflectors(&name, builder)
            .name(name)
            .resync(resync);
        for other in others {
            builder = builder.source(other);
        }
        if options.queue == QueueKind::DeltaFifo {
            builder = builder.queue(DeltaFifo::new());
        }
        if let Some(changes) = options.batch_size {
            builder = builder.batch_size(changes);
        }
        if let Some(changes) = options.queue_capacity {
            builder = builder.queue_capacity(changes);
        }
        let own = options.transform.as_ref();
        if let Some(transform) = inner.defaults.transform(own, scope) {
            builder = builder.try_transform(move |object| transform(object));
        }
        if let Some(detector) = options.mutation_detector {
            builder = builder.mutation_detector(detector());
        }
        if let Some(storing) = options.storing {
            builder = builder.storing(storing);
        }
        builder = builder.pruning(options.pruning).lazily(options.is_lazy);
        if let Some(packing) = options.packing {
            builder = builder.packing(packing);
        }
        let period = options.consistency_check;
        builder =
            builder.consistency_check(period.unwrap_or(inner.defaults.consistency_check::<K>()));
        if let Some(detection) = options.rollback_detection {
            builder = builder.rollback_detection(detection);
        }
        if let Some(seed) = inner.seed {
            builder = builder.rng_seed(seed);
        }
        builder.build()
    }
}

/// Runs an informer until its term is over. From its start to its end it holds who tells it of its
/// kind's definition, if anybody does.
pub(super) fn run<K>(
    controller: Controller<K>,
    follow: impl FnOnce() -> Option<Followed> + Send + Sync + 'static,
) -> Run
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: 'static,
{
    Box::new(|mut term: Term| {
        let (definitions, definition) = follow().unzip();
        let controller = match definition {
            Some(definition) => controller.follow(definition),
            None => controller,
        };
        Box::pin(async move {
            let ended = controller.run(term.over()).await;
            drop(definitions);
            term.end(ended.err());
        })
    })
}
