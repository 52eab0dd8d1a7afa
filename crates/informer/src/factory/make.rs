//! Returns the existing informer for a request, or creates the informer if there is none.
//!
//! This module combines the options of the request with the defaults of the factory. It does not start the
//! informer.

use std::{any::TypeId, convert::Infallible, sync::Arc};

use kube_core::{ApiResource, Resource};
use serde::de::DeserializeOwned;

use super::{
    SharedInformerFactory, constructing,
    definitions::Followed,
    listing::{Coverage, Registered},
    options::{InformerOptions, OptionsConflict, QueueKind},
    registry::{Key, Lifetime, Lookup, New, Run, Want},
    request::Request,
    scope::{Scope, Section},
};
use crate::{
    controller::Controller,
    queue::DeltaFifo,
    reflector,
    shared_informer::{self, SharedInformer},
    transport::client::ListWatch,
};

impl SharedInformerFactory {
    pub(super) fn key<K: Resource + 'static>(&self, request: &Request<K>) -> Key {
        let defaults = &self.inner.defaults;
        Key {
            type_id: TypeId::of::<K>(),
            kind: ApiResource::erase::<K>(&request.dyntype),
            scope: defaults.scope(&request.options, request.is_namespaced),
        }
    }

    /// Returns the informer of a request, or creates the informer if there is none.
    ///
    /// # Errors
    /// Returns [`OptionsConflict`] if the informer exists, and its options differ from the requested options.
    pub(super) fn get_with_options<K>(
        &self,
        request: Request<K>,
        want: Want,
    ) -> Result<Lookup<K>, OptionsConflict>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let wanted = request.options.clone();
        let kind = K::kind(&request.dyntype).into_owned();
        self.get_if_or_make(request, want, |has| match has {
            Some(has) => wanted.must_equal(has, &kind),
            // The options of an informer from `informer_for` or `adopt` are unknown, so only a request
            // without options can share the informer.
            None => wanted
                .must_equal(&InformerOptions::new(), &kind)
                .map_err(|_| OptionsConflict::new(&kind, "constructor")),
        })
    }

    pub(super) fn get_or_make<K>(&self, request: Request<K>, want: Want) -> Lookup<K>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let Ok(found) = self.get_if_or_make(request, want, |_| Ok::<_, Infallible>(()));
        found
    }

    fn get_if_or_make<K, E>(
        &self,
        request: Request<K>,
        want: Want,
        accept: impl Fn(Option<&InformerOptions<K>>) -> Result<(), E>,
    ) -> Result<Lookup<K>, E>
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let (registry, key) = (&self.inner.registry, self.key(&request));
        constructing::note(registry.id(), &key);
        let make = || {
            let requested = request.options.clone();
            let options = self.inner.defaults.complete(request.options);
            let coverage = Coverage::new(&key.scope, &options.keeping);
            let (informer, controller) =
                self.make(request.dyntype, options, &requested, &key.scope);
            New {
                registered: Registered {
                    informer,
                    kind: key.kind.clone(),
                    coverage: Some(coverage),
                    options: Some(requested),
                },
                run: Some(run(controller, self.will_follow(&key))),
            }
        };
        registry.get_if_or_make(&key, want, accept, make)
    }

    /// Creates an informer.
    ///
    /// `complete` contains the requested options, completed with the factory's defaults. `requested` contains
    /// only the requested options. The transforms need `requested`, because their precedence is resolved for
    /// each namespace.
    fn make<K>(
        &self,
        dyntype: K::DynamicType,
        complete: InformerOptions<K>,
        requested: &InformerOptions<K>,
        scope: &Scope,
    ) -> (SharedInformer<K>, Controller<K>)
    where
        K: Resource + DeserializeOwned + Send + Sync + 'static,
    {
        let defaults = &self.inner.defaults;
        let named = || Arc::from(reflector::named::<K>(&scope.name(&K::plural(&dyntype))));
        let name = complete.name.unwrap_or_else(named);
        let mut sources = scope
            .sections
            .iter()
            .map(|section| self.source::<K>(&dyntype, section));
        let first = sources.next().expect("a scope has at least one section");
        let others: Vec<_> = sources.collect();
        let builder = SharedInformer::<K>::builder_with_type(first, dyntype);
        let mut builder = others
            .into_iter()
            .fold(builder, shared_informer::Builder::source);
        if complete.queue == Some(QueueKind::DeltaFifo) {
            builder = builder.queue(DeltaFifo::new());
        }
        let settings = &mut builder.reflectors;
        if let Some(handler) = defaults.error_handler.clone() {
            let name = Arc::clone(&name);
            settings.error_handler = Some(Arc::new(move |error| handler(&name, error)));
        }
        settings.name = Some(name);
        settings.transform = defaults.transform(requested, scope);
        settings.metrics.clone_from(&defaults.metrics);
        settings.seed = defaults.seed;
        builder.requests = scope
            .sections
            .iter()
            .map(|section| section.requests)
            .collect();
        builder.loop_options = complete.loop_options;
        builder.keeping = complete.keeping;
        builder.build()
    }

    fn source<K: Resource>(&self, dyntype: &K::DynamicType, section: &Section) -> ListWatch<K> {
        let source = ListWatch::<K>::with_type(Arc::clone(&self.inner.client), dyntype)
            .namespace(&*section.namespace)
            .labels(&section.labels)
            .fields(&*section.fields);
        match self.inner.tweak.clone() {
            Some(tweak) => source.tweak_list_options(move |options| tweak(options)),
            None => source,
        }
    }
}

/// Returns the function that runs an informer until the factory ends it.
///
/// The function calls `follow` when the informer starts. `follow` subscribes to the
/// `CustomResourceDefinition` of the kind. The informer is then suspended while the server does not serve the
/// kind.
pub(super) fn run<K>(
    controller: Controller<K>,
    follow: impl FnOnce() -> Option<Followed> + Send + Sync + 'static,
) -> Run
where
    K: Resource + DeserializeOwned + Send + Sync + 'static,
{
    Box::new(|mut lifetime: Lifetime| {
        let (definitions, definition) = follow().unzip();
        let controller = match definition {
            Some(definition) => controller.follow(definition),
            None => controller,
        };
        Box::pin(async move {
            let ended = controller.run(lifetime.over()).await;
            drop(definitions);
            lifetime.end(ended.err());
        })
    })
}
