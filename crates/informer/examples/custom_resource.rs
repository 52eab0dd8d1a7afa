//! Caches a custom resource in three ways: as a Rust type, as dynamic objects, and as metadata only.
//!
//! Each way has its own informer. Dynamic objects are for kinds that are known only at run time.
//!
//! The example creates the `CustomResourceDefinition`, and deletes it at the end. Without arguments, the
//! example runs on an embedded API server.
//!
//! `cargo run -p kube-informer --example custom_resource [-- --kubeconfig FILE --context NAME]`

#![expect(clippy::print_stdout, reason = "an example is a program")]

#[path = "setting/cluster.rs"]
mod cluster;
#[path = "setting/exit.rs"]
mod exit;

use std::{borrow::Cow, process::ExitCode, time::Duration};

use anyhow::{Context, ensure};
use k8s_openapi::{
    NamespaceResourceScope,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Api, Client, Error,
    api::{DeleteParams, ListParams, PostParams},
};
use kube_core::{
    ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, PartialObjectMeta, Resource,
};
use kube_informer::SharedInformerFactory;
use kube_informer_apiserver::Server;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::cluster::Cluster;

const GROUP: &str = "kube-informer.example.com";
const DEFINITION: &str = "widgets.kube-informer.example.com";

/// The custom resource as a Rust type. An informer requires that the type implements `Deserialize` and
/// [`Resource`].
///
/// Alternatively, kube's `#[derive(CustomResource)]` generates the implementation of `Resource`.
#[derive(Clone, Debug, Deserialize)]
struct Widget {
    metadata: ObjectMeta,
    spec: WidgetSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct WidgetSpec {
    size: u32,
}

impl Resource for Widget {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Widget".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "widgets".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    exit::code(custom_resource().await)
}

async fn custom_resource() -> anyhow::Result<()> {
    let cluster = Cluster::from_args(Server::builder().build()).await?;
    let gvk = GroupVersionKind::gvk(GROUP, "v1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "widgets");
    let api = Api::<DynamicObject>::namespaced_with(cluster.client(), "default", &resource);
    let definitions = define(cluster.client(), &api).await?;
    let mut widget = DynamicObject::new("gear", &resource);
    widget.data = json!({"spec": {"size": 3}});
    let created = api.create(&PostParams::default(), &widget).await?;

    let factory = SharedInformerFactory::builder(cluster.client())
        .namespaces(["default"])
        .build();
    let typed = factory.informer::<Widget>();
    let dynamic = factory.for_resource(&resource)?;
    let metadata = factory.informer::<PartialObjectMeta<Widget>>();
    factory.start();
    let synced = factory.wait_for_cache_sync();
    synced.deadline(Duration::from_secs(30)).fail_fast().await?;

    let widget = typed.lister().namespace("default").get("gear")?;
    println!("as a type: size {}", widget.spec.size);
    ensure!(widget.spec.size == 3, "the type has another size");
    let widget = dynamic.lister().namespace("default").get("gear")?;
    println!("at run time: size {}", widget.data["spec"]["size"]);
    ensure!(
        widget.data["spec"]["size"] == 3,
        "the dynamic object has another size"
    );
    let widget = metadata.lister().namespace("default").get("gear")?;
    println!("metadata only: uid {:?}", widget.metadata.uid);
    ensure!(
        widget.metadata.uid == created.metadata.uid,
        "the metadata belong to another object"
    );
    let kind = widget.types.as_ref().map(|types| types.kind.as_str());
    ensure!(
        kind == Some("PartialObjectMetadata"),
        "the server sent more than metadata: {kind:?}"
    );

    factory.shutdown().await;
    definitions
        .delete(DEFINITION, &DeleteParams::default())
        .await?;
    cluster.close().await;
    Ok(())
}

/// Creates the `CustomResourceDefinition` and waits until the server serves the resource.
///
/// Deletes the widgets of earlier runs. Returns a client for `CustomResourceDefinition`s.
async fn define(
    client: Client,
    api: &Api<DynamicObject>,
) -> anyhow::Result<Api<CustomResourceDefinition>> {
    let definitions = Api::<CustomResourceDefinition>::all(client);
    let definition = serde_json::from_value(json!({
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "properties": {"size": {"type": "integer", "minimum": 1}},
                }}},
            }}],
        },
    }))?;
    match definitions
        .create(&PostParams::default(), &definition)
        .await
    {
        Err(Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created.context("can't define widgets")?),
    }
    let served = async {
        let (at_once, all) = (DeleteParams::default(), ListParams::default());
        while api.delete_collection(&at_once, &all).await.is_err() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(10), served).await;
    in_time.context("widgets are defined, but not served")?;
    Ok(definitions)
}
