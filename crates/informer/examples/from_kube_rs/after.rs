//! The kube-rs controller after its migration: it reads all objects from shared informers.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource as _, ResourceExt as _,
    api::{DeleteParams, ObjectMeta, PostParams},
    runtime::{
        WatchStreamExt as _,
        controller::Action,
        finalizer::{self, Event, finalizer},
    },
};
use kube_informer::kube_rs::{self, Shared};
use kube_informer::{Lister, Object, SharedInformerFactory, object::DecodeError};

use super::generator::Generator;

const FINALIZER: &str = "kube-informer.example.com/cleanup";
const SYNC_MAX: Duration = Duration::from_secs(30);

struct Context {
    client: Client,
    cache: Lister<ConfigMap>,
}

impl Context {
    async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<ConfigMap>>, Error> {
        let found = self.cache.namespace(namespace).find(name);
        Ok(found.as_ref().map(Object::get).transpose()?)
    }

    fn config_maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("a request failed")]
    Request(#[from] kube::Error),
    #[error("a config map can't be read")]
    Broken(#[from] DecodeError),
    #[error("the finalizer failed")]
    Finalizer(#[source] Box<finalizer::Error<Error>>),
}

/// Creates, corrects or deletes the config map that a generator defines.
async fn reconcile(generator: Arc<Shared<Generator>>, ctx: Arc<Context>) -> Result<Action, Error> {
    let namespace = generator.namespace().unwrap_or_default();
    let generators = Api::<Generator>::namespaced(ctx.client.clone(), &namespace);
    let finalized = finalizer(&generators, FINALIZER, generator.get(), |event| async {
        match event {
            Event::Apply(generator) => apply(&generator, &namespace, &ctx).await,
            Event::Cleanup(generator) => clean_up(&generator, &namespace, &ctx).await,
        }
    });
    finalized
        .await
        .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn apply(generator: &Generator, namespace: &str, context: &Context) -> Result<Action, Error> {
    let (name, wanted) = (generator.name_any(), config_map(generator));
    let config_maps = context.config_maps(namespace);
    match context.find(namespace, &name).await? {
        None => drop(config_maps.create(&PostParams::default(), &wanted).await?),
        Some(is) if is.data != wanted.data => {
            drop(
                config_maps
                    .replace(&name, &PostParams::default(), &wanted)
                    .await?,
            );
        }
        Some(_) => {}
    }
    Ok(Action::requeue(Duration::from_secs(300)))
}

async fn clean_up(
    generator: &Generator,
    namespace: &str,
    context: &Context,
) -> Result<Action, Error> {
    let name = generator.name_any();
    if context.find(namespace, &name).await?.is_some() {
        let config_maps = context.config_maps(namespace);
        drop(config_maps.delete(&name, &DeleteParams::default()).await?);
    }
    Ok(Action::await_change())
}

fn config_map(generator: &Generator) -> ConfigMap {
    let content = generator.spec.content.clone();
    ConfigMap {
        metadata: ObjectMeta {
            name: generator.metadata.name.clone(),
            owner_references: generator.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some([("content".to_owned(), content)].into()),
        ..ConfigMap::default()
    }
}

fn error_policy(generator: Arc<Shared<Generator>>, error: &Error, _: Arc<Context>) -> Action {
    tracing::warn!(generator = generator.name_any(), error = ?error, "reconcile failed; retrying");
    Action::requeue(Duration::from_secs(1))
}

/// Runs the controller until `stop` resolves. Then waits until the reconciles in progress have ended.
pub(crate) async fn run(
    client: Client,
    factory: &SharedInformerFactory,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) -> anyhow::Result<()> {
    let generators = factory.informer::<Generator>();
    let config_maps = factory.informer::<ConfigMap>();
    let cache = config_maps.lister();
    let context = Context { client, cache };
    factory.start();
    config_maps.wait_for_sync().deadline(SYNC_MAX).await?;
    kube_rs::controller(generators.subscribe()?)
        .owns_stream(kube_rs::watcher(config_maps.subscribe()?).touched_objects())
        .graceful_shutdown_on(stop)
        .run(reconcile, error_policy, Arc::new(context))
        .for_each(|done| async move { tracing::debug!(?done, "reconciled") })
        .await;
    Ok(())
}
