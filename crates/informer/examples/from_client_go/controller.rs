//! A port of Kubernetes' sample-controller, without a custom resource.
//!
//! Config maps with the label [`APP`] are used instead of the custom resource `Foo`. Such a config map is
//! called an app. An app specifies the name of a deployment and the number of replicas. The controller
//! creates and scales the deployment.

use std::{pin::pin, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube_client::{Api, Client, api::PostParams};
use kube_core::Resource as _;
use kube_informer::{
    Lister, Object, ObjectName, SharedInformer, enqueue,
    factory::wait_for_cache_sync,
    shared_informer::Stopped,
    workqueue::{RateLimitingQueue, rate_limiter},
};
use serde_json::json;
use tokio::task::JoinSet;

/// Key of the label that marks a config map as an app. The controller reconciles the apps.
pub(crate) const APP: &str = "kube-informer.example.com/app";

/// Reconciles the deployments that the apps specify. An app is a config map with the label [`APP`].
pub(crate) struct Controller {
    client: Client,
    apps: SharedInformer<ConfigMap>,
    deployments: SharedInformer<Deployment>,
    queue: RateLimitingQueue<ObjectName>,
}

impl Controller {
    /// Creates a controller, and registers event handlers on its two informers.
    ///
    /// The caller must start the informers.
    pub(crate) fn new(
        client: Client,
        apps: SharedInformer<ConfigMap>,
        deployments: SharedInformer<Deployment>,
    ) -> Result<Self, Stopped> {
        let queue = RateLimitingQueue::new(rate_limiter::controller_default());
        apps.handler(enqueue(&queue)).register()?;
        let owners = Owners {
            apps: apps.lister(),
            queue: queue.clone(),
        };
        let [added, updated, deleted] = [owners.clone(), owners.clone(), owners];
        deployments
            .on_add(move |deployment, _| added.handle(&deployment))
            .on_update(move |old, new| {
                if old.revision() != new.revision() {
                    updated.handle(&new);
                }
            })
            .on_delete(move |gone| gone.object().map_or((), |last| deleted.handle(last)))
            .register()?;
        Ok(Self {
            client,
            apps,
            deployments,
            queue,
        })
    }

    /// Runs the controller with `workers` workers until `stop` resolves.
    ///
    /// Then waits until the workers have completed the reconciles in progress.
    pub(crate) async fn run(
        self,
        workers: usize,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let waits = [self.apps.wait_for_sync(), self.deployments.wait_for_sync()];
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            () = &mut stop => bail!("stopped before the caches synced"),
            synced = wait_for_cache_sync(waits).into_future() => synced?,
        }
        let mut working = JoinSet::new();
        let controller = Arc::new(self);
        for _ in 0..workers {
            working.spawn(Arc::clone(&controller).work());
        }
        stop.await;
        controller.queue.shut_down();
        working.join_all().await;
        Ok(())
    }

    async fn work(self: Arc<Self>) {
        while let Some(app) = self.queue.get().await {
            match self.sync(app.key()).await {
                Ok(()) => app.forget(),
                Err(error) => {
                    tracing::error!(app = %app.key(), ?error, "sync failed; retrying");
                    app.retry();
                }
            }
        }
    }

    async fn sync(&self, name: &ObjectName) -> anyhow::Result<()> {
        let Some(app) = self.apps.lister().find(name) else {
            return Ok(()); // it was deleted, and the garbage collector deletes its deployment
        };
        let app = app.get()?;
        let wanted = match new_deployment(&app) {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::error!(app = %name, ?error, "not an app");
                return Ok(()); // a retry would fail too
            }
        };
        let namespace = name.namespace().unwrap_or_default();
        let api = Api::<Deployment>::namespaced(self.client.clone(), namespace);
        let wanted_name = wanted.metadata.name.as_deref().unwrap_or_default();
        let found = self
            .deployments
            .lister()
            .namespace(namespace)
            .find(wanted_name);
        let Some(deployment) = found else {
            api.create(&PostParams::default(), &wanted).await?;
            return Ok(());
        };
        let deployment = deployment.get()?;
        let owner = controller_of(&deployment);
        ensure!(
            owner.is_some_and(|(_, uid)| Some(uid) == app.metadata.uid.as_deref()),
            "deployment {wanted_name} is not managed by app {name}"
        );
        if replicas(&deployment) != replicas(&wanted) {
            let mut changed = Deployment::clone(&deployment);
            changed.spec.get_or_insert_default().replicas = replicas(&wanted);
            api.replace(wanted_name, &PostParams::default(), &changed)
                .await?;
        }
        Ok(())
    }
}

/// Event handler for deployments: queues the app that controls the deployment, if the app is in the cache.
///
/// An app is a config map with the label [`APP`].
#[derive(Clone)]
struct Owners {
    apps: Lister<ConfigMap>,
    queue: RateLimitingQueue<ObjectName>,
}

impl Owners {
    fn handle(&self, object: &Object<Deployment>) {
        let Ok(deployment) = object.get() else {
            return; // it does not decode, so its owner is unknown
        };
        let Some((app, _)) = controller_of(&deployment) else {
            return;
        };
        let app = ObjectName::new(object.namespace(), app);
        if self.apps.find(&app).is_some() {
            self.queue.add(app);
        }
    }
}

/// Returns the name and uid of the config map that controls a deployment, or `None` if no config map does.
fn controller_of(deployment: &Deployment) -> Option<(&str, &str)> {
    let owners = deployment.metadata.owner_references.iter().flatten();
    let mut controllers = owners.filter(|owner| owner.controller == Some(true));
    let owner = controllers.find(|owner| owner.kind == "ConfigMap")?;
    Some((&owner.name, &owner.uid))
}

fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

fn new_deployment(app: &ConfigMap) -> anyhow::Result<Deployment> {
    let data = app.data.as_ref().context("it has no data")?;
    let replicas: i32 = data.get("replicas").context("no replicas")?.parse()?;
    let labels = json!({"controller": app.metadata.name});
    let deployment = json!({
        "metadata": {
            "name": data.get("deploymentName").context("no deploymentName")?,
            "namespace": app.metadata.namespace,
            "ownerReferences": [app.controller_owner_ref(&())],
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    });
    Ok(serde_json::from_value(deployment)?)
}
